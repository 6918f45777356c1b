//! The writer task: takes everything that waits and writes it in large pieces. The only one to touch the output.

use crate::limits::WRITE_CHUNK_BYTES;
use crate::outgoing::Taken;
use crate::peer::Shared;
use crate::trace::{Direction, Lane};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Ends when everything is written and no more can come, or when the output breaks, which ends the connection.
pub(crate) async fn run<W: AsyncWrite + Unpin>(mut output: W, shared: Arc<Shared>, lane: Option<Arc<Lane>>) {
    let written = write_all(&mut output, &shared, lane.as_deref()).await;
    let ended = match written {
        Ok(()) => output.shutdown().await,
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "writing failed; the connection is closed");
        shared.hang_up.cancel();
    }
    shared.outgoing.close();
}

async fn write_all<W: AsyncWrite + Unpin>(
    output: &mut W,
    shared: &Shared,
    lane: Option<&Lane>,
) -> io::Result<()> {
    let mut batch = Vec::new();
    let mut flushed = true;
    loop {
        match shared.outgoing.take(&mut batch) {
            Taken::Lines => {
                write_batch(output, shared, lane, &batch).await?;
                flushed = false;
            }
            // Something may be queued during the flush, so look again before sleeping.
            Taken::Nothing if !flushed => {
                output.flush().await?;
                flushed = true;
            }
            Taken::Nothing => shared.outgoing.wait_filled().await,
            Taken::End => return output.flush().await,
        }
    }
}

async fn write_batch<W: AsyncWrite + Unpin>(
    output: &mut W,
    shared: &Shared,
    lane: Option<&Lane>,
    batch: &[u8],
) -> io::Result<()> {
    let mut rest = batch;
    while !rest.is_empty() {
        let count = output.write(&rest[..rest.len().min(WRITE_CHUNK_BYTES)]).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        if let Some(lane) = lane {
            lane.record(Direction::Out, &rest[..count]);
        }
        rest = &rest[count..];
        shared.outgoing.progress(rest.len());
        // Other tasks get their turn also when the pipe is never full.
        tokio::task::coop::consume_budget().await;
    }
    Ok(())
}
