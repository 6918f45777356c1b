//! One small HTTP question with limits on time and size; tells its failures apart. Knows no lists.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{RequestBuilder, Response};
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::DiscoverError;
use crate::endpoint::{BaseUrl, Endpoint};
use crate::failure::ProviderError;
use crate::http::Http;
use crate::limits::{ERROR_BODY_BYTES, MODEL_LIST_BYTES};
use crate::transport_error::{TransportError, TransportErrorKind};

/// What all questions to one server have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerQuery<'a> {
    http: &'a Http,
    pub(super) endpoint: &'a Endpoint,
    limits: AnswerLimits,
}

/// How long we wait and how much we read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerLimits {
    pub(crate) deadline: Duration,
    /// The same deadline as a moment, so that all questions together take no longer.
    until: Instant,
    bytes: usize,
}

/// A JSON answer, and where it came from.
#[derive(Clone, Debug)]
pub(super) struct JsonAnswer {
    pub(super) body: Value,
    url: String,
}

impl AnswerLimits {
    pub(crate) fn new(deadline: Duration, bytes: usize) -> Self {
        Self { deadline, until: Instant::now() + deadline, bytes }
    }
}

impl<'a> ServerQuery<'a> {
    pub(super) fn new(http: &'a Http, endpoint: &'a Endpoint, deadline: Duration) -> Self {
        Self { http, endpoint, limits: AnswerLimits::new(deadline, MODEL_LIST_BYTES) }
    }

    /// The same server, but with this much time from now on.
    pub(super) fn within(mut self, time: Duration) -> Self {
        self.limits.until = self.limits.until.min(Instant::now() + time);
        self
    }

    /// The address of a path below the base address.
    pub(super) fn url(&self, path: &str) -> Url {
        self.endpoint.base_url.join(path)
    }

    /// The address of a path below the host: a local server has its own routes beside `/v1`, not below it.
    pub(super) fn root_url(&self, path: &str) -> Url {
        let base = self.endpoint.base_url.as_str().trim_end_matches('/');
        let root = base.strip_suffix("/v1").and_then(|root| BaseUrl::parse(root).ok());
        root.as_ref().unwrap_or(&self.endpoint.base_url).join(path)
    }

    pub(super) async fn get(&self, url: &Url) -> Result<JsonAnswer, DiscoverError> {
        let client = self.client(url)?;
        self.send(client.get(url.clone()), url).await
    }

    pub(super) async fn post(&self, url: &Url, body: &Value) -> Result<JsonAnswer, DiscoverError> {
        let client = self.client(url)?;
        let request =
            client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body.to_string());
        self.send(request, url).await
    }

    fn client(&self, url: &Url) -> Result<&'a reqwest::Client, DiscoverError> {
        self.http
            .client(&self.endpoint.base_url)
            .map_err(|error| DiscoverError::Unreachable { url: url.to_string(), reason: error.to_string() })
    }

    async fn send(&self, request: RequestBuilder, url: &Url) -> Result<JsonAnswer, DiscoverError> {
        let request = request.headers(self.endpoint.headers());
        let words = |text: &str| self.endpoint.words(text);
        let bytes = bounded(request, url, self.limits, &words).await?;
        match serde_json::from_slice(&bytes) {
            Ok(body) => Ok(JsonAnswer { body, url: url.to_string() }),
            Err(_) => Err(DiscoverError::Nonsense {
                url: url.to_string(),
                words: words(&String::from_utf8_lossy(&bytes[..bytes.len().min(ERROR_BODY_BYTES)])),
            }),
        }
    }
}

impl JsonAnswer {
    pub(super) fn nonsense(&self, endpoint: &Endpoint) -> DiscoverError {
        DiscoverError::Nonsense {
            url: self.url.clone(),
            words: endpoint.words(&ProviderError::in_value(&self.body).message),
        }
    }
}

/// The body of a successful answer; anything else is an error with words for the user.
pub(crate) async fn bounded(
    request: RequestBuilder,
    url: &Url,
    limits: AnswerLimits,
    words: &(dyn Fn(&str) -> String + Sync),
) -> Result<Vec<u8>, DiscoverError> {
    let asked = async {
        let mut response = request.send().await.map_err(|error| unreachable(url, limits, &error, words))?;
        if !response.status().is_success() {
            return Err(refusal(response, url, words).await);
        }
        let mut bytes = Vec::new();
        loop {
            let piece = response.chunk().await.map_err(|error| unreachable(url, limits, &error, words))?;
            let Some(piece) = piece else { return Ok(bytes) };
            bytes.extend_from_slice(&piece);
            if bytes.len() > limits.bytes {
                let words = format!("more than {} MiB", limits.bytes / (1024 * 1024));
                return Err(DiscoverError::Nonsense { url: url.to_string(), words });
            }
        }
    };
    let too_slow = |_| DiscoverError::TooSlow { url: url.to_string(), after: limits.deadline };
    tokio::time::timeout_at(limits.until, asked).await.map_err(too_slow)?
}

fn unreachable(
    url: &Url,
    limits: AnswerLimits,
    error: &reqwest::Error,
    words: &(dyn Fn(&str) -> String + Sync),
) -> DiscoverError {
    if error.is_timeout() {
        return DiscoverError::TooSlow { url: url.to_string(), after: limits.deadline };
    }
    let TransportError { kind, reason } = TransportError::of(error);
    let (url, reason) = (url.to_string(), words(&reason));
    match kind {
        TransportErrorKind::Certificate => DiscoverError::Untrusted { url, reason },
        TransportErrorKind::Passing | TransportErrorKind::Lasting => {
            DiscoverError::Unreachable { url, reason }
        }
    }
}

async fn refusal(
    mut response: Response,
    url: &Url,
    words: &(dyn Fn(&str) -> String + Sync),
) -> DiscoverError {
    let status = response.status().as_u16();
    let is_page = is_page(response.headers());
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece);
        if body.len() >= ERROR_BODY_BYTES {
            break;
        }
    }
    body.truncate(ERROR_BODY_BYTES);
    let said = ProviderError::in_body(&body);
    // A page for a browser says nothing useful in a terminal.
    let words = if is_page { String::new() } else { words(&said.message) };
    let url = url.to_string();
    // Gemini answers 400 to an invalid key.
    let is_bad_key = status == 400
        && (said.message.contains("API key not valid") || said.message.contains("API_KEY_INVALID"));
    match status {
        401 | 403 => DiscoverError::KeyRefused { url, status, words },
        400 if is_bad_key => DiscoverError::KeyRefused { url, status, words },
        404 => DiscoverError::NoSuchPath { url, words },
        _ => DiscoverError::Refused { url, status, words },
    }
}

fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.starts_with("text/html")
}
