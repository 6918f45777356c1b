//! What the session provides for the turn of an agent that lives elsewhere: judging its tools, ending its
//! steps, recording its usage and keeping its state. Runs nothing.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::results;
use super::usage::{TurnUsage, counts};
use crate::chunk::{Chunk, Rest};
use crate::hub::People;
use crate::ids::CallId;
use crate::metadata::AgentState;
use crate::part::{Part, Passage};
use crate::ports::backend::TurnContext;
use crate::ports::client::Ask;
use crate::ports::foreign::{AgentNews, ChosenOptions, Follows, KeptState};
use crate::ports::mcp::ServerEntry;
use crate::ports::model::Usage;
use crate::ports::store::{Blobs, Change, SessionPatch, StoreResult};
use crate::ports::tool::Effect;
use crate::prompt::shelf;
use crate::watchdog::{Action, Always, Matter};

/// What such a turn starts from, beside its conversation.
#[derive(Clone, Debug)]
pub struct ForeignStart {
    /// The chosen option values.
    pub options: ChosenOptions,
    /// MCP servers that the client named.
    pub servers: Vec<ServerEntry>,
    /// The state that it kept with the session.
    pub(crate) kept: Option<AgentState>,
    /// Through which it tells the session something that is not part of its answer.
    pub news: AgentNews,
}

/// The verdict of rules and "always" answers on a tool of such an agent.
#[derive(Clone, Debug)]
pub struct JudgedTool {
    /// Whether it runs.
    pub action: Action,
    /// Why it asks; continues a sentence after "because".
    pub why: String,
    /// The text of a denial.
    pub refusal: String,
    /// What "always" means; `None` if it would have no effect.
    pub always: Option<Always>,
}

/// What a step of such an agent used, as far as the agent reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ForeignUsage {
    /// Token counts.
    pub tokens: Usage,
    /// In dollars.
    pub cost_usd: Option<f64>,
    /// How many tokens of its context are in use.
    pub context_used: Option<u64>,
    /// How many tokens its context holds.
    pub context_size: Option<u64>,
}

impl TurnContext {
    /// The name of this agent's tool in rules: `agent:NAME:TOOL`.
    pub fn permission_of(&self, tool: &str) -> String {
        format!("agent:{}:{tool}", self.setup.agent.id)
    }

    /// Judges a tool that the agent asks about, by the current rules.
    pub fn judge_tool(&mut self, tool: &str) -> JudgedTool {
        self.permissions.refresh();
        self.judge_tool_now(tool)
    }

    /// The same, by the rules from when they were last read.
    pub fn judge_tool_now(&self, tool: &str) -> JudgedTool {
        let permission = self.permission_of(tool);
        let matter = Matter { tool: &permission, effect: Effect::Mutates, accesses: &[] };
        let containment = &self.hub.ports.settings.containment;
        let verdict = self.permissions.judged(containment, &matter).verdict;
        let nobody = "no connected person can allow it";
        let (action, refusal) = match (verdict.action, self.hub.ports.settings.people) {
            (Action::Ask, People::Absent) => (Action::Deny, nobody.to_owned()),
            (action @ (Action::Ask | Action::Allow | Action::Deny), _) => (action, verdict.refusal()),
        };
        let always = self.permissions.always(containment, &matter);
        JudgedTool { action, why: verdict.why_asked(), refusal, always }
    }

    /// Who answers questions here.
    pub fn people(&self) -> People {
        self.hub.ports.settings.people
    }

    /// The store of attachments.
    pub fn blobs(&self) -> std::sync::Arc<dyn Blobs> {
        self.hub.ports.blobs.clone()
    }

    /// Moves a file that is too large for a row out of its chunk.
    pub async fn shelve(&self, chunk: &mut Chunk) -> StoreResult<()> {
        let session = &self.setup.workspace.session_id;
        shelf::shelve_chunk(chunk, session, &*self.hub.ports.blobs).await
    }

    /// A new id of a question.
    pub fn approval_id(&self) -> String {
        self.hub.ports.ids.approval()
    }

    /// Records the decision about a call, and that the call may have begun. Call this before telling the agent.
    pub async fn record_decision(&self, decision: &RecordedDecision<'_>) -> StoreResult<()> {
        let RecordedDecision { ask, approved, reason, arguments } = decision;
        let answer = if *approved { Action::Allow } else { Action::Deny };
        let mut chunk = results::approval(ask, answer, *reason, None);
        if let (Chunk::Data { data, .. }, Some(arguments)) = (&mut chunk, arguments) {
            data["input"] = (*arguments).clone();
        }
        self.journal.record(chunk).await?;
        if *approved {
            self.journal.record(results::preliminary(&ask.call_id, &ask.presentation)).await?;
        }
        Ok(())
    }

    /// Ends the current step: its parts become a passage of the conversation.
    pub async fn finish_step(&mut self) -> StoreResult<()> {
        self.journal.record(Chunk::FinishStep { rest: Rest::none() }).await?;
        let now = self.hub.ports.clock.now_ms();
        let mut changes = Vec::new();
        let taken = self.journal.journal.with_fold(|fold| fold.take_step(now, &mut changes));
        self.journal.journal.change(changes)?;
        match taken.flatten() {
            Some(parts) => {
                let author = self.journal.message_id().clone();
                Passage::of_step(&author, parts).for_each(|passage| self.conversation.push(passage));
            }
            // Too large to keep in memory: the next turn reads it from its rows.
            None => self.has_gaps = true,
        }
        Ok(())
    }

    /// Whether a step was too large to keep, so that the conversation here lacks it.
    pub fn has_gaps(&self) -> bool {
        self.has_gaps
    }

    /// The parts of the current step.
    pub fn open_parts(&self) -> Vec<Part> {
        let parts = self
            .journal
            .journal
            .with_fold(|fold| fold.reducer().parts().map(std::borrow::Cow::into_owned).collect::<Vec<_>>());
        parts.unwrap_or_default()
    }

    /// Whether the answer has begun a step; without one there is no answer.
    pub fn has_steps(&self) -> bool {
        self.journal.journal.with_fold(|fold| fold.steps()).is_some_and(|steps| steps > 0)
    }

    /// The calls of the current step that have no result yet.
    pub fn open_calls(&self) -> HashMap<CallId, String> {
        let calls = self.journal.journal.with_fold(|fold| {
            let reducer = fold.reducer();
            let open = reducer.open_calls().into_iter();
            open.filter_map(|call| reducer.tool(&call).map(|tool| (call, tool.tool_name.clone()))).collect()
        });
        calls.unwrap_or_default()
    }

    /// Records usage: announces it, and adds it to message and session in the same commit.
    pub fn record_usage(&mut self, usage: &ForeignUsage) -> StoreResult<()> {
        let step = TurnUsage { tokens: usage.tokens, cost_usd: usage.cost_usd };
        self.used.add(&step);
        // What nobody counted is not zero.
        let is_counted = usage.tokens != Usage::default();
        let mut data = if is_counted { counts(&usage.tokens) } else { json!({}) };
        data["context_used"] = usage.context_used.unwrap_or_else(|| usage.tokens.total()).into();
        if let Some(size) = usage.context_size {
            data["context_size"] = size.into();
        }
        if let Some(cost) = self.cost.add(step.cost_usd) {
            data["cost_usd"] = cost.into();
        }
        let (name, id) = ("usage".into(), Some("usage".into()));
        let told = Chunk::Data { name, id, data, transient: None, rest: Rest::none() };
        let now = self.hub.ports.clock.now_ms();
        let author = &self.journal.author;
        let changes = vec![
            Change::PatchSession(SessionPatch {
                add_usage: Some(step.totals()),
                updated_at: now,
                ..SessionPatch::default()
            }),
            Change::PatchMessage {
                id: author.message_id.clone(),
                seq: None,
                metadata: self.used.metadata(),
                updated_at: now,
            },
        ];
        self.journal.journal.record_with(author, vec![told], changes)
    }

    /// The state that the agent kept with this session.
    pub fn kept(&self) -> Option<KeptState> {
        let kept = self.foreign.as_ref()?.kept.as_ref()?;
        // The state belongs to the answer before the current prompt, or to the current answer.
        let own = self.journal.message_id();
        let passages = self.conversation.iter().rev();
        let mut before = passages.filter(|passage| passage.message_id != self.prompt);
        let last = before.find(|passage| passage.message_id != *own).map(|passage| &passage.message_id);
        let follows = match last == kept.after.as_ref() || kept.after.as_ref() == Some(own) {
            true => Follows::Conversation,
            false => Follows::Other,
        };
        Some(KeptState { value: kept.value.clone(), follows })
    }

    /// Keeps a value with the session until the agent's next turn, as of this answer.
    pub fn keep(&mut self, value: Value) -> StoreResult<()> {
        let state = AgentState { value, after: Some(self.journal.message_id().clone()) };
        let mut patch = SessionPatch { updated_at: self.hub.ports.clock.now_ms(), ..SessionPatch::default() };
        patch.metadata.set_agent_state(&self.setup.agent.id, &state);
        self.journal.journal.change(vec![Change::PatchSession(patch)])?;
        if let Some(foreign) = &mut self.foreign {
            foreign.kept = Some(state);
        }
        Ok(())
    }

    /// Sets the session's title, unless a user has set one.
    pub fn name_session(&self, title: &str) -> StoreResult<()> {
        let now = self.hub.ports.clock.now_ms();
        let mut patch = SessionPatch { updated_at: now, ..SessionPatch::default() };
        patch.metadata.set_title(title);
        let told = crate::session::title::title_chunk(title);
        self.journal.journal.record_with(&self.journal.author, vec![told], vec![Change::PatchSession(patch)])
    }
}

/// A decision about a call.
#[derive(Clone, Copy, Debug)]
pub struct RecordedDecision<'a> {
    /// The question.
    pub ask: &'a Ask,
    /// Whether the call may run.
    pub approved: bool,
    /// The reason if not.
    pub reason: Option<&'a str>,
    /// What it runs with instead of its own arguments.
    pub arguments: Option<&'a Value>,
}
