//! A reader of one stream of an outbox: its place, and the wait for what comes.

use super::{Bytes, Instant, KEPT_BYTES, KEPT_TIME, Outbox, OutboxEnd, StreamName};
use crate::limits::PIECE_BYTES;

#[derive(Debug)]
pub(crate) struct OutboxReader {
    outbox: Outbox,
    name: StreamName,
    /// The number of the last message that it was given.
    place: u64,
}

/// What a reader finds next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadPiece {
    Messages(Vec<(u64, Bytes)>),
    /// What follows its place is not there any more; it goes on behind this number.
    Reset(u64),
    End(OutboxEnd),
}

impl OutboxReader {
    pub(super) fn new(outbox: Outbox, name: StreamName, place: u64) -> Self {
        if let Some(stream) = outbox.lock().stream(&name) {
            stream.join();
        }
        Self { outbox, name, place }
    }

    /// The number of the last message that it was given.
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// Safe to drop and call again.
    pub(crate) async fn take(&mut self) -> ReadPiece {
        loop {
            let outbox = self.outbox.clone();
            let mut woken = std::pin::pin!(outbox.0.filled.notified());
            woken.as_mut().enable();
            if let Some(taken) = self.look() {
                return taken;
            }
            woken.await;
        }
    }

    pub(super) fn look(&mut self) -> Option<ReadPiece> {
        let mut state = self.outbox.lock();
        let (end, last) = (state.end, state.last);
        let Some(stream) = state.stream(&self.name) else { return Some(ReadPiece::End(OutboxEnd::Closed)) };
        if self.place < stream.forgotten() || self.place > last {
            self.place = stream.sent();
            return Some(ReadPiece::Reset(self.place));
        }
        let messages = stream.take(self.place, PIECE_BYTES, Instant::now());
        let Some((number, _)) = messages.last() else { return end.map(ReadPiece::End) };
        self.place = *number;
        state.keep_within(KEPT_BYTES);
        drop(state);
        self.outbox.0.room.notify_waiters();
        Some(ReadPiece::Messages(messages))
    }

    /// The stream is still read, so what was sent long ago has arrived.
    pub(crate) fn forget_arrived(&self) {
        let Some(moment) = Instant::now().checked_sub(KEPT_TIME) else { return };
        if let Some(stream) = self.outbox.lock().stream(&self.name) {
            stream.forget_sent_before(moment, self.place);
        }
    }
}

impl Drop for OutboxReader {
    fn drop(&mut self) {
        if let Some(stream) = self.outbox.lock().stream(&self.name) {
            stream.leave();
        }
    }
}
