//! The ends of a connection that the agent holds: messages come from a queue that carriers fill, and go to the
//! outbox that they read.

use std::io;
use std::sync::Arc;

use attache_acp::SessionPace;
use attache_core::ids::SessionId;
use attache_core::ports::BoxFuture;
use attache_rpc::{MessageSink, MessageSource, Received, TraceLane};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::routes::Routes;
use crate::limits::PIECE_BYTES;
use crate::outbox::Outbox;

/// What the client said, in its order.
pub(super) struct InboxSource {
    pub(super) received: mpsc::Receiver<Bytes>,
    pub(super) over: CancellationToken,
}

impl MessageSource for InboxSource {
    async fn receive(&mut self, trace: Option<&TraceLane>) -> Received<'_> {
        tokio::select! {
            biased;
            () = self.over.cancelled() => Received::End,
            message = self.received.recv() => match message {
                Some(message) => {
                    if let Some(trace) = trace {
                        trace.record_incoming(&message);
                        trace.record_incoming(b"\n");
                    }
                    Received::Message(Vec::from(message).into())
                }
                None => Received::End,
            },
        }
    }
}

/// Gives each message to the stream that its client hears it on. Waits where too much is unread.
pub(super) struct OutboxSink {
    pub(super) outbox: Outbox,
    pub(super) routes: Arc<Routes>,
}

impl MessageSink for OutboxSink {
    async fn write(&mut self, messages: &[u8]) -> io::Result<usize> {
        self.outbox.room().await;
        let mut done = 0;
        while done < messages.len().min(PIECE_BYTES) {
            let rest = &messages[done..];
            let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |newline| newline + 1);
            self.put(rest[..end].trim_ascii_end())?;
            done += end;
        }
        Ok(done)
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl OutboxSink {
    fn put(&self, line: &[u8]) -> io::Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        let line = Bytes::copy_from_slice(line);
        if self.routes.take_hello(&line) {
            return Ok(());
        }
        match self.outbox.put(self.routes.session_of(&line).as_deref(), line) {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Holds up the updates of a session whose stream is not read, and nothing else.
#[derive(Debug)]
pub(super) struct OutboxPace(pub(super) Outbox);

impl SessionPace for OutboxPace {
    fn room_for(&self, session: &SessionId) -> BoxFuture<'static, ()> {
        let (outbox, session) = (self.0.clone(), session.clone());
        Box::pin(async move { outbox.room_for(session.as_str()).await })
    }
}
