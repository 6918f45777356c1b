//! Carries the messages of a conversation: each that goes out is a post of its own, all that come in are one
//! row.

use std::io;
use std::time::Duration;

use attache_rpc::{MessageSink, MessageSource, Received, TraceLane};
use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::answers::{cancelled_id, request_id};
use super::authorized::{Unsent, send};
use super::{HttpSink, HttpSource};
use crate::limits::HTTP_NOTICE;

impl MessageSource for HttpSource {
    async fn receive(&mut self, _trace: Option<&TraceLane>) -> Received<'_> {
        tokio::select! {
            biased;
            message = self.incoming.recv() => match message {
                Some(message) => Received::Message(message.to_vec().into()),
                None => Received::End,
            },
            () = self.over.cancelled() => Received::End,
        }
    }
}

impl MessageSink for HttpSink {
    /// What wants no answer is there before what comes behind it: a server that is asked before it knows that
    /// we are ready answers for somebody else.
    async fn write(&mut self, messages: &[u8]) -> io::Result<usize> {
        for message in messages.split(|byte| *byte == b'\n').filter(|message| !message.is_empty()) {
            let (server, bytes) = (self.0.clone(), Bytes::copy_from_slice(message));
            let (id, over) = (request_id(message), self.0.over.child_token());
            if self.0.agreed().stateless.is_some() {
                if let Some(id) = &id {
                    self.0.under_way().insert(id.get().into(), over.clone());
                } else if let Some(id) = cancelled_id(message) {
                    // Such a server takes a closed stream for the cancellation.
                    self.0.under_way().remove(id.get()).inspect(CancellationToken::cancel);
                    continue;
                }
            }
            let key = id.as_deref().map(|id| Box::<str>::from(id.get()));
            let posting = async move {
                over.run_until_cancelled(server.post(bytes)).await;
                key.and_then(|key| server.under_way().remove(&key));
            };
            match id {
                Some(_) => drop(tokio::spawn(posting)),
                None if tokio::time::timeout(HTTP_NOTICE, posting).await.is_err() => {
                    tracing::debug!("a server does not take a notification");
                }
                None => {}
            }
        }
        Ok(messages.len())
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Tells the server, where there is something to end.
    async fn close(&mut self) -> io::Result<()> {
        self.0.over.cancel();
        if self.0.agreed().session.is_some() && !self.0.needs_login() {
            let server = self.0.clone();
            let ending = async move {
                let asked = || server.client.delete(server.post.clone()).headers(server.all_headers());
                let told = send(server.access.as_ref(), asked).await;
                if let Err(problem) = told.map_err(Unsent::into_text) {
                    tracing::debug!(problem, "a server could not be told that its session is over");
                }
            };
            tokio::spawn(tokio::time::timeout(Duration::from_secs(2), ending));
        }
        Ok(())
    }
}

impl Drop for HttpSink {
    fn drop(&mut self) {
        self.0.over.cancel();
    }
}
