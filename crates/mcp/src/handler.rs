//! What a server asks and tells by itself. Answers at once and believes nothing; never waits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_core::ids::CallId;
use attache_core::legible::legible_line;
use attache_core::ports::Delegate;
use attache_core::ports::delegate::{Form, FormAnswer};
use attache_rpc::{ErrorObject, Handler, IncomingRequest, Notification, Responder};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::limits::{PROGRESS_CHARACTERS, QUESTION_CHARACTERS};
use crate::listing::shortened;

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
    /// The server's, for the log.
    name: String,
    roots: Vec<PathBuf>,
    /// Why a lock: calls come and go in other tasks than the reader's. Held for look-ups only.
    calls: Mutex<BTreeMap<u64, RunningCallOf>>,
    last_token: AtomicU64,
    /// Questions to users that are open: nobody is held to a dead-line meanwhile.
    asking: AtomicUsize,
    pub(crate) tools_changed: Notify,
    /// A message was longer than any may be, and skipped: it may have been an answer.
    pub(crate) skipped: Notify,
}

/// Whose call it is: a server may ask its user in the middle of it.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) call_id: CallId,
    pub(crate) client: Option<Arc<dyn Delegate>>,
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
    pub(crate) fn new(name: &str, roots: &[PathBuf]) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            roots: roots.to_vec(),
            calls: Mutex::default(),
            asking: AtomicUsize::default(),
            last_token: AtomicU64::default(),
            tools_changed: Notify::new(),
            skipped: Notify::new(),
        })
    }

    /// News that nobody takes in time are left out: the next one says more.
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

    /// A question of the server to the user whose call it answers; of several that run, the last.
    fn elicit(self: &Arc<Self>, params: Option<&RawValue>, responder: Responder) {
        let question: Option<Elicitation> = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let asked = question.filter(|question| question.mode.as_deref().is_none_or(|mode| mode == "form"));
        let caller = self.running().values().rev().find_map(|call| {
            let client = call.caller.client.clone().filter(|client| client.offers().forms)?;
            Some((client, call.caller.call_id.clone(), call.over.clone()))
        });
        let (Some(question), Some((client, call_id, over))) = (asked, caller) else {
            return responder.ok(&json!({ "action": "decline" }));
        };
        let message = format!(
            "The MCP server {} asks: {}",
            shortened(&self.name, 40),
            shortened(&question.message, QUESTION_CHARACTERS)
        );
        let form = Form { call_id, message, schema: question.requested_schema };
        let events = self.clone();
        tokio::spawn(async move {
            events.asking.fetch_add(1, Ordering::Relaxed);
            let answer = tokio::select! {
                answer = client.fill(form) => answer,
                () = over.cancelled() => Ok(FormAnswer::Dismissed),
            };
            events.asking.fetch_sub(1, Ordering::Relaxed);
            responder.ok(&match answer {
                Ok(FormAnswer::Filled(content)) => json!({ "action": "accept", "content": content }),
                Ok(FormAnswer::Declined) => json!({ "action": "decline" }),
                Ok(FormAnswer::Dismissed) => json!({ "action": "cancel" }),
                Err(error) => {
                    tracing::debug!(%error, "a question of an MCP server was not answered");
                    json!({ "action": "decline" })
                }
            });
        });
    }

    fn progressed(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Progress {
            progress_token: Value,
            #[serde(default)]
            progress: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(default)]
            message: Option<String>,
        }
        let Some(Ok(news)) = params.map(|params| serde_json::from_str::<Progress>(params.get())) else {
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

    fn logged(&self, params: Option<&RawValue>) {
        let text: String = params.map(RawValue::get).unwrap_or_default().chars().take(1_000).collect();
        tracing::debug!(server = self.name, message = legible_line(&text), "an MCP server says");
    }

    fn roots(&self) -> Value {
        let root = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            Some(json!({ "uri": Url::from_file_path(path).ok()?.as_str(), "name": name.unwrap_or_default() }))
        };
        json!({ "roots": self.roots.iter().filter_map(root).collect::<Vec<_>>() })
    }
}

/// What a server wants to know of a user.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elicitation {
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    requested_schema: Value,
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
            "sampling/createMessage" => {
                responder.error(ErrorObject::new(-1, "this client does not let servers ask its model"));
            }
            _ => responder.error(ErrorObject::method_not_found(&method)),
        }
    }

    fn notification(&self, notification: Notification) {
        let params = notification.params.as_deref();
        match notification.method.as_str() {
            "notifications/progress" => self.0.progressed(params),
            "notifications/tools/list_changed" => self.0.tools_changed.notify_one(),
            "notifications/message" => self.0.logged(params),
            _ => {}
        }
    }

    fn closed(&self) {}
}
