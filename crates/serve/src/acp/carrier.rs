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
        match self.next().await {
            Some(message) => {
                if let Some(trace) = trace {
                    trace.record_incoming(&message);
                    trace.record_incoming(b"\n");
                }
                Received::Message(Vec::from(message).into())
            }
            None => Received::End,
        }
    }
}

impl InboxSource {
    /// What was taken in before the end comes before it.
    async fn next(&mut self) -> Option<Bytes> {
        tokio::select! {
            biased;
            message = self.received.recv() => return message,
            () = self.over.cancelled() => self.received.close(),
        }
        self.received.recv().await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_taken_in_before_the_end_comes_before_it() {
        let (says, received) = mpsc::channel(8);
        let over = CancellationToken::new();
        let mut source = InboxSource { received, over: over.clone() };
        for text in ["one", "two"] {
            says.send(Bytes::from_static(text.as_bytes())).await.unwrap();
        }
        // On its way in when the end comes.
        let late = says.reserve().await.unwrap();
        over.cancel();
        for text in ["one", "two"] {
            assert_eq!(source.receive(None).await, Received::Message(text.as_bytes().into()));
        }
        late.send(Bytes::from_static(b"three"));
        assert_eq!(source.receive(None).await, Received::Message(b"three".as_slice().into()));
        assert_eq!(source.receive(None).await, Received::End);
        assert!(says.send(Bytes::new()).await.is_err());
    }
}
