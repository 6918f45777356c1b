//! Reads the body of a request: so many bytes, in so much time.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use thiserror::Error;

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BodyError {
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    #[error("the body did not come within {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("the body ended early")]
    Broken,
}

impl BodyError {
    /// The answer to the request.
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

pub async fn read_body(body: Body, most: usize, time: Duration) -> Result<Bytes, BodyError> {
    match tokio::time::timeout(time, Limited::new(body, most).collect()).await {
        Err(_) => Err(BodyError::TooSlow(time)),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge(most)),
        Ok(Err(_)) => Err(BodyError::Broken),
    }
}
