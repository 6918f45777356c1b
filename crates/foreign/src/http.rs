//! Talks to a server: posts, tries again while nothing was said, reads what it streams, and says in words why
//! not. Follows no redirect, and asks servers on this machine through no proxy.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::Value;
use url::Url;

use crate::events::{Event, SseReader};
use crate::limits::{ANSWER, CONNECT, IDLE, REFUSAL_BYTES, REFUSAL_CHARACTERS, RETRY_PAUSE, TRIES};
use crate::{ForeignError, Headers};

const EVENTS: &str = "text/event-stream";

/// A server that is talked to.
#[derive(Clone, Debug)]
pub(crate) struct HttpPeer {
    client: Client,
    headers: Headers,
    /// As errors name it: without a query, which may hold a key. The configuration takes no name and password.
    name: String,
}

/// What is asked of it.
#[derive(Debug)]
pub(crate) struct Post<'a> {
    pub(crate) url: &'a Url,
    pub(crate) body: &'a Value,
}

impl HttpPeer {
    pub(crate) fn new(url: &Url, headers: Headers) -> Result<Self, ForeignError> {
        // Somebody who embeds us may have chosen another provider already; then that one is used.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut builder = Client::builder()
            .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none());
        if url.scheme() == "http" {
            // Reading the machine's certificates takes longer than a whole answer.
            builder = builder.tls_certs_only([]);
        }
        if is_loopback(url) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| ForeignError::new(error.to_string()))?;
        let mut shown = url.clone();
        shown.set_query(None);
        shown.set_fragment(None);
        Ok(Self { client, headers, name: shown.to_string() })
    }

    /// Posts, and gives the stream of events that answers. Tried again while no byte of an answer came.
    pub(crate) async fn stream(&self, post: Post<'_>) -> Result<EventFeed, ForeignError> {
        let response = self.send(Method::POST, post.url, Some(post.body), EVENTS).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        if !kind.to_ascii_lowercase().starts_with(EVENTS) {
            let shown = if kind.is_empty() { "no media type" } else { kind.as_str() };
            let body = self.headers.cut(&start_of(response).await);
            let text =
                format!("{} answered with {shown} instead of {EVENTS}; is this its address?", self.name);
            return Err(ForeignError::new(text).with_details(body));
        }
        Ok(EventFeed {
            server: self.name.clone(),
            bytes: Mutex::new(response.bytes_stream().boxed()),
            reader: SseReader::default(),
        })
    }

    /// Asks for one JSON value. `None`: there is no such thing.
    pub(crate) async fn json(
        &self,
        method: Method,
        url: &Url,
        body: Option<&Value>,
    ) -> Result<Option<Value>, ForeignError> {
        let asked = async {
            let response = match self.send(method, url, body, "application/json").await {
                Ok(response) => response,
                Err(error) if error.details.as_deref() == Some(NOT_FOUND) => return Ok(None),
                Err(error) => return Err(error),
            };
            let bytes = response.bytes().await.map_err(|error| self.unreachable(&error))?;
            if bytes.is_empty() {
                return Ok(Some(Value::Null));
            }
            let read = serde_json::from_slice(&bytes);
            read.map(Some).map_err(|error| ForeignError::new(format!("{} sent no JSON: {error}", self.name)))
        };
        match tokio::time::timeout(ANSWER, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(self.silent(ANSWER)),
        }
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        body: Option<&Value>,
        accept: &str,
    ) -> Result<Response, ForeignError> {
        let mut pause = RETRY_PAUSE;
        for tried in 1.. {
            let mut request = self.client.request(method.clone(), url.clone()).headers(self.headers.map());
            request = request.header(ACCEPT, accept);
            if let Some(body) = body {
                request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
            }
            let answered = tokio::time::timeout(IDLE, request.send()).await;
            let (error, wait) = match answered {
                Err(_) => return Err(self.silent(IDLE)),
                Ok(Ok(response)) if response.status().is_success() => return Ok(response),
                Ok(Ok(response)) => {
                    let again = is_passing(response.status());
                    let wait = retry_after(&response).unwrap_or(pause);
                    let refusal = self.refusal(response).await;
                    if !again {
                        return Err(refusal);
                    }
                    (refusal, wait)
                }
                // The server was not reached: nothing has begun there.
                Ok(Err(error)) if error.is_connect() => (self.unreachable(&error), pause),
                Ok(Err(error)) => return Err(self.unreachable(&error)),
            };
            if tried >= TRIES {
                return Err(error);
            }
            tracing::debug!(%error, tried, "an agent is asked again");
            tokio::time::sleep(wait).await;
            pause *= 2;
        }
        Err(ForeignError::new(format!("{} was never asked", self.name)))
    }

    async fn refusal(&self, response: Response) -> ForeignError {
        let status = response.status();
        let body = self.headers.cut(&start_of(response).await);
        let told = told_in(&body);
        let said = if told.is_empty() { String::new() } else { format!(": {told}") };
        let text = format!("{} answered {status}{said}", self.name);
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                ForeignError::of_credentials(format!("{text}; look at `headers` of the agent"))
            }
            StatusCode::NOT_FOUND => ForeignError::new(text).with_details(NOT_FOUND),
            _ => ForeignError::new(text).with_details(body),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> ForeignError {
        let mut why = String::new();
        let mut source: Option<&dyn std::error::Error> = Some(error);
        while let Some(error) = source {
            why = error.to_string();
            source = error.source();
        }
        let what = if error.is_connect() { "can't be reached" } else { "broke off" };
        let hint = if error.is_connect() { "; is the agent started?" } else { "" };
        ForeignError::new(format!("{} {what}: {why}{hint}", self.name))
    }

    fn silent(&self, time: Duration) -> ForeignError {
        ForeignError::new(format!("{} said nothing for {} s", self.name, time.as_secs()))
    }
}

/// Marks the refusal of something that is not there.
const NOT_FOUND: &str = "not found";

/// The events of one answer.
pub(crate) struct EventFeed {
    server: String,
    /// Why a lock: a body may be sent to another thread but not shared, and a run has to be. Never held.
    bytes: Mutex<BoxStream<'static, reqwest::Result<Bytes>>>,
    reader: SseReader,
}

impl std::fmt::Debug for EventFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventFeed").field("server", &self.server).finish_non_exhaustive()
    }
}

impl EventFeed {
    /// The next event; `None` at the end of the stream. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, ForeignError> {
        loop {
            match self.reader.next() {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(_) => {
                    let text = format!("{} sent an event that is too large", self.server);
                    return Err(ForeignError::new(text));
                }
            }
            let bytes = self.bytes.get_mut().unwrap_or_else(PoisonError::into_inner);
            let read = tokio::time::timeout(IDLE, bytes.next()).await;
            let silent =
                || ForeignError::new(format!("{} said nothing for {} s", self.server, IDLE.as_secs()));
            match read.map_err(|_| silent())? {
                Some(Ok(bytes)) => self.reader.feed(&bytes),
                Some(Err(error)) => {
                    let text = format!("{} broke off in the middle of its answer", self.server);
                    return Err(ForeignError::new(text).with_details(error.to_string()));
                }
                None => return Ok(None),
            }
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// What passes by itself.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds: u64 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds.min(30)))
}

async fn start_of(mut response: Response) -> String {
    let mut body = Vec::new();
    while body.len() < REFUSAL_BYTES
        && let Ok(Ok(Some(piece))) = tokio::time::timeout(ANSWER, response.chunk()).await
    {
        body.extend_from_slice(&piece);
    }
    body.truncate(REFUSAL_BYTES);
    String::from_utf8_lossy(&body).into_owned()
}

/// What a body says, in a line: the message of a JSON error, else its text.
fn told_in(body: &str) -> String {
    let value: Option<Value> = serde_json::from_str(body).ok();
    let text = value.as_ref().and_then(|value| {
        let named = ["/error/message", "/error", "/message", "/detail"];
        named.iter().find_map(|path| value.pointer(path)?.as_str())
    });
    let text = text.unwrap_or(body);
    // A page is for a browser.
    if text.trim_start().starts_with('<') {
        return String::new();
    }
    let line = attache_core::legible::legible_line(text);
    line.chars().take(REFUSAL_CHARACTERS).collect()
}
