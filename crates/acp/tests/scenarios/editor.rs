//! One client of a scenario: what it asked, what it was asked, and how far its messages have been told.

use std::collections::HashMap;

use attache_testkit::client::{Reply, TestClient};
use attache_testkit::prompts::SentPrompt;
use serde_json::{Value, json};

use crate::grammar::{Options, Permission};
use crate::limits::{LOOK, PATIENCE};
use crate::names::Names;
use crate::show::{Asked, Details, Live, Teller, is_borrowed};

pub(crate) struct ScenarioEditor {
    pub(crate) client: TestClient,
    asked: HashMap<u64, Asked>,
    /// What was said in prompts: request, session, blocks.
    prompts: Vec<(u64, Value, Value)>,
    /// Ids of permission requests that were answered here.
    replied: Vec<Value>,
    /// Lines sent as they were, each of which will be answered under an id that is not ours.
    lines: usize,
    /// Messages before this were told.
    told: usize,
}

/// One look at what has arrived.
pub(crate) struct Observation {
    pub(crate) items: Vec<String>,
    end: usize,
}

impl ScenarioEditor {
    pub(crate) async fn take(client: TestClient, options: &Options) -> Self {
        client.set_policy(|_, _| Reply::Never);
        let asked = HashMap::new();
        let editor = Self { client, asked, prompts: Vec::new(), replied: Vec::new(), lines: 0, told: 0 };
        if !options.silent_start {
            let mut session = if options.notices { json!({ "notices": {} }) } else { json!({}) };
            if options.compaction_updates {
                session["compaction"] = json!({});
            }
            let mut capabilities = json!({ "session": session });
            for (name, value) in &options.capabilities {
                capabilities[name] = value.clone();
            }
            let hello = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
            editor.client.expect("initialize", hello).await;
        }
        editor
    }

    /// What came so far is not part of the transcript.
    pub(crate) fn skip(&mut self) {
        self.told = self.client.mark();
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value, label: Option<String>) {
        let said =
            (method == "session/prompt").then(|| (params["sessionId"].clone(), params["prompt"].clone()));
        let pending = self.client.start(method, params);
        self.prompts.extend(said.map(|(session, blocks)| (pending.id, session, blocks)));
        self.asked.insert(pending.id, Asked { method: method.to_owned(), label });
    }

    /// The prompts of a session that were answered with a result.
    pub(crate) fn sent_prompts(&self, session: &str) -> Vec<SentPrompt> {
        let received = self.client.received();
        let sent = |(id, of, blocks): &(u64, Value, Value)| {
            let answered = |message: &&Value| message.get("method").is_none() && message["id"] == *id;
            let result = &received.iter().find(answered)?["result"];
            let message_id = result["_meta"]["attache/messageId"].as_str()?.to_owned();
            let stop_reason = result["stopReason"].as_str()?.to_owned();
            let blocks = blocks.as_array()?.clone();
            (of == session).then_some(SentPrompt { message_id, blocks, stop_reason })
        };
        self.prompts.iter().filter_map(sent).collect()
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        let message: Option<Value> = serde_json::from_str(line).ok();
        // A notification is not answered.
        let is_notification =
            message.is_some_and(|message| message.get("id").is_none() && message.get("method").is_some());
        // Nor is an empty line.
        self.lines += usize::from(!is_notification && !line.is_empty());
        self.client.send_line(line.as_bytes());
    }

    /// Answers the oldest open question; waits for one.
    pub(crate) async fn reply(&mut self, permission: &Permission) -> Result<(), String> {
        let question = self.until("a permission request", |editor, _| editor.question(), &mut None).await?;
        let reply = match permission {
            Permission::Choose(kind) => Reply::choose(kind, &question["params"]),
            Permission::Cancelled => Reply::cancelled(),
            Permission::Unknown => {
                Reply::Result(json!({ "outcome": { "outcome": "selected", "optionId": "no such option" } }))
            }
            Permission::Result(result) => Reply::Result(result.clone()),
            Permission::Error => Reply::Error { code: -32603, message: "the editor has a headache".into() },
        };
        self.client.reply(&question["id"], reply);
        self.replied.push(question["id"].clone());
        Ok(())
    }

    pub(crate) async fn wait_for(&mut self, item: &str, names: &mut Names) -> Result<(), String> {
        // The text of an item may go on behind what is waited for.
        let start = item.strip_suffix('"').unwrap_or(item).to_owned();
        let seen = |editor: &Self, names: &mut Option<&mut Names>| {
            let items = editor.items(names.as_mut()?, &[], Live::Shown);
            items.iter().any(|item| item.starts_with(&start)).then_some(())
        };
        self.until(item, seen, &mut Some(names)).await
    }

    pub(crate) fn items(&self, names: &mut Names, shown: &[String], live: Live) -> Vec<String> {
        self.look(names, shown, live).items
    }

    /// What has come since the last time it was told, and how far that goes.
    pub(crate) fn look(&self, names: &mut Names, shown: &[String], live: Live) -> Observation {
        let received = self.client.received();
        let teller = &mut Teller { asked: &self.asked, names, details: Details { shown, live } };
        Observation { items: teller.items(&received[self.told..]), end: received.len() }
    }

    /// What was looked at is told; what has come since is not.
    pub(crate) fn tell(&mut self, look: &Observation) {
        self.told = look.end;
    }

    /// Whether nothing more has to come: all is answered, except prompts that wait for an answer of this
    /// client.
    pub(crate) fn is_quiet(&self) -> bool {
        let received = self.client.received();
        let answers = |message: &&Value| message.get("method").is_none();
        let foreign = received
            .iter()
            .filter(answers)
            .filter(|answer| answer["id"].as_u64().is_none_or(|id| !self.asked.contains_key(&id)));
        // The handshake that comes before a transcript is not in `asked`.
        let handshake = received.iter().filter(answers).filter(|answer| answer["id"].is_u64()).count()
            - received
                .iter()
                .filter(answers)
                .filter(|answer| answer["id"].as_u64().is_some_and(|id| self.asked.contains_key(&id)))
                .count();
        let open = self.asked.iter().filter(|(id, _)| {
            !received.iter().filter(answers).any(|answer| answer["id"].as_u64() == Some(**id))
        });
        let waits = self.question().is_some();
        let mut unanswered = open.filter(|(_, asked)| !(waits && asked.method == "session/prompt"));
        foreign.count() - handshake >= self.lines && unanswered.next().is_none()
    }

    pub(crate) fn has_open_question(&self) -> bool {
        self.question().is_some()
    }

    /// The oldest request of the agent that was neither answered nor taken back.
    fn question(&self) -> Option<Value> {
        let received = self.client.received();
        let withdrawn = |id: &Value| {
            received.iter().any(|message| {
                message["method"] == "$/cancel_request" && message["params"]["requestId"] == *id
            })
        };
        let open = |message: &&Value| {
            message["method"].as_str().is_some_and(is_asked)
                && !self.replied.contains(&message["id"])
                && !withdrawn(&message["id"])
        };
        received.iter().find(open).cloned()
    }

    async fn until<'n, T>(
        &self,
        what: &str,
        look: impl Fn(&Self, &mut Option<&'n mut Names>) -> Option<T>,
        names: &mut Option<&'n mut Names>,
    ) -> Result<T, String> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look(self, names) {
                return Ok(found);
            }
            if tokio::time::Instant::now() > deadline {
                return Err(format!("waited {PATIENCE:?} for {what}; received:\n{}", self.recent()));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The last messages, for failures.
    pub(crate) fn recent(&self) -> String {
        let received = self.client.received();
        let start = received.len().saturating_sub(8);
        let line = |message: &Value| {
            let text = message.to_string();
            format!("  {}\n", &text[..text.floor_char_boundary(600)])
        };
        received[start..].iter().map(line).collect()
    }
}

/// What a client answers; everything else it is only told.
fn is_asked(method: &str) -> bool {
    matches!(method, "session/request_permission" | "elicitation/create") || is_borrowed(method)
}
