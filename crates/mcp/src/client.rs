//! One conversation with a server: says hello, lists tools, calls them. Knows no transport and no session.

use std::sync::Arc;
use std::time::Duration;

use attache_core::legible::legible_line;
use attache_core::ports::mcp::ServerDeadlines;
use attache_rpc::{
    Connection, Handler, MessageSink, MessageSource, Options, Peer, Received, RequestError, TraceLane,
    UnusableLines,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::handler::{Caller, EventHandler, ProgressNews, ServerEvents};
use crate::limits::{CALL_TIME, LIST_PAGES, MESSAGE_BYTES, SERVER_REQUESTS};
use crate::listing::{ListedTool, Listing};
use crate::resources;

/// The newest revision that this client knows; servers answer with theirs, which may be older.
pub(crate) const REVISION: &str = "2025-11-25";

/// A server that has said hello.
#[derive(Clone, Debug)]
pub(crate) struct ServerClient {
    peer: Peer,
    events: Arc<ServerEvents>,
    deadlines: ServerDeadlines,
    has_tools: bool,
    has_resources: bool,
}

/// A source that tells when it had to skip a message.
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

/// Begins a conversation. `agreed` is told the revision that both sides speak.
pub(crate) async fn connect(
    source: impl MessageSource,
    sink: impl MessageSink,
    events: Arc<ServerEvents>,
    deadlines: ServerDeadlines,
    agreed: impl FnOnce(&str),
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
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Hello {
        protocol_version: String,
        #[serde(default)]
        capabilities: Capabilities,
    }
    #[derive(Default, Deserialize)]
    struct Capabilities {
        #[serde(default)]
        tools: Option<serde::de::IgnoredAny>,
        #[serde(default)]
        resources: Option<serde::de::IgnoredAny>,
    }
    let params = json!({
        "protocolVersion": REVISION,
        "capabilities": { "roots": { "listChanged": false }, "elicitation": { "form": {} } },
        "clientInfo": { "name": "attache", "title": "attache", "version": env!("CARGO_PKG_VERSION") },
    });
    let answer = peer.request("initialize", &params, Some(deadlines.connect)).await;
    let answer = answer.map_err(|error| said(&error, "initialize", deadlines.connect))?;
    let hello: Hello = serde_json::from_str(answer.get())
        .map_err(|error| format!("its answer to initialize is not understood: {error}"))?;
    agreed(&hello.protocol_version);
    let initialized = peer.notify("notifications/initialized", &json!({})).await;
    initialized.map_err(|error| format!("it hung up: {error}"))?;
    let Capabilities { tools, resources } = hello.capabilities;
    let (has_tools, has_resources) = (tools.is_some(), resources.is_some());
    Ok((ServerClient { peer, events, deadlines, has_tools, has_resources }, connection))
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
        if self.has_tools {
            self.list_pages(&mut listing).await?;
        }
        let ours = ListedTool::resources();
        if self.has_resources && listing.tools.iter().all(|tool| tool.name != ours.name) {
            listing.tools.push(ours);
        }
        Ok(listing)
    }

    async fn list_pages(&self, listing: &mut Listing) -> Result<(), String> {
        let mut cursor = None;
        for _ in 0..LIST_PAGES {
            let params = match &cursor {
                Some(cursor) => json!({ "cursor": cursor }),
                None => json!({}),
            };
            let page = self.peer.request("tools/list", &params, Some(self.deadlines.list)).await;
            let page = page.map_err(|error| said(&error, "tools/list", self.deadlines.list))?;
            let next: Option<String> = listing.add(&page)?;
            if next.is_none() || next == cursor {
                return Ok(());
            }
            cursor = next;
        }
        Ok(())
    }

    /// What its resources are, or what one of them holds, as the result of a call.
    pub(crate) async fn resources(&self, uri: Option<&str>) -> Result<Box<RawValue>, CallFailure> {
        let refused = |error: &RequestError, method: &str| match error {
            RequestError::Closed => CallFailure::Lost,
            error => CallFailure::Refused(said(error, method, self.deadlines.list)),
        };
        let Some(uri) = uri else {
            let mut text = String::new();
            for method in ["resources/list", "resources/templates/list"] {
                // A server with resources need not have templates.
                match self.peer.request(method, &json!({}), Some(self.deadlines.list)).await {
                    Ok(page) => text.push_str(&resources::listed(&page)),
                    Err(error) if method == "resources/list" => return Err(refused(&error, method)),
                    Err(_) => {}
                }
            }
            return resources::as_text(&text).ok_or(CallFailure::Lost);
        };
        let (method, params) = ("resources/read", json!({ "uri": uri }));
        let read = self.peer.request(method, &params, Some(self.deadlines.call)).await;
        let read = read.map_err(|error| refused(&error, method))?;
        resources::as_result(&read).map_err(CallFailure::Refused)
    }

    /// Calls a tool. Dropped before it is done, the server is told that nobody waits.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        caller: Caller,
        mut show: impl FnMut(ProgressNews),
    ) -> Result<Box<RawValue>, CallFailure> {
        let (token, mut news) = self.events.listen(caller);
        let meta = json!({ "progressToken": token.number });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let mut answer = std::pin::pin!(self.peer.request("tools/call", &params, None));
        // From before the request on: none is missed.
        let mut skipped = std::pin::pin!(self.events.skipped.notified());
        skipped.as_mut().enable();
        let silence = self.deadlines.call;
        let last = tokio::time::Instant::now() + CALL_TIME;
        let mut until = tokio::time::Instant::now() + silence;
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer.map_err(|error| match error {
                    RequestError::Closed => CallFailure::Lost,
                    error => CallFailure::Refused(said(&error, "tools/call", silence)),
                }),
                () = &mut skipped => {
                    let longest = MESSAGE_BYTES / (1024 * 1024);
                    let text = format!("the server sent a message of more than {longest} MiB, which was skipped");
                    return Err(CallFailure::Refused(text));
                }
                Some(news) = news.recv() => {
                    until = (tokio::time::Instant::now() + silence).min(last);
                    show(news);
                }
                () = tokio::time::sleep_until(until) => {
                    if self.events.is_asking() && until < last {
                        until = (tokio::time::Instant::now() + silence).min(last);
                        continue;
                    }
                    return Err(CallFailure::Refused(format!(
                        "the server did not answer within {} s; it was told to stop", silence.as_secs()
                    )));
                }
            }
        }
    }
}

/// An error in words for people and models.
fn said(error: &RequestError, method: &str, deadline: Duration) -> String {
    match error {
        RequestError::Remote(error) => {
            let text: String = error.message.chars().take(1_000).collect();
            format!("{} (code {})", legible_line(text.trim()), error.code)
        }
        RequestError::Deadline => format!("it did not answer {method} within {} s", deadline.as_secs()),
        RequestError::Closed => format!("it ended before it answered {method}"),
        RequestError::Encode(error) => format!("{method} can't be written: {error}"),
    }
}
