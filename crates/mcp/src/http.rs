//! Servers that are reached over HTTP: streamable HTTP, and what was there before it. Each message is a post;
//! answers come with it or as events. Follows no redirect to another place.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_core::legible::legible_line;
use attache_rpc::{MessageSink, MessageSource, Received, TraceLane};
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::client::in_words;
use crate::limits::{HTTP_MESSAGES, HTTP_NOTICE, HTTP_POSTS, LISTEN_AGAIN, MESSAGE_BYTES};
use crate::oauth::ServerAccess;

mod answers;
mod authorized;
mod outgoing;
mod probe;

use answers::{EventStream, is_events, refusal, request_id};
pub(crate) use answers::{limited, unreachable};
use authorized::{Unsent, send};
pub(crate) use outgoing::{address, has_authorization};
use outgoing::{client, header_map};
pub(crate) use probe::{ProbeWay, challenge};

const SESSION: &str = "mcp-session-id";
const REVISION: &str = "mcp-protocol-version";
const EVENTS: &str = "text/event-stream";

/// What is known of a server by everything that talks to it.
#[derive(Debug)]
struct HttpServer {
    client: Client,
    /// Where messages are posted; told by the server itself in the older way.
    post: Url,
    headers: HeaderMap,
    /// `None` where its entry says who we are.
    access: Option<Arc<ServerAccess>>,
    /// Why a lock: every post reads it, the first answer sets it. Held for a copy only.
    agreed: Mutex<Agreed>,
    incoming: mpsc::Sender<Bytes>,
    posts: Semaphore,
    /// Ends everything of this connection.
    over: CancellationToken,
}

#[derive(Clone, Debug, Default)]
struct Agreed {
    session: Option<HeaderValue>,
    revision: Option<HeaderValue>,
}

#[derive(Debug)]
pub(crate) struct HttpSource {
    incoming: mpsc::Receiver<Bytes>,
    over: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct HttpSink(Arc<HttpServer>);

/// Tells a connection what both sides agreed on; then it begins to listen.
#[derive(Debug)]
pub(crate) struct HttpAgreement(Arc<HttpServer>);

/// Reaches a server by streamable HTTP. Nothing is sent yet.
pub(crate) fn open(
    url: Url,
    headers: &[(String, String)],
    access: Option<Arc<ServerAccess>>,
) -> Result<(HttpSource, HttpSink, HttpAgreement), String> {
    let (server, source) = server(url, headers, access)?;
    Ok((source, HttpSink(server.clone()), HttpAgreement(server)))
}

/// Reaches a server in the older way: it says first where to post.
pub(crate) async fn open_sse(
    address: Url,
    headers: &[(String, String)],
    access: Option<Arc<ServerAccess>>,
    deadline: Duration,
) -> Result<(HttpSource, HttpSink), String> {
    let (listener, source) = server(address.clone(), headers, access)?;
    let asked =
        || listener.client.get(address.clone()).headers(listener.headers.clone()).header(ACCEPT, EVENTS);
    let opening = async {
        let response = send(listener.access.as_ref(), asked).await.map_err(Unsent::into_text)?;
        if !response.status().is_success() || !is_events(&response) {
            return Err(refusal(response).await);
        }
        let mut events = EventStream::new(response);
        match events.next().await {
            Some(event) if event.name == "endpoint" => Ok((event.data, events)),
            Some(_) | None => Err("it did not say where to post messages".to_owned()),
        }
    };
    let opened = tokio::time::timeout(deadline, opening).await;
    let late = || format!("it did not answer within {}", in_words(deadline));
    let (endpoint, mut events) = opened.map_err(|_| late())??;
    let post = address.join(endpoint.trim()).map_err(|error| format!("its address for messages: {error}"))?;
    if post.origin() != address.origin() {
        return Err(format!("it wants messages at another place ({})", origin(&post)));
    }
    let server = Arc::new(HttpServer {
        client: listener.client.clone(),
        post,
        headers: listener.headers.clone(),
        access: listener.access.clone(),
        agreed: Mutex::default(),
        incoming: listener.incoming.clone(),
        posts: Semaphore::new(HTTP_POSTS),
        over: listener.over.clone(),
    });
    let (over, incoming) = (server.over.clone(), server.incoming.clone());
    tokio::spawn(over.clone().run_until_cancelled_owned(async move {
        while let Some(event) = events.next().await {
            if incoming.send(event.data.into()).await.is_err() {
                break;
            }
        }
        over.cancel();
    }));
    Ok((source, HttpSink(server)))
}

fn server(
    post: Url,
    headers: &[(String, String)],
    access: Option<Arc<ServerAccess>>,
) -> Result<(Arc<HttpServer>, HttpSource), String> {
    let (incoming, received) = mpsc::channel(HTTP_MESSAGES);
    let over = CancellationToken::new();
    let server = HttpServer {
        client: client(&post)?,
        post,
        headers: header_map(headers)?,
        access,
        agreed: Mutex::default(),
        incoming,
        posts: Semaphore::new(HTTP_POSTS),
        over: over.clone(),
    };
    Ok((Arc::new(server), HttpSource { incoming: received, over }))
}

impl HttpAgreement {
    pub(crate) fn set(&self, revision: &str) {
        let revision = HeaderValue::from_str(revision).ok();
        self.0.agreed.lock().unwrap_or_else(PoisonError::into_inner).revision = revision;
        let server = self.0.clone();
        tokio::spawn(self.0.over.clone().run_until_cancelled_owned(async move { server.listen().await }));
    }
}

impl HttpServer {
    fn agreed(&self) -> Agreed {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn all_headers(&self) -> HeaderMap {
        let Agreed { session, revision } = self.agreed();
        let mut headers = self.headers.clone();
        let known = [(SESSION, session), (REVISION, revision)];
        for (name, value) in known.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            headers.insert(HeaderName::from_static(name), value);
        }
        headers
    }

    /// What the server says unasked. Many have nothing to say, and refuse.
    async fn listen(&self) {
        let mut last_event: Option<String> = None;
        loop {
            let asked = || {
                let asked = self.client.get(self.post.clone()).headers(self.all_headers());
                let asked = asked.header(ACCEPT, EVENTS);
                match &last_event {
                    Some(id) => asked.header("last-event-id", id),
                    None => asked,
                }
            };
            match send(self.access.as_ref(), asked).await {
                Ok(response) if response.status().is_success() && is_events(&response) => {
                    let mut events = EventStream::new(response);
                    while let Some(event) = events.next().await {
                        last_event = event.id.or(last_event);
                        if self.incoming.send(event.data.into()).await.is_err() {
                            return;
                        }
                    }
                }
                Ok(_) => return,
                Err(Unsent::NoAccess(problem)) => {
                    tracing::debug!(problem, "a server is not listened to");
                    return self.end_without_login();
                }
                Err(Unsent::Unreachable(problem)) => {
                    tracing::debug!(problem, "listening to a server failed");
                }
            }
            tokio::time::sleep(LISTEN_AGAIN).await;
        }
    }

    /// Posts one message. What is wrong becomes the answer to it.
    async fn post(&self, message: Bytes) {
        let Ok(_permit) = self.posts.acquire().await else { return };
        let id = request_id(&message);
        if let Err(problem) = self.exchange(message, id.is_some()).await {
            let Some(id) = id else {
                return tracing::debug!(problem, "a notification could not be posted");
            };
            let error = json!({ "code": -32000, "message": problem });
            let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
            // Nobody waits where the connection is over.
            drop(self.incoming.send(answer.to_string().into()).await);
        }
        self.end_without_login();
    }

    /// Whoever keeps the server waits for a login, and then begins anew.
    fn end_without_login(&self) {
        if self.needs_login() {
            self.over.cancel();
        }
    }

    fn needs_login(&self) -> bool {
        self.access.as_ref().is_some_and(|access| access.login_need().is_some())
    }

    async fn exchange(&self, message: Bytes, is_request: bool) -> Result<(), String> {
        let accepted = "application/json, text/event-stream";
        let asked = || {
            let asked = self.client.post(self.post.clone()).headers(self.all_headers());
            asked.header(CONTENT_TYPE, "application/json").header(ACCEPT, accepted).body(message.clone())
        };
        let response = send(self.access.as_ref(), asked).await.map_err(Unsent::into_text)?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.agreed().session.is_some() {
            // It has forgotten us: a new conversation begins.
            self.over.cancel();
            return Err("its session has ended".to_owned());
        }
        if !status.is_success() {
            return Err(refusal(response).await);
        }
        if let Some(session) = response.headers().get(SESSION) {
            let mut agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner);
            agreed.session.get_or_insert_with(|| session.clone());
        }
        if is_events(&response) {
            let mut events = EventStream::new(response);
            while let Some(event) = events.next().await {
                if self.incoming.send(event.data.into()).await.is_err() {
                    return Ok(());
                }
            }
            return Ok(());
        }
        let body = limited(response, MESSAGE_BYTES).await?;
        if !body.is_empty() && is_request {
            // Nobody waits where the connection is over.
            drop(self.incoming.send(body).await);
        }
        Ok(())
    }
}

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
            let posting =
                self.0.over.clone().run_until_cancelled_owned(async move { server.post(bytes).await });
            match request_id(message) {
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

fn origin(url: &Url) -> String {
    legible_line(&url.origin().ascii_serialization())
}
