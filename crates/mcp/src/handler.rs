//! Requests and notifications of a server. Answers at once, validates everything, never waits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_core::ids::CallId;
use attache_core::legible::legible_line;
use attache_core::ports::mcp::{ServerEntry, ServerSampling};
use attache_core::ports::{Delegate, SideModel};
use attache_rpc::{ErrorObject, Handler, IncomingRequest, Notification};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Mutex as Turn, MutexGuard as MutexGuardOf, Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::elicitation::OpenAddress;
use crate::limits::{PROGRESS_CHARACTERS, QUESTIONS};
use crate::listing::shortened;
use crate::sampling::SamplingBudget;
use crate::subscriptions::Subscriptions;

/// One word about a call that runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgressNews {
    pub(crate) progress: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<String>,
}

impl ProgressNews {
    /// On one line.
    pub(crate) fn line(&self) -> String {
        let numbers = match self.total {
            Some(total) => format!("{} of {total}", self.progress),
            None => self.progress.to_string(),
        };
        match &self.message {
            Some(message) => format!("{numbers}: {message}"),
            None => numbers,
        }
    }
}

/// What one connection hears. Shared by its reader and by everybody who waits for something.
#[derive(Debug)]
pub(crate) struct ServerEvents {
    /// The server's, for the log and for people.
    name: String,
    sampling: ServerSampling,
    roots: watch::Receiver<Vec<PathBuf>>,
    /// Shared by all connections to this server.
    subscriptions: Arc<Subscriptions>,
    /// Why a lock: users agree in other tasks than the reader's. Held for look-ups only.
    addresses: Mutex<Vec<OpenAddress>>,
    /// Why a lock: calls come and go in other tasks than the reader's. Held for look-ups only.
    calls: Mutex<BTreeMap<u64, RunningCallOf>>,
    last_token: AtomicU64,
    /// Questions to users that are open: no dead-line counts meanwhile.
    asking: AtomicUsize,
    /// Tools or prompts are others now.
    pub(crate) lists_changed: Notify,
    /// Other resources are watched now.
    pub(crate) watched_others: Notify,
    /// A message was longer than any may be, and skipped: it may have been an answer.
    pub(crate) skipped: Notify,
}

/// Whose call it is: a server may ask its user in the middle of it.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) call_id: CallId,
    pub(crate) client: Option<Arc<dyn Delegate>>,
    pub(crate) side_model: Option<Arc<dyn SideModel>>,
    /// Of the session.
    pub(crate) budget: Arc<SamplingBudget>,
    pub(crate) questions: Arc<CallQuestions>,
}

/// What the user was asked in one call.
#[derive(Debug)]
pub(crate) struct CallQuestions {
    /// One at a time: a server that asks a hundred things at once would cover the whole screen.
    turn: Turn<()>,
    left: AtomicUsize,
}

impl Default for CallQuestions {
    fn default() -> Self {
        Self { turn: Turn::default(), left: AtomicUsize::new(QUESTIONS) }
    }
}

impl CallQuestions {
    /// Waits for the questions before it; `None` where there were too many.
    pub(crate) async fn turn(&self) -> Option<MutexGuardOf<'_, ()>> {
        let turn = self.turn.lock().await;
        let one_less = |left: usize| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).ok().map(|_| turn)
    }
}

/// A person is being asked.
#[derive(Debug)]
pub(crate) struct AskingMark<'a>(&'a AtomicUsize);

impl Drop for AskingMark<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call that runs.
#[derive(Debug)]
struct RunningCallOf {
    news: mpsc::Sender<ProgressNews>,
    caller: Caller,
    /// Withdraws what its user was asked.
    over: CancellationToken,
}

/// A call that hears of its progress for as long as this lives.
#[derive(Debug)]
pub(crate) struct ProgressToken {
    pub(crate) number: u64,
    events: Arc<ServerEvents>,
}

impl Drop for ProgressToken {
    fn drop(&mut self) {
        if let Some(call) = self.events.running().remove(&self.number) {
            call.over.cancel();
        }
    }
}

impl ServerEvents {
    pub(crate) fn new(
        entry: &ServerEntry,
        roots: watch::Receiver<Vec<PathBuf>>,
        subscriptions: Arc<Subscriptions>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: entry.name.clone(),
            sampling: entry.sampling,
            roots,
            subscriptions,
            addresses: Mutex::default(),
            calls: Mutex::default(),
            asking: AtomicUsize::default(),
            last_token: AtomicU64::default(),
            lists_changed: Notify::new(),
            watched_others: Notify::new(),
            skipped: Notify::new(),
        })
    }

    /// News that are not taken in time are left out: the next one says more.
    pub(crate) fn listen(self: &Arc<Self>, caller: Caller) -> (ProgressToken, mpsc::Receiver<ProgressNews>) {
        let (news, heard) = mpsc::channel(8);
        let number = self.last_token.fetch_add(1, Ordering::Relaxed) + 1;
        let over = CancellationToken::new();
        self.running().insert(number, RunningCallOf { news, caller, over });
        (ProgressToken { number, events: self.clone() }, heard)
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, RunningCallOf>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    /// The last call whose caller can do this, and what ends with it.
    pub(crate) fn last_caller(&self, can: impl Fn(&Caller) -> bool) -> Option<(Caller, CancellationToken)> {
        let running = self.running();
        let call = running.values().rev().find(|call| can(&call.caller))?;
        Some((call.caller.clone(), call.over.clone()))
    }

    /// While this lives, a person is being asked: no call has a deadline meanwhile.
    pub(crate) fn asking(&self) -> AskingMark<'_> {
        self.asking.fetch_add(1, Ordering::Relaxed);
        AskingMark(&self.asking)
    }

    pub(crate) fn addresses(&self) -> MutexGuard<'_, Vec<OpenAddress>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sampling(&self) -> ServerSampling {
        self.sampling
    }

    pub(crate) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// As people are shown it.
    pub(crate) fn shown_name(&self) -> String {
        shortened(&self.name, 40)
    }

    fn progressed(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ProgressNotice {
            progress_token: Value,
            #[serde(default)]
            progress: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(default)]
            message: Option<String>,
        }
        let Some(Ok(news)) = params.map(|params| serde_json::from_str::<ProgressNotice>(params.get())) else {
            return;
        };
        let Some(number) = news.progress_token.as_u64() else { return };
        let message = news.message.map(|message| shortened(&message, PROGRESS_CHARACTERS));
        let news = ProgressNews { progress: news.progress, total: news.total, message };
        if let Some(call) = self.running().get(&number)
            && let Err(error) = call.news.try_send(news)
        {
            tracing::trace!(%error, "progress was left out");
        }
    }

    fn resource_changed(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Updated {
            uri: String,
        }
        if let Some(Ok(updated)) = params.map(|params| serde_json::from_str::<Updated>(params.get())) {
            self.subscriptions.changed(&updated.uri);
        }
    }

    fn logged(&self, params: Option<&RawValue>) {
        let text: String = params.map(RawValue::get).unwrap_or_default().chars().take(1_000).collect();
        tracing::debug!(server = self.name, message = legible_line(&text), "an MCP server says");
    }

    pub(crate) fn roots(&self) -> Value {
        let root = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            Some(json!({ "uri": Url::from_file_path(path).ok()?.as_str(), "name": name.unwrap_or_default() }))
        };
        let roots = self.roots.borrow();
        json!({ "roots": roots.iter().filter_map(root).collect::<Vec<_>>() })
    }
}

/// The events of one connection as its reader calls them.
#[derive(Debug)]
pub(crate) struct EventHandler(pub(crate) Arc<ServerEvents>);

impl Handler for EventHandler {
    fn request(&self, request: IncomingRequest) {
        let IncomingRequest { method, params, responder } = request;
        match method.as_str() {
            "ping" => responder.ok(&json!({})),
            "roots/list" => responder.ok(&self.0.roots()),
            "elicitation/create" => self.0.elicit(params.as_deref(), responder),
            "sampling/createMessage" => self.0.sample(params.as_deref(), responder),
            _ => responder.error(ErrorObject::method_not_found(&method)),
        }
    }

    fn notification(&self, notification: Notification) {
        let params = notification.params.as_deref();
        match notification.method.as_str() {
            "notifications/progress" => self.0.progressed(params),
            "notifications/tools/list_changed" | "notifications/prompts/list_changed" => {
                self.0.lists_changed.notify_one();
            }
            "notifications/resources/updated" => self.0.resource_changed(params),
            "notifications/elicitation/complete" => self.0.address_done(params),
            "notifications/message" => self.0.logged(params),
            _ => {}
        }
    }

    fn closed(&self) {}
}
