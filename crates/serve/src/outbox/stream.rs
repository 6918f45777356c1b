//! One stream of an outbox: messages in order, the first of which a reader has taken.

use super::{Arc, Bytes, Instant, VecDeque, size};

#[derive(Debug)]
pub(super) struct OutMessage {
    pub(super) number: u64,
    /// Whose it is.
    pub(super) session: Option<Arc<str>>,
    pub(super) line: Bytes,
    /// When it was first given to a reader.
    pub(super) sent_at: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct OutStream {
    messages: VecDeque<OutMessage>,
    /// Up to this number messages were given to a reader.
    sent: u64,
    /// Up to this number they are not there any more.
    forgotten: u64,
    unread: usize,
    kept: usize,
    readers: usize,
}

impl OutStream {
    /// A new one: `before` is the last number that it can't have.
    pub(super) fn of(messages: VecDeque<OutMessage>, last: u64) -> Self {
        let before = messages.front().map_or(last, |first| first.number - 1);
        let unread = messages.iter().map(|message| size(&message.line)).sum();
        Self { messages, sent: before, forgotten: before, unread, kept: 0, readers: 0 }
    }

    pub(super) fn push(&mut self, message: OutMessage) {
        self.unread += size(&message.line);
        self.messages.push_back(message);
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    pub(super) fn unread(&self) -> usize {
        self.unread
    }

    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    pub(super) fn has_readers(&self) -> bool {
        self.readers > 0
    }

    pub(super) fn join(&mut self) {
        self.readers += 1;
    }

    pub(super) fn leave(&mut self) {
        // One that began while the stream made room for others was never counted.
        self.readers = self.readers.saturating_sub(1);
    }

    /// Messages behind a place, up to so many bytes but at least one; counted as sent.
    pub(super) fn take(&mut self, place: u64, bytes: usize, now: Instant) -> Vec<(u64, Bytes)> {
        let first = self.messages.partition_point(|message| message.number <= place);
        let (mut taken, mut total) = (Vec::new(), 0);
        for message in self.messages.range_mut(first..) {
            total += size(&message.line);
            if total > bytes && !taken.is_empty() {
                break;
            }
            if message.number > self.sent {
                self.sent = message.number;
                self.unread -= size(&message.line);
                self.kept += size(&message.line);
                message.sent_at = Some(now);
            }
            taken.push((message.number, message.line.clone()));
        }
        taken
    }

    /// False: nothing that was sent is there.
    pub(super) fn forget_first(&mut self) -> bool {
        let is_sent = self.messages.front().is_some_and(|message| message.number <= self.sent);
        let Some(message) = is_sent.then(|| self.messages.pop_front()).flatten() else { return false };
        self.forgotten = message.number;
        self.kept -= size(&message.line);
        true
    }

    pub(super) fn forget_up_to(&mut self, number: u64) {
        while self.messages.front().is_some_and(|message| message.number <= number) && self.forget_first() {}
    }

    /// Of what this one reader has been given: that was sent before this moment.
    pub(super) fn forget_sent_before(&mut self, moment: Instant, place: u64) {
        if self.readers != 1 {
            return;
        }
        let is_old = |message: &OutMessage| {
            message.number <= place && message.sent_at.is_some_and(|sent_at| sent_at < moment)
        };
        while self.messages.front().is_some_and(is_old) && self.forget_first() {}
    }

    pub(super) fn take_unread_of(&mut self, session: &str) -> VecDeque<OutMessage> {
        let sent = self.sent;
        let (taken, left): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.messages)
            .into_iter()
            .partition(|message| message.number > sent && message.session.as_deref() == Some(session));
        self.messages = left;
        self.unread -= taken.iter().map(|message| size(&message.line)).sum::<usize>();
        taken
    }
}
