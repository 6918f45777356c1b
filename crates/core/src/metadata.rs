//! The values that rows keep beside their columns, as types; only this module knows the keys. Unknown keys are
//! kept.
//!
//! A patch has the same type as the row it changes: its keys replace those of the row, and a null removes a
//! key.

mod agents;
mod directories;
mod from_file;
mod object;
mod tasks;
mod tools;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::environment::ToldEnvironment;
use crate::ids::CallId;
use crate::instructions::ToldInstructions;
use crate::ports::model::Usage;
use crate::ports::store::ModelRef;
use crate::rewind::{MovingFiles, RewindLayer};
use crate::turn::TurnEnd;
use crate::watchdog::Approval;
use object::{read, stored_as_object};

pub(crate) use agents::AgentState;
pub use tasks::{BackgroundTask, ChildOf};

/// Our key in the metadata of parts and chunks, which clients and providers share with us.
pub const OWN_KEY: &str = "attache";

/// Within what is ours of an approval: the person gave the call other arguments.
pub const EDITED: &str = "edited";

/// What is ours in the metadata of a part or a chunk.
pub fn own(metadata: &Value) -> Option<&Value> {
    metadata.get(OWN_KEY)
}

/// The same, mutable.
pub(crate) fn own_mut(metadata: &mut Value) -> Option<&mut Value> {
    metadata.get_mut(OWN_KEY)
}

/// Metadata that hold only our own object.
pub fn only_own(ours: impl Serialize) -> Value {
    json!({ OWN_KEY: ours })
}

/// Beside the columns of `chat_sessions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionMeta(Map<String, Value>);

/// Beside the columns of `chat_messages`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageMeta(Map<String, Value>);

impl SessionMeta {
    const TITLE: &str = "title";
    const MODE: &str = "mode";
    const FIRST_MODE: &str = "first_mode";
    const MODE_MODELS: &str = "mode_models";
    const APPROVAL: &str = "approval";
    const ENVIRONMENT: &str = "environment";
    const INSTRUCTIONS: &str = "instructions";
    const SKILL_INDEX: &str = "skill_index";
    const REWINDS: &str = "rewinds";
    const MOVING_FILES: &str = "moving_files";

    /// The session's title.
    pub fn title(&self) -> Option<&str> {
        self.0.get(Self::TITLE)?.as_str()
    }

    /// Whether this sets a title or says that there is none.
    pub fn says_title(&self) -> bool {
        self.0.contains_key(Self::TITLE)
    }

    /// Sets the title.
    pub fn set_title(&mut self, title: &str) {
        self.0.insert(Self::TITLE.into(), json!(title));
    }

    /// A null in a patch: the session has to be named again.
    pub(crate) fn forget_title(&mut self) {
        self.0.insert(Self::TITLE.into(), Value::Null);
    }

    /// The rewinds that can still be undone, the earliest first.
    pub fn rewinds(&self) -> Vec<RewindLayer> {
        read(self.0.get(Self::REWINDS)).unwrap_or_default()
    }

    /// An empty list is written as a null.
    pub(crate) fn set_rewinds(&mut self, layers: &[RewindLayer]) {
        let listed = if layers.is_empty() { Value::Null } else { json!(layers) };
        self.0.insert(Self::REWINDS.into(), listed);
    }

    /// The files that a rewind was moving when this was last written.
    pub fn moving_files(&self) -> Option<MovingFiles> {
        read(self.0.get(Self::MOVING_FILES))
    }

    /// None is a null.
    pub(crate) fn set_moving_files(&mut self, moving: Option<&MovingFiles>) {
        self.0.insert(Self::MOVING_FILES.into(), json!(moving));
    }

    /// The chosen agent, if it differs from the one that the session began with.
    pub fn mode(&self) -> Option<&str> {
        self.0.get(Self::MODE)?.as_str()
    }

    /// Sets the agent of the session.
    pub fn set_mode(&mut self, agent: &str) {
        self.0.insert(Self::MODE.into(), json!(agent));
    }

    /// The agent of the first prompt, if it differs from the one that the session began with.
    pub fn first_mode(&self) -> Option<&str> {
        self.0.get(Self::FIRST_MODE)?.as_str()
    }

    pub(crate) fn set_first_mode(&mut self, agent: &str) {
        self.0.insert(Self::FIRST_MODE.into(), json!(agent));
    }

    /// The model that the user chose in the mode of an agent that has a model of its own.
    pub(crate) fn mode_model(&self, agent: &str) -> Option<ModelRef> {
        let chosen = self.0.get(Self::MODE_MODELS)?.get(agent)?;
        let text = |key: &str| chosen.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(ModelRef {
            provider_id: text("provider_id")?,
            model_id: text("model_id")?,
            variant: text("variant"),
        })
    }

    /// Sets it, beside those that `known` has for other modes.
    pub(crate) fn set_mode_model(&mut self, known: &Self, agent: &str, model: &ModelRef) {
        let mut all = known.0.get(Self::MODE_MODELS).cloned().unwrap_or_else(|| json!({}));
        let ModelRef { provider_id, model_id, variant } = model;
        all[agent] = json!({ "provider_id": provider_id, "model_id": model_id, "variant": variant });
        self.0.insert(Self::MODE_MODELS.into(), all);
    }

    /// The approval level, if the session sets its own.
    pub fn approval(&self) -> Option<Approval> {
        Approval::parse(self.0.get(Self::APPROVAL)?.as_str()?)
    }

    /// Sets the approval level.
    pub fn set_approval(&mut self, approval: Approval) {
        self.0.insert(Self::APPROVAL.into(), json!(approval.as_str()));
    }

    /// What the model was told of its environment.
    pub fn environment(&self) -> Option<ToldEnvironment> {
        ToldEnvironment::from_json(self.0.get(Self::ENVIRONMENT)?)
    }

    pub(crate) fn set_environment(&mut self, told: &ToldEnvironment) {
        self.0.insert(Self::ENVIRONMENT.into(), told.to_json());
    }

    /// What the model was told of the user's and the project's instructions.
    pub fn instructions(&self) -> Option<ToldInstructions> {
        ToldInstructions::from_json(self.0.get(Self::INSTRUCTIONS)?)
    }

    pub(crate) fn set_instructions(&mut self, told: &ToldInstructions) {
        self.0.insert(Self::INSTRUCTIONS.into(), told.to_json());
    }

    /// The index of skills in the system prompt.
    pub fn skill_index(&self) -> Option<&str> {
        self.0.get(Self::SKILL_INDEX)?.as_str()
    }

    pub(crate) fn set_skill_index(&mut self, section: &str) {
        self.0.insert(Self::SKILL_INDEX.into(), json!(section));
    }
}

impl MessageMeta {
    /// Public like those below, because a store names these keys in its queries.
    pub const QUEUED_AT: &str = "queued_at";
    /// When a waiting message was cancelled.
    pub const QUEUE_CANCELED_AT: &str = "queue_canceled_at";
    /// The digest of the system prompt of an answer.
    pub const SYSTEM_PROMPT_DIGEST: &str = "system_prompt_digest";
    /// When a rewind hid it.
    pub const HIDDEN_AT: &str = "hidden_at";
    const QUEUE_ENQUEUED_AT: &str = "queue_enqueued_at";
    const SCHEMA_VERSION: &str = "schema_version";
    /// The first call whose file snapshots belong to it.
    pub const SNAPSHOT_ID: &str = "snapshot_id";
    /// The tokens of an answer.
    pub const USAGE: &str = "usage";
    /// What an answer cost, in dollars.
    pub const COST_USD: &str = "cost_usd";
    const AGENT: &str = "agent";
    const MODEL: &str = "model";
    const TURN_END: &str = "turn_end";
    const REFUSED: &str = "refused";
    const RESULTS_LEFT_OUT: &str = "results_left_out";
    const ANSWERS_COMMAND: &str = "answers_command";
    const TOOLS: &str = "tools";

    /// The metadata of a message that a person sends.
    pub fn of_prompt() -> Self {
        let mut meta = Self::default();
        meta.0.insert(Self::SCHEMA_VERSION.into(), json!(1));
        meta
    }

    /// The metadata of an answer to a slash command.
    pub(crate) fn of_command_answer() -> Self {
        let mut meta = Self::default();
        meta.0.insert(Self::ANSWERS_COMMAND.into(), json!(true));
        meta
    }

    /// Whether it answers a slash command: no model sees such a message.
    pub fn answers_command(&self) -> bool {
        self.0.get(Self::ANSWERS_COMMAND).and_then(Value::as_bool) == Some(true)
    }

    /// When it began to wait for its turn; strictly increasing, so that it gives the order.
    pub fn queued_at(&self) -> Option<i64> {
        self.0.get(Self::QUEUED_AT)?.as_i64()
    }

    pub(crate) fn set_queued(&mut self, queued_at: i64, now: i64) {
        self.0.insert(Self::QUEUED_AT.into(), json!(queued_at));
        self.0.insert(Self::QUEUE_ENQUEUED_AT.into(), json!(now));
    }

    /// Whether a client cancelled it while it waited.
    pub fn is_cancelled_in_queue(&self) -> bool {
        self.is_set(Self::QUEUE_CANCELED_AT)
    }

    /// Marks it: it will neither run nor be shown.
    pub(crate) fn cancel_in_queue(&mut self, now: i64) {
        self.0.insert(Self::QUEUE_CANCELED_AT.into(), json!(now));
        self.0.insert(Self::HIDDEN_AT.into(), json!(now));
    }

    /// Whether a rewind hides it.
    pub fn is_hidden(&self) -> bool {
        self.is_set(Self::HIDDEN_AT)
    }

    /// When it was hidden.
    pub fn hidden_at(&self) -> Option<i64> {
        self.0.get(Self::HIDDEN_AT)?.as_i64()
    }

    /// A null in a patch: it is visible again.
    pub fn set_hidden_at(&mut self, hidden_at: Option<i64>) {
        self.0.insert(Self::HIDDEN_AT.into(), json!(hidden_at));
    }

    /// The first call with file snapshots, if its calls made any.
    pub fn snapshot_id(&self) -> Option<&str> {
        self.0.get(Self::SNAPSHOT_ID)?.as_str()
    }

    pub(crate) fn set_snapshot_id(&mut self, call: &CallId) {
        self.0.insert(Self::SNAPSHOT_ID.into(), json!(call));
    }

    pub(crate) fn set_agent(&mut self, agent: &str) {
        self.0.insert(Self::AGENT.into(), json!(agent));
    }

    /// A null in a patch: the session's own agent answers.
    pub(crate) fn forget_agent(&mut self) {
        self.0.insert(Self::AGENT.into(), Value::Null);
    }

    /// The name of the model that answered, for people.
    pub fn model(&self) -> Option<&str> {
        self.0.get(Self::MODEL)?.as_str()
    }

    /// Sets the model that answers.
    pub fn set_model(&mut self, model: &str) {
        self.0.insert(Self::MODEL.into(), json!(model));
    }

    /// The digest of the system prompt of an answer.
    pub fn system_prompt_digest(&self) -> Option<&str> {
        self.0.get(Self::SYSTEM_PROMPT_DIGEST)?.as_str()
    }

    /// Sets the digest of the system prompt of the answer.
    pub fn set_system_prompt_digest(&mut self, digest: &str) {
        self.0.insert(Self::SYSTEM_PROMPT_DIGEST.into(), json!(digest));
    }

    /// The names of the tools that the answering model was offered.
    pub fn tools(&self) -> Vec<&str> {
        let names = self.0.get(Self::TOOLS).and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(crate) fn set_tools<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.0.insert(Self::TOOLS.into(), names.collect());
    }

    /// How the turn of a prompt ended, in words.
    pub fn turn_end_in_words(&self) -> Option<String> {
        Some(match self.turn_end()? {
            TurnEnd::Finished(reason) => reason.as_str().to_owned(),
            TurnEnd::StepLimit => "step limit".to_owned(),
            TurnEnd::Aborted => "aborted".to_owned(),
            TurnEnd::Failed { message, .. } => format!("failed: {message}"),
        })
    }

    /// How the turn of a prompt ended.
    pub(crate) fn turn_end(&self) -> Option<TurnEnd> {
        TurnEnd::from_json(self.0.get(Self::TURN_END)?)
    }

    pub(crate) fn set_turn_end(&mut self, end: &TurnEnd) {
        self.0.insert(Self::TURN_END.into(), end.to_json());
    }

    /// Whether the provider refused both the prompt and its answer; later requests leave them out.
    pub fn is_refused(&self) -> bool {
        self.0.get(Self::REFUSED).and_then(Value::as_bool) == Some(true)
    }

    pub(crate) fn set_refused(&mut self) {
        self.0.insert(Self::REFUSED.into(), json!(true));
    }

    /// The calls of an answer whose results were too large for the model: they are sent without results.
    pub fn results_left_out(&self) -> Vec<&str> {
        let calls = self.0.get(Self::RESULTS_LEFT_OUT).and_then(Value::as_array);
        calls.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(crate) fn set_results_left_out(&mut self, calls: &[CallId]) {
        let calls: Vec<_> = calls.iter().map(CallId::as_str).collect();
        self.0.insert(Self::RESULTS_LEFT_OUT.into(), json!(calls));
    }

    /// The usage of an answer; `None` if nothing was counted.
    pub fn usage(&self) -> Option<Usage> {
        let usage = self.0.get(Self::USAGE)?;
        let count = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or_default();
        Some(Usage {
            input: count("input"),
            output: count("output"),
            reasoning: count("reasoning"),
            cache_read: count("cache_read"),
            cache_write: count("cache_write"),
        })
    }

    /// What the answer cost, in dollars.
    pub fn cost_usd(&self) -> Option<f64> {
        self.0.get(Self::COST_USD)?.as_f64()
    }

    /// `counts` is the usage as JSON.
    pub(crate) fn set_usage(&mut self, counts: Value, cost_usd: Option<f64>) {
        self.0.insert(Self::USAGE.into(), counts);
        if let Some(cost) = cost_usd {
            self.0.insert(Self::COST_USD.into(), json!(cost));
        }
    }

    fn is_set(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| !value.is_null())
    }
}

stored_as_object!(SessionMeta);
stored_as_object!(MessageMeta);

#[cfg(test)]
mod tests;
