//! What a connection has for its client: messages by stream, kept until they have surely arrived. Does no I/O.
//!
//! Every message has a number; the numbers of a stream only grow. A reader has a place, nothing else: one
//! that was cut off comes back with the number it saw last and gets what follows.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits::{KEPT_BYTES, KEPT_TIME, MESSAGE_OVERHEAD, SESSION_STREAMS, SESSION_UNREAD_BYTES};
use stream::{OutMessage, OutStream};

mod reader;
mod stream;

pub(crate) use reader::{OutboxReader, ReadPiece};

/// One of the streams of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StreamName {
    Connection,
    Session(Arc<str>),
}

/// Why nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutboxEnd {
    /// The connection is over.
    Closed,
    /// The server goes down; the client may come back to the next one.
    GoingDown,
}

/// Clones share one outbox.
#[derive(Clone, Debug)]
pub(crate) struct Outbox(Arc<OutboxShared>);

#[derive(Debug)]
struct OutboxShared {
    /// Why a lock: the connection's writer fills it while streams are read. Held for look-ups only.
    state: Mutex<OutboxState>,
    /// Wakes readers.
    filled: Notify,
    /// Wakes who waits to put more in.
    room: Notify,
    /// Unread bytes above which nothing more is taken in.
    max_unread_bytes: usize,
}

#[derive(Debug, Default)]
struct OutboxState {
    /// The number that was given out last.
    last: u64,
    connection: OutStream,
    sessions: HashMap<Arc<str>, OutStream>,
    end: Option<OutboxEnd>,
}

/// There are too many streams of sessions already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyStreams;

impl Outbox {
    pub(crate) fn new(max_unread_bytes: usize) -> Self {
        let (filled, room) = (Notify::new(), Notify::new());
        Self(Arc::new(OutboxShared { state: Mutex::default(), filled, room, max_unread_bytes }))
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message of `session`, or of the connection itself, where its client listens. False: it is over.
    pub(crate) fn put(&self, session: Option<&str>, line: Bytes) -> bool {
        let mut state = self.lock();
        if state.end.is_some() {
            return false;
        }
        state.last += 1;
        let number = state.last;
        let state = &mut *state;
        let found = session.and_then(|session| state.sessions.get_key_value(session));
        let session = match found {
            Some((name, _)) => Some(name.clone()),
            None => session.map(Arc::from),
        };
        let stream = match session.as_ref().and_then(|name| state.sessions.get_mut(name)) {
            Some(stream) => stream,
            None => &mut state.connection,
        };
        stream.push(OutMessage { number, session, line, sent_at: None });
        self.0.filled.notify_waiters();
        true
    }

    /// Resolves when more may be put in, or nothing can be.
    pub(crate) async fn room(&self) {
        self.wait_for_room(|state| state.unread() < self.0.max_unread_bytes).await;
    }

    /// Waits for room for updates of one session.
    pub(crate) async fn room_for(&self, session: &str) {
        self.wait_for_room(|state| {
            let stream = state.sessions.get(session).unwrap_or(&state.connection);
            stream.unread() < SESSION_UNREAD_BYTES
        })
        .await;
    }

    async fn wait_for_room(&self, is_there: impl Fn(&OutboxState) -> bool) {
        loop {
            let mut woken = std::pin::pin!(self.0.room.notified());
            woken.as_mut().enable();
            {
                let state = self.lock();
                if state.end.is_some() || is_there(&state) {
                    return;
                }
            }
            woken.await;
        }
    }

    /// A reader that starts at the first unsent message.
    pub(crate) fn read(&self, name: StreamName) -> Result<OutboxReader, TooManyStreams> {
        let place = self.lock().open(&name)?.sent();
        Ok(OutboxReader::new(self.clone(), name, place))
    }

    /// A reader that begins behind the message of this number.
    pub(crate) fn read_behind(&self, name: StreamName, number: u64) -> Result<OutboxReader, TooManyStreams> {
        let mut state = self.lock();
        let last = state.last;
        let sent = state.open(&name)?.sent();
        drop(state);
        // A reader has seen no more of a stream than was sent on it, but a number of another connection may be
        // any.
        let place = if number > last { number } else { number.min(sent) };
        Ok(OutboxReader::new(self.clone(), name, place))
    }

    /// Whether everything behind this number of the connection's stream is still there.
    pub(crate) fn can_resume(&self, number: u64) -> bool {
        let state = self.lock();
        number <= state.last && number >= state.connection.forgotten()
    }

    /// The client has seen everything of the connection's stream up to this number.
    pub(crate) fn acknowledge(&self, number: u64) {
        self.lock().connection.forget_up_to(number);
    }

    /// Whether any of its streams has a reader.
    pub(crate) fn is_read(&self) -> bool {
        let state = self.lock();
        state.connection.has_readers() || state.sessions.values().any(OutStream::has_readers)
    }

    /// Nothing more is taken in; what is there can still be read.
    pub(crate) fn end(&self, end: OutboxEnd) {
        self.lock().end.get_or_insert(end);
        self.0.filled.notify_waiters();
        self.0.room.notify_waiters();
    }
}

impl OutboxState {
    fn unread(&self) -> usize {
        self.connection.unread() + self.sessions.values().map(OutStream::unread).sum::<usize>()
    }

    fn kept(&self) -> usize {
        self.connection.kept() + self.sessions.values().map(OutStream::kept).sum::<usize>()
    }

    fn stream(&mut self, name: &StreamName) -> Option<&mut OutStream> {
        match name {
            StreamName::Connection => Some(&mut self.connection),
            StreamName::Session(session) => self.sessions.get_mut(session),
        }
    }

    /// What waits of a session on the connection's stream goes to its own when that is opened: else what
    /// follows could overtake it.
    fn open(&mut self, name: &StreamName) -> Result<&mut OutStream, TooManyStreams> {
        let StreamName::Session(session) = name else { return Ok(&mut self.connection) };
        if !self.sessions.contains_key(session) {
            if self.sessions.len() >= SESSION_STREAMS {
                self.sessions.retain(|_, stream| stream.has_readers() || stream.unread() > 0);
            }
            if self.sessions.len() >= SESSION_STREAMS {
                return Err(TooManyStreams);
            }
            let waiting = self.connection.take_unread_of(session);
            self.sessions.insert(session.clone(), OutStream::of(waiting, self.last));
        }
        self.sessions.get_mut(session).ok_or(TooManyStreams)
    }

    /// Forgets what was sent first, of the stream that has most of it.
    fn keep_within(&mut self, most: usize) {
        while self.kept() > most {
            let largest = self.sessions.values_mut().max_by_key(|stream| stream.kept());
            let stream = match largest {
                Some(stream) if stream.kept() > self.connection.kept() => stream,
                Some(_) | None => &mut self.connection,
            };
            if !stream.forget_first() {
                return;
            }
        }
    }
}

fn size(line: &Bytes) -> usize {
    line.len() + MESSAGE_OVERHEAD
}

#[cfg(test)]
mod tests;
