//! Servers that are reached over HTTP: streamable HTTP, and what was there before it. Each message is a post;
//! answers come with it or as events. Follows no redirect to another place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache_core::legible::legible_line;
use attache_rpc::ErrorObject;
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::client::in_words;
use crate::limits::{
    HTTP_MESSAGES, HTTP_POSTS, HTTP_RESUME_PAUSE, HTTP_RESUMES, LISTEN_AGAIN, MESSAGE_BYTES,
};
use crate::oauth::ServerAccess;

mod answers;
mod authorized;
mod carrier;
mod outgoing;
mod probe;
mod stateless;

use answers::{EventStream, Refusal, answered_id, is_events, refusal, refused, request_id};
pub(crate) use answers::{limited, unreachable};
use authorized::{Unsent, send};
pub(crate) use outgoing::{address, has_authorization};
use outgoing::{client, header_map};
pub(crate) use probe::{ProbeWay, challenge};
use stateless::headers_of;
pub(crate) use stateless::{HeaderArguments, header_arguments};

const SESSION: &str = "mcp-session-id";
const REVISION: &str = "mcp-protocol-version";
const EVENTS: &str = "text/event-stream";

/// State of a server that all its requests share.
#[derive(Debug)]
struct HttpServer {
    client: Client,
    /// Where messages are posted; servers of the older transport name it themselves.
    post: Url,
    headers: HeaderMap,
    /// `None` where its entry says who we are.
    access: Option<Arc<ServerAccess>>,
    /// Why a lock: every post reads it, the first answer sets it. Held for a copy only.
    agreed: Mutex<Agreed>,
    incoming: mpsc::Sender<Bytes>,
    posts: Semaphore,
    /// Why a lock: the writer begins and cancels posts, each of them ends in its own task. Held for look-ups
    /// only.
    under_way: Mutex<HashMap<Box<str>, CancellationToken>>,
    /// Ends everything of this connection.
    over: CancellationToken,
}

#[derive(Clone, Debug, Default)]
struct Agreed {
    session: Option<HeaderValue>,
    revision: Option<HeaderValue>,
    /// Headers for a stateless server; `None` for an initialized one.
    stateless: Option<Arc<HeaderArguments>>,
}

#[derive(Debug)]
pub(crate) struct HttpSource {
    incoming: mpsc::Receiver<Bytes>,
    over: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct HttpSink(Arc<HttpServer>);

/// Tells a connection what both sides agreed on.
#[derive(Clone, Debug)]
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
        under_way: Mutex::default(),
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
        under_way: Mutex::default(),
        over: over.clone(),
    };
    Ok((Arc::new(server), HttpSource { incoming: received, over }))
}

impl HttpAgreement {
    /// Initialized: from now on the server's own messages are received.
    pub(crate) fn set_greeted(&self, revision: &str) {
        let revision = HeaderValue::from_str(revision).ok();
        self.0.lock().revision = revision;
        let server = self.0.clone();
        tokio::spawn(self.0.over.clone().run_until_cancelled_owned(async move { server.listen().await }));
    }

    /// Stateless: each request is complete by itself.
    pub(crate) fn set_stateless(&self, revision: &'static str) {
        let revision = Some(HeaderValue::from_static(revision));
        *self.0.lock() = Agreed { session: None, revision, stateless: Some(Arc::default()) };
    }

    /// Which arguments go into headers as well, as the tools are listed now.
    pub(crate) fn set_header_arguments(&self, arguments: HeaderArguments) {
        let mut agreed = self.0.lock();
        if agreed.stateless.is_some() {
            agreed.stateless = Some(Arc::new(arguments));
        }
    }
}

impl HttpServer {
    fn lock(&self) -> MutexGuard<'_, Agreed> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn agreed(&self) -> Agreed {
        self.lock().clone()
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<Box<str>, CancellationToken>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_headers(&self) -> HeaderMap {
        let Agreed { session, revision, .. } = self.agreed();
        let mut headers = self.headers.clone();
        let known = [(SESSION, session), (REVISION, revision)];
        for (name, value) in known.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            headers.insert(HeaderName::from_static(name), value);
        }
        headers
    }

    /// The stream of the server's own messages. Many servers have none and refuse it.
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
                        if self.incoming.send(event.data.into()).await.is_err() {
                            return;
                        }
                    }
                    last_event = events.last_id().map(str::to_owned).or(last_event);
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
        if let Err(problem) = self.exchange(message, id.as_deref()).await {
            let Some(id) = id else {
                return tracing::debug!(problem, "a notification could not be posted");
            };
            self.give(error_answer(&id, &ErrorObject::new(-32000, problem))).await;
        }
        self.end_without_login();
    }

    /// `server` waits for a login, and then connects anew.
    fn end_without_login(&self) {
        if self.needs_login() {
            self.over.cancel();
        }
    }

    fn needs_login(&self) -> bool {
        self.access.as_ref().is_some_and(|access| access.login_need().is_some())
    }

    async fn exchange(&self, message: Bytes, id: Option<&RawValue>) -> Result<(), String> {
        let accepted = "application/json, text/event-stream";
        let more = self.agreed().stateless.map(|arguments| headers_of(&message, &arguments));
        let asked = || {
            let asked = self.client.post(self.post.clone()).headers(self.all_headers());
            let asked = asked.headers(more.clone().unwrap_or_default());
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
            return match (refused(response).await, id) {
                (Refusal::Error(error), Some(id)) => {
                    self.give(error_answer(id, &error)).await;
                    Ok(())
                }
                (Refusal::Error(error), None) => Err(error.to_string()),
                (Refusal::Said(text), _) => Err(text),
            };
        }
        if let Some(session) = response.headers().get(SESSION)
            && more.is_none()
        {
            self.lock().session.get_or_insert_with(|| session.clone());
        }
        if is_events(&response) {
            return self.take_events(response, id).await;
        }
        let body = limited(response, MESSAGE_BYTES).await?;
        if !body.is_empty() && id.is_some() {
            self.give(body).await;
        }
        Ok(())
    }

    /// It is dropped if the connection is over.
    async fn give(&self, message: Bytes) {
        drop(self.incoming.send(message).await);
    }

    /// All that comes with an answer. One that was cut off is asked for again where the server can go on.
    async fn take_events(&self, response: Response, id: Option<&RawValue>) -> Result<(), String> {
        let (mut events, mut last_event, mut is_answered) = (EventStream::new(response), None, id.is_none());
        let is_stateless = self.agreed().stateless.is_some();
        for _ in 0..=HTTP_RESUMES {
            while let Some(event) = events.next().await {
                is_answered = is_answered || answered_id(&event.data).as_deref() == id.map(RawValue::get);
                self.give(event.data.into()).await;
            }
            last_event = events.last_id().map(str::to_owned).or(last_event);
            if is_answered {
                return Ok(());
            }
            let Some(last_event) = last_event.as_ref().filter(|_| !is_stateless) else { break };
            tokio::time::sleep(HTTP_RESUME_PAUSE).await;
            let asked = || {
                let asked = self.client.get(self.post.clone()).headers(self.all_headers());
                asked.header(ACCEPT, EVENTS).header("last-event-id", last_event)
            };
            let response = send(self.access.as_ref(), asked).await.map_err(Unsent::into_text)?;
            if !response.status().is_success() || !is_events(&response) {
                break;
            }
            events = EventStream::new(response);
        }
        Err("its answer was cut off; it is unknown what the request did".to_owned())
    }
}

fn error_answer(id: &RawValue, error: &ErrorObject) -> Bytes {
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into()
}

fn origin(url: &Url) -> String {
    legible_line(&url.origin().ascii_serialization())
}
