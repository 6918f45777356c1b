//! The writer task: takes everything that waits and hands it to the transport in large pieces. The only one to
//! touch the output.

use crate::outgoing::TakenBatch;
use crate::peer::PeerShared;
use crate::trace::{TraceLane, TrafficDirection};
use crate::transport::MessageSink;
use std::io;
use std::sync::Arc;

/// Ends when everything is written and no more can come, or when the output breaks, which ends the connection.
pub(crate) async fn run(mut output: impl MessageSink, shared: Arc<PeerShared>, lane: Option<Arc<TraceLane>>) {
    let written = write_all(&mut output, &shared, lane.as_deref()).await;
    let ended = match written {
        Ok(()) => output.close().await,
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "writing failed; the connection is closed");
        shared.hang_up.cancel();
    }
    shared.outgoing.close();
}

async fn write_all(
    output: &mut impl MessageSink,
    shared: &PeerShared,
    lane: Option<&TraceLane>,
) -> io::Result<()> {
    let mut batch = Vec::new();
    let mut flushed = true;
    loop {
        match shared.outgoing.take(&mut batch) {
            TakenBatch::Lines => {
                write_batch(output, shared, lane, &batch).await?;
                flushed = false;
            }
            // Something may be queued during the flush, so look again before sleeping.
            TakenBatch::Nothing if !flushed => {
                output.flush().await?;
                flushed = true;
            }
            TakenBatch::Nothing => shared.outgoing.wait_filled().await,
            TakenBatch::End => return output.flush().await,
        }
    }
}

async fn write_batch(
    output: &mut impl MessageSink,
    shared: &PeerShared,
    lane: Option<&TraceLane>,
    batch: &[u8],
) -> io::Result<()> {
    let mut rest = batch;
    while !rest.is_empty() {
        let count = output.write(rest).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        if let Some(lane) = lane {
            lane.record(TrafficDirection::Out, &rest[..count]);
        }
        rest = &rest[count..];
        shared.outgoing.progress(rest.len());
        // Other tasks get their turn also when the pipe is never full.
        tokio::task::coop::consume_budget().await;
    }
    Ok(())
}
