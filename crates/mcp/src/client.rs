//! One conversation with a server: initializes, lists tools, calls them. Knows no transport and no session.

use std::sync::Arc;
use std::time::Duration;

use attache_core::legible::legible_line;
use attache_core::ports::mcp::{ServerDeadlines, ServerSampling};
use attache_rpc::{
    Connection, Handler, MessageSink, MessageSource, Options, Peer, Received, RequestError, TraceLane,
    UnusableLines,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::elicitation::ADDRESS_NEEDED;
use crate::handler::{Caller, EventHandler, ProgressNews, ServerEvents};
use crate::http::HttpAgreement;
use crate::limits::{CALL_TIME, DISCOVER_TIME, INPUT_ROUNDS, MESSAGE_BYTES, SERVER_REQUESTS};
use crate::listing::{ListedTool, Listing};

mod asking;
mod inputs;
mod stateless;
mod stateless_tasks;
mod tasks;

use inputs::ResultKind;
use stateless::{RequestMeta, STATELESS_REVISIONS};

/// The newest revision with `initialize`; servers answer with theirs, which may be older.
pub(crate) const REVISION: &str = "2025-11-25";

/// An initialized server.
#[derive(Clone, Debug)]
pub(crate) struct ServerClient {
    peer: Peer,
    events: Arc<ServerEvents>,
    deadlines: ServerDeadlines,
    has: ServerOffers,
    /// Metadata of every request to a stateless server; `None` for an initialized one.
    meta: Option<Arc<RequestMeta>>,
    agreement: Option<HttpAgreement>,
}

/// Its capabilities.
#[derive(Clone, Copy, Debug)]
struct ServerOffers {
    tools: bool,
    /// It notifies of changed lists of tools or prompts.
    list_changes: bool,
    resources: bool,
    /// It notifies of changed resources.
    subscriptions: bool,
    prompts: bool,
    completions: bool,
    tasks: bool,
}

/// A source that signals when it had to skip a message.
struct WatchedSource<S> {
    source: S,
    events: Arc<ServerEvents>,
}

impl<S: MessageSource> MessageSource for WatchedSource<S> {
    async fn receive(&mut self, trace: Option<&TraceLane>) -> Received<'_> {
        let received = self.source.receive(trace).await;
        match received {
            Received::Unusable(_) => self.events.skipped.notify_waiters(),
            Received::Message(_) | Received::End => {}
        }
        received
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
    #[serde(default)]
    capabilities: Capabilities,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Capabilities {
    tools: Option<ListCapabilities>,
    resources: Option<ResourceCapabilities>,
    prompts: Option<ListCapabilities>,
    completions: Option<IgnoredAny>,
    tasks: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListCapabilities {
    list_changed: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceCapabilities {
    subscribe: bool,
}

impl Capabilities {
    fn offers(&self) -> ServerOffers {
        ServerOffers {
            tools: self.tools.is_some(),
            list_changes: [&self.tools, &self.prompts].into_iter().flatten().any(|list| list.list_changed),
            resources: self.resources.is_some(),
            subscriptions: self.resources.as_ref().is_some_and(|resources| resources.subscribe),
            prompts: self.prompts.is_some(),
            completions: self.completions.is_some(),
            tasks: self.tasks.is_some(),
        }
    }
}

/// Our name and capabilities, as they are sent to a server.
fn introduction(events: &ServerEvents, roots: RootsChange) -> Value {
    let mut capabilities = json!({
        "roots": { "listChanged": roots == RootsChange::Told },
        "elicitation": { "form": {}, "url": {} },
    });
    if events.sampling() == ServerSampling::Asked {
        capabilities["sampling"] = json!({});
    }
    json!({
        "protocolVersion": REVISION,
        "capabilities": capabilities,
        "clientInfo": { "name": "attache", "title": "attache", "version": env!("CARGO_PKG_VERSION") },
    })
}

/// What becomes of a server whose session gets other roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootsChange {
    /// The server is notified.
    Told,
    /// Another one is started: what its sandbox mounts can't change.
    Another,
}

/// Begins a conversation. `agreement`: of a connection that has to know how both sides speak.
pub(crate) async fn connect(
    source: impl MessageSource,
    sink: impl MessageSink,
    events: Arc<ServerEvents>,
    deadlines: ServerDeadlines,
    roots: RootsChange,
    agreement: Option<&HttpAgreement>,
) -> Result<(ServerClient, Connection), String> {
    let options = Options {
        max_in_flight: SERVER_REQUESTS,
        cancellation: "notifications/cancelled",
        unusable: UnusableLines::Ignored,
        ..Options::default()
    };
    let handler: Arc<dyn Handler> = Arc::new(EventHandler(events.clone()));
    let watched = WatchedSource { source, events: events.clone() };
    let (peer, connection) = Peer::start(watched, sink, options, |_| handler);
    let params = introduction(&events, roots);
    let answer = peer.request("initialize", &params, Some(deadlines.connect)).await;
    let (has, meta) = match answer {
        Ok(answer) => greeted(&peer, &answer, agreement).await?,
        // A server without `initialize` says so: newer revisions have none.
        Err(RequestError::Remote(refusal)) => {
            if let Some(agreement) = agreement {
                agreement.set_stateless(STATELESS_REVISIONS[0]);
            }
            let deadline = deadlines.connect.min(DISCOVER_TIME);
            let (has, meta) = stateless::discover(&peer, &events, deadline, refusal).await?;
            (has, Some(Arc::new(meta)))
        }
        Err(error) => return Err(said(&error, "initialize", deadlines.connect)),
    };
    let client = ServerClient { peer, events, deadlines, has, meta, agreement: agreement.cloned() };
    client.watch_again();
    Ok((client, connection))
}

/// Completes the initialization.
async fn greeted(
    peer: &Peer,
    answer: &RawValue,
    agreement: Option<&HttpAgreement>,
) -> Result<(ServerOffers, Option<Arc<RequestMeta>>), String> {
    let hello: InitializeResult = serde_json::from_str(answer.get())
        .map_err(|error| format!("its answer to initialize is not understood: {error}"))?;
    if let Some(agreement) = agreement {
        agreement.set_greeted(&hello.protocol_version);
    }
    let initialized = peer.notify("notifications/initialized", &json!({})).await;
    initialized.map_err(|error| format!("it hung up: {error}"))?;
    Ok((hello.capabilities.offers(), None))
}

/// Why a call has no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// The server said so, or did not answer as it should.
    Refused(String),
    /// It is gone.
    Lost,
}

impl ServerClient {
    /// All its tools, page by page, and one of ours for its resources.
    pub(crate) async fn list_tools(&self) -> Result<Listing, String> {
        let mut listing = Listing::default();
        if self.has.tools {
            let (method, listed) = ("tools/list", &mut listing);
            let listing = self.pages(method, |page| listed.add(page)).await;
            listing.map_err(|failure| failure.said(method, self))?;
        }
        if let Some(agreement) = self.agreement.as_ref().filter(|_| self.meta.is_some()) {
            agreement.set_header_arguments(listing.take_header_arguments());
        }
        let ours = ListedTool::resources();
        if self.has.resources && listing.tools.iter().all(|tool| tool.name != ours.name) {
            listing.tools.push(ours);
        }
        Ok(listing)
    }

    /// One request, with the metadata that a stateless server needs in each.
    async fn ask(
        &self,
        method: &str,
        params: &Value,
        deadline: Option<Duration>,
    ) -> Result<Box<RawValue>, RequestError> {
        match &self.meta {
            None => self.peer.request(method, params, deadline).await,
            Some(meta) => self.peer.request(method, &meta.with(params), deadline).await,
        }
    }

    /// Calls a tool. Dropping the future sends a cancellation to the server.
    pub(crate) async fn call(
        &self,
        tool: &ListedTool,
        arguments: &Value,
        caller: &Caller,
        mut show: impl FnMut(ProgressNews),
    ) -> Result<Box<RawValue>, CallFailure> {
        let (token, mut news) = self.events.listen(caller.clone());
        let meta = json!({ "progressToken": token.number });
        let mut params = json!({ "name": tool.name, "arguments": arguments, "_meta": meta });
        let is_task = tool.is_task && self.has.tasks && self.meta.is_none();
        if is_task {
            params["task"] = tasks::wish();
        }
        let last = Instant::now() + CALL_TIME;
        for _ in 0..=INPUT_ROUNDS {
            let answer = self.answer_to_call(&params, &mut news, &mut show, caller, last).await?;
            if is_task {
                return self.follow(&answer, show, last).await;
            }
            match self.kind_of(&answer)? {
                ResultKind::Complete => return Ok(answer),
                ResultKind::Task => return self.follow_stateless(&answer, show, caller, last).await,
                ResultKind::Wants(wanted) => {
                    let answers = tokio::time::timeout_at(last, self.answers(&wanted, Some(caller))).await;
                    wanted.answer(&mut params, answers.map_err(|_| inputs::too_late())??);
                }
            }
        }
        Err(inputs::without_end())
    }

    /// One round of a call, with all that comes before its answer.
    async fn answer_to_call(
        &self,
        params: &Value,
        news: &mut mpsc::Receiver<ProgressNews>,
        show: &mut impl FnMut(ProgressNews),
        caller: &Caller,
        last: Instant,
    ) -> Result<Box<RawValue>, CallFailure> {
        let mut answer = std::pin::pin!(self.ask("tools/call", params, None));
        // From before the request on: none is missed.
        let mut skipped = std::pin::pin!(self.events.skipped.notified());
        skipped.as_mut().enable();
        let silence = self.deadlines.call;
        let mut until = Instant::now() + silence;
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return match answer {
                    Ok(answer) => Ok(answer),
                    Err(RequestError::Closed) => Err(CallFailure::Lost),
                    Err(RequestError::Remote(error)) if error.code == ADDRESS_NEEDED => {
                        Err(CallFailure::Refused(self.events.lead(&error, caller).await))
                    }
                    Err(error) => Err(CallFailure::Refused(said(&error, "tools/call", silence))),
                },
                () = &mut skipped => {
                    let longest = MESSAGE_BYTES / (1024 * 1024);
                    let text = format!("the server sent a message of more than {longest} MiB, which was skipped");
                    return Err(CallFailure::Refused(text));
                }
                Some(news) = news.recv() => {
                    until = (Instant::now() + silence).min(last);
                    show(news);
                }
                () = tokio::time::sleep_until(until) => {
                    if self.events.is_asking() && until < last {
                        until = (Instant::now() + silence).min(last);
                        continue;
                    }
                    return Err(CallFailure::Refused(format!(
                        "the server did not answer within {}; it was told to stop", in_words(silence)
                    )));
                }
            }
        }
    }
}

/// A dead-line of the configuration may be less than a second.
pub(crate) fn in_words(time: Duration) -> String {
    match time.as_millis() {
        millis if millis % 1_000 == 0 => format!("{} s", millis / 1_000),
        millis => format!("{millis} ms"),
    }
}

/// An error in words for people and models.
fn said(error: &RequestError, method: &str, deadline: Duration) -> String {
    match error {
        RequestError::Remote(error) => {
            let text: String = error.message.chars().take(1_000).collect();
            format!("{} (code {})", legible_line(text.trim()), error.code)
        }
        RequestError::Deadline => format!("it did not answer {method} within {}", in_words(deadline)),
        RequestError::Closed => format!("it ended before it answered {method}"),
        RequestError::Encode(error) => format!("{method} can't be written: {error}"),
    }
}
