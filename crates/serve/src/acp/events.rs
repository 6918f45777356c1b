//! A stream of a connection as server-sent events, each with its number.

use std::convert::Infallible;

use attache_http::limits::KEEP_ALIVE;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};

use crate::outbox::{OutboxEnd, OutboxReader, ReadPiece};

/// Events beside messages. Their data is no object, so that clients that don't know them skip them.
const BYE: &[u8] = b"event: bye\ndata: \"the server goes down; come back later\"\n\n";
const STILL_HERE: &[u8] = b": still here\n\n";

/// Where a stream is between two pieces.
enum EventsState {
    Opening(OutboxReader),
    Open(OutboxReader),
    Over,
}

pub(super) fn event_stream(reader: OutboxReader) -> Response {
    let pieces = futures_util::stream::unfold(EventsState::Opening(reader), |state| async move {
        let (piece, state) = match state {
            // Proxies pass the head on with the first byte.
            EventsState::Opening(reader) => (Bytes::from_static(b": here\n\n"), EventsState::Open(reader)),
            EventsState::Open(reader) => next(reader).await?,
            EventsState::Over => return None,
        };
        Some((Ok::<_, Infallible>(piece), state))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    // nginx would collect events until its buffer is full.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

async fn next(mut reader: OutboxReader) -> Option<(Bytes, EventsState)> {
    match tokio::time::timeout(KEEP_ALIVE, reader.take()).await {
        Err(_) => {
            reader.forget_arrived();
            Some((Bytes::from_static(STILL_HERE), EventsState::Open(reader)))
        }
        Ok(ReadPiece::Messages(messages)) => Some((framed(&messages), EventsState::Open(reader))),
        Ok(ReadPiece::Reset(number)) => {
            let text = format!("event: reset\nid: {number}\ndata: \"load the session again\"\n\n");
            Some((text.into(), EventsState::Open(reader)))
        }
        Ok(ReadPiece::End(OutboxEnd::GoingDown)) => Some((Bytes::from_static(BYE), EventsState::Over)),
        Ok(ReadPiece::End(OutboxEnd::Closed)) => None,
    }
}

fn framed(messages: &[(u64, Bytes)]) -> Bytes {
    let size: usize = messages.iter().map(|(_, line)| line.len() + 40).sum();
    let mut piece = BytesMut::with_capacity(size);
    for (number, line) in messages {
        piece.put_slice(format!("id: {number}\ndata: ").as_bytes());
        piece.put_slice(line);
        piece.put_slice(b"\n\n");
    }
    piece.freeze()
}
