//! A stream that is still read when it can't be written to any more: what its other end wrote before it left is
//! there. Writing to it then succeeds without effect, and a flag says so.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[derive(Debug)]
pub(super) struct StillReadable<S> {
    io: S,
    failure: WriteFailure,
}

/// Whether writing has failed. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteFailure(Arc<AtomicBool>);

impl WriteFailure {
    pub(super) fn has_come(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl<S> StillReadable<S> {
    pub(super) fn new(io: S) -> (Self, WriteFailure) {
        let failure = WriteFailure::default();
        (Self { io, failure: failure.clone() }, failure)
    }

    fn written<T>(&self, written: Poll<io::Result<T>>, without_effect: T) -> Poll<io::Result<T>> {
        match written {
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "a client can't be written to any more");
                self.failure.0.store(true, Ordering::SeqCst);
                Poll::Ready(Ok(without_effect))
            }
            other => other,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StillReadable<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, target)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StillReadable<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.failure.has_come() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.written(written, bytes.len())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.failure.has_come() {
            return Poll::Ready(Ok(()));
        }
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        self.written(flushed, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
