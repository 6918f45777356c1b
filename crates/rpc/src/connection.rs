//! The end of a connection: waiting for it, and bringing it about without losing what is queued.

use crate::peer::PeerShared;
use crate::trace::Trace;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Dropping it leaves the connection running.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<PeerShared>,
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
    trace: Option<Trace>,
}

/// How draining went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Everything that was queued has been written, or the other side was gone before.
    Whole,
    /// The other side did not read in time; this many bytes were thrown away.
    Cut { bytes: usize },
}

impl Connection {
    pub(crate) fn new(
        shared: Arc<PeerShared>,
        reader: JoinHandle<()>,
        writer: JoinHandle<()>,
        trace: Option<Trace>,
    ) -> Self {
        Self { shared, reader, writer, trace }
    }

    /// Resolves when the other side has hung up or is out of reach, after `Handler::closed`. Answers may still
    /// be sent if only its writing end is closed.
    pub async fn wait_closed(&mut self) {
        self.shared.ended.cancelled().await;
    }

    /// Waits for the answers that are owed, then accepts nothing more, writes what is queued, closes the output
    /// and ends both tasks; at the time-out what is left is thrown away.
    pub async fn drain(mut self, timeout: Duration) -> Drained {
        let end = Instant::now() + timeout;
        // Some of the time is kept for writing.
        if tokio::time::timeout(timeout / 2, self.shared.in_flight.all_answered()).await.is_err() {
            tracing::debug!("the connection ends with requests unanswered");
        }
        self.shared.outgoing.finish();
        let drained = match tokio::time::timeout_at(end, &mut self.writer).await {
            Ok(Ok(())) => Drained::Whole,
            Ok(Err(error)) => {
                tracing::error!(%error, "the writer did not end well");
                Drained::Cut { bytes: self.shared.outgoing.outstanding() }
            }
            Err(_) => {
                let bytes = self.shared.outgoing.outstanding();
                self.writer.abort();
                if let Err(error) = (&mut self.writer).await {
                    tracing::debug!(%error, bytes, "the writer was stopped");
                }
                Drained::Cut { bytes }
            }
        };
        self.shared.outgoing.close();
        self.shared.hang_up.cancel();
        self.shared.drained.cancel();
        if let Err(error) = (&mut self.reader).await {
            tracing::error!(%error, "the reader did not end well");
        }
        if let Some(trace) = &self.trace {
            // At least a moment, also when the peer used up all the time: the trace is for that very case.
            let end = end.max(Instant::now() + Duration::from_millis(200));
            if tokio::time::timeout_at(end, trace.flush()).await.is_err() {
                tracing::warn!("the trace could not be written in time");
            }
        }
        drained
    }
}
