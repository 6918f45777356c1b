//! The output that a terminal has yet to show: bounded, because a client may be slow and a command is not.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::limits::TERMINAL_QUEUE_BYTES;
use crate::platform::WakeUp;

/// Marks a gap where the client was too slow.
const CUT: &[u8] = b"\n[some of the output is not shown: it came too fast]\n";

#[derive(Debug)]
pub(in crate::tools::bash) struct OutputQueue {
    /// Why a lock: the command's thread fills it, the terminal's thread empties it.
    state: Mutex<QueuedOutput>,
    /// Readable when something is new.
    news: WakeUp,
}

#[derive(Debug, Default)]
struct QueuedOutput {
    bytes: VecDeque<u8>,
    is_cut: bool,
    end: Option<u8>,
}

impl OutputQueue {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { state: Mutex::default(), news: WakeUp::new()? })
    }

    /// Never waits; if the queue is full, keeps the end of the output.
    pub(in crate::tools::bash) fn push(&self, bytes: &[u8]) {
        {
            let mut state = self.state();
            state.bytes.extend(bytes);
            let excess = state.bytes.len().saturating_sub(TERMINAL_QUEUE_BYTES);
            state.bytes.drain(..excess);
            state.is_cut |= excess > 0;
        }
        self.tell();
    }

    /// No more output follows; the first exit code counts.
    pub(super) fn close(&self, code: u8) {
        self.state().end.get_or_insert(code);
        self.tell();
    }

    /// Takes all waiting output.
    pub(super) fn take(&self) -> Vec<u8> {
        let mut state = self.state();
        let bytes = std::mem::take(&mut state.bytes);
        let cut = if std::mem::take(&mut state.is_cut) { CUT } else { &[] };
        cut.iter().copied().chain(bytes).collect()
    }

    /// The exit code, once no more output follows.
    pub(super) fn end(&self) -> Option<u8> {
        self.state().end
    }

    pub(super) fn news(&self) -> BorrowedFd<'_> {
        self.news.handle()
    }

    /// Resets the signal for new output.
    pub(super) fn heard(&self) {
        if let Err(error) = self.news.heard() {
            tracing::trace!(%error, "no news");
        }
    }

    fn tell(&self) {
        if let Err(error) = self.news.tell() {
            tracing::debug!(%error, "it was told often enough already");
        }
    }

    fn state(&self) -> MutexGuard<'_, QueuedOutput> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_loses_its_beginning_and_says_so() {
        let queue = OutputQueue::new().unwrap();
        queue.push(b"first");
        assert_eq!(queue.take(), b"first");
        queue.push(&vec![b'a'; TERMINAL_QUEUE_BYTES]);
        queue.push(b"last");
        let taken = queue.take();
        assert!(taken.starts_with(CUT) && taken.ends_with(b"aaalast"));
        assert_eq!(taken.len(), CUT.len() + TERMINAL_QUEUE_BYTES);
        assert!(queue.take().is_empty() && queue.end().is_none());
        queue.close(3);
        queue.close(4);
        assert_eq!(queue.end(), Some(3));
    }
}
