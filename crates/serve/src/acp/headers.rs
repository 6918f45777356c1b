//! The headers of ACP over HTTP, and what a browser gives in the address instead.

use std::borrow::Cow;

use attache_http::refusal;
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use axum::response::Response;

use crate::limits::SESSION_ID_BYTES;

pub(super) const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Our own: a WebSocket client that numbers events gives the last one it saw; empty at first.
pub(super) const ACP_LAST_EVENT_ID: HeaderName = HeaderName::from_static("acp-last-event-id");

/// Ours: how many messages of the client have arrived on the connection that it takes over.
pub(super) const ACP_RECEIVED: HeaderName = HeaderName::from_static("acp-received");

/// A header that may be there once; the error is the answer.
pub(super) fn header<'a>(head: &'a Parts, name: &HeaderName) -> Result<Option<&'a str>, Box<Response>> {
    let mut values = head.headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        (Ok(_), Some(_)) => Err(bad_request(&format!("the header `{name}` is there twice"))),
        (Err(_), _) => Err(bad_request(&format!("the header `{name}` is no plain text"))),
    }
}

/// From the header, or from the address: a browser's event stream can't set headers.
pub(super) fn header_or_query<'a>(
    head: &'a Parts,
    name: &HeaderName,
    key: &str,
) -> Result<Option<Cow<'a, str>>, Box<Response>> {
    if let Some(value) = header(head, name)? {
        return Ok(Some(value.into()));
    }
    let query = head.uri.query().unwrap_or_default();
    let mut values = url::form_urlencoded::parse(query.as_bytes()).filter(|(found, _)| found == key);
    let value = values.next().map(|(_, value)| value);
    match values.next() {
        Some(_) => Err(bad_request(&format!("`{key}` is there twice in the address"))),
        None => Ok(value),
    }
}

/// The session that a request is about, by its header.
pub(super) fn session_id(head: &Parts) -> Result<Option<Cow<'_, str>>, Box<Response>> {
    let session = header_or_query(head, &SESSION_ID, "sessionId")?;
    match &session {
        Some(id) if id.is_empty() || id.len() > SESSION_ID_BYTES => {
            Err(bad_request("`Acp-Session-Id` is no id of a session"))
        }
        Some(_) | None => Ok(session),
    }
}

/// A number of an event.
pub(super) fn event_number(text: &str) -> Result<u64, Box<Response>> {
    text.parse().map_err(|_| bad_request("the last event id is none of this connection: send it as it came"))
}

pub(super) fn bad_request(reason: &str) -> Box<Response> {
    Box::new(refusal(StatusCode::BAD_REQUEST, reason))
}
