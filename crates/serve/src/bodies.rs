//! Bodies of requests: so many at the same moment as memory is set aside for.

use attache_http::limits::BODY_TIME;
use attache_http::{is_json, read_body, refusal};
use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use crate::acp::AcpConnections;
use crate::admission::RemoteCaller;

/// A body that is JSON by its head; the permit is held while it is worked on. The error is the answer.
pub(crate) async fn read_json(
    connections: &AcpConnections,
    head: &Parts,
    body: Body,
) -> Result<(Bytes, OwnedSemaphorePermit), Box<Response>> {
    let refuse = |status, reason: &str| Box::new(refusal(status, reason));
    if !is_json(&head.headers) {
        return Err(refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send it with `Content-Type: application/json`",
        ));
    }
    let is_plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !head.headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return Err(refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send it as it is, without `Content-Encoding`",
        ));
    }
    let most = connections.max_message_bytes();
    let stated = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let size: usize = stated.unwrap_or(most);
    if size > most {
        let reason = format!("the body is longer than {most} bytes (limits.max_line_bytes)");
        return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, &reason));
    }
    let (caller, admission) = (RemoteCaller::of(&head.extensions), connections.admission());
    admission.check_bytes(&caller).map_err(|refused| Box::new(refused.response()))?;
    let needed = u32::try_from(size.div_ceil(1024)).unwrap_or(u32::MAX);
    let memory = connections.bodies().acquire_many_owned(needed);
    let Ok(Ok(memory)) = tokio::time::timeout(BODY_TIME, memory).await else {
        let reason = "too many large messages are read at the moment; send it again";
        return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, reason));
    };
    match read_body(body, most, BODY_TIME).await {
        Ok(body) => {
            admission.spend_bytes(&caller, body.len());
            Ok((body, memory))
        }
        Err(error) => Err(refuse(error.status(), &error.to_string())),
    }
}
