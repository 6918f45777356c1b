//! A body of server-sent events: one message each, and a comment now and then while nothing is said.

use std::convert::Infallible;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::Stream;
use futures_util::StreamExt;

use crate::limits::KEEP_ALIVE;

/// Ends with the messages. None of them may hold a line break, as JSON on one line does not.
pub fn event_body(messages: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    let events = futures_util::stream::unfold(Box::pin(messages), |mut messages| async move {
        let piece = match tokio::time::timeout(KEEP_ALIVE, messages.next()).await {
            Ok(Some(message)) => framed(&message),
            Ok(None) => return None,
            Err(_) => Bytes::from_static(b": still here\n\n"),
        };
        Some((Ok::<_, Infallible>(piece), messages))
    });
    Body::from_stream(events)
}

fn framed(message: &[u8]) -> Bytes {
    let mut event = BytesMut::with_capacity(message.len() + 32);
    event.put_slice(b"event: message\ndata: ");
    event.put_slice(message);
    event.put_slice(b"\n\n");
    event.freeze()
}
