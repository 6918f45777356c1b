//! One call of the model: what is understood of it, its presentation, and its one result. Runs nothing.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::FutureExt;
use serde_json::{Value, json};

use super::repeats::{Repetition, ResultDigest};
use super::step::as_object;
use super::unreadable::{bare, failed_title};
use super::{Turn, repeats};
use crate::chunk::{Chunk, Rest, ToolMarks};
use crate::hooks;
use crate::hub::People;
use crate::ids::CallId;
use crate::legible::legible;
use crate::metadata::only_own;
use crate::ports::tool::{Effect, NetworkGrant, Presentation, Tool, ToolKind, ToolPlan, WriteGrant};
use crate::watchdog::Verdict;

/// One call of the model, understood or not.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) call_id: CallId,
    pub(crate) tool_name: String,
    pub(crate) input: Value,
    /// Its presentation until it is understood.
    pub(super) bare: Presentation,
    /// Known before it is understood, because it decides which calls run at the same time.
    pub(super) effect: Effect,
    pub(crate) plan: CallPlan,
    pub(crate) state: CallState,
    /// What its question will be known by; only of a call that was expected to ask.
    pub(super) approval_id: Option<String>,
    /// Why it runs or does not, as soon as that is known.
    pub(super) decision: Option<Verdict>,
    /// How often the model made exactly this call in a row.
    pub(super) repeated: Repetition,
    /// The digest of its result, once it ran. Why a lock: calls run at the same time.
    pub(super) result: OnceLock<ResultDigest>,
    /// Whether hooks have run for it.
    pub(super) hooked: Hooked,
    /// What hooks say to the model about it. Why a lock: calls run at the same time.
    hook_notes: Mutex<Vec<String>>,
    /// What the model sent with it, for the second announcement once it is understood. Only for calls that are
    /// understood later.
    pub(super) announced: Option<Box<(ToolMarks, Rest)>>,
    /// When a person was asked about it; only on hosts that measure.
    pub(super) asked_at: Option<i64>,
}

/// Whether the hooks before a call ran in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hooked {
    NotYet,
    Asked,
}

/// What is understood of a call.
#[derive(Clone, Debug)]
pub(crate) enum CallPlan {
    /// Nothing yet: an earlier call may change what it finds.
    Later,
    Made(Box<Planned>),
    /// The error, which is the answer to the model.
    Failed(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) plan: ToolPlan,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallState {
    Open,
    Allowed(Grant),
    Settled,
}

/// What one call may reach beyond the roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) network: NetworkGrant,
    pub(crate) writes: WriteGrant,
}

impl Call {
    /// A call as the model made it; `repeated` is the count of `Repeats`.
    pub(crate) fn new(
        turn: &Turn,
        call_id: CallId,
        tool_name: String,
        input: Value,
        repeated: Repetition,
    ) -> Self {
        let tool = turn.setup.tools.find(&tool_name);
        let (bare, effect) = match &tool {
            Some(tool) => (tool.spec().presentation(), tool.effect_of(&input)),
            // An unknown tool: the call will fail, which changes nothing.
            None => (bare(&tool_name), Effect::ReadOnly),
        };
        Self {
            call_id,
            tool_name,
            input,
            bare,
            effect,
            plan: CallPlan::Later,
            state: CallState::Open,
            approval_id: None,
            decision: None,
            repeated,
            result: OnceLock::new(),
            hooked: Hooked::NotYet,
            hook_notes: Mutex::default(),
            announced: None,
            asked_at: None,
        }
    }

    /// Finds the tool and lets it read the arguments; changes nothing.
    pub(crate) async fn understood(turn: &Turn, tool_name: &str, input: &Value) -> CallPlan {
        match Self::plan(turn, tool_name, input).await {
            Ok(planned) => CallPlan::Made(Box::new(planned)),
            Err(text) => CallPlan::Failed(text),
        }
    }

    async fn plan(turn: &Turn, tool_name: &str, input: &Value) -> Result<Planned, String> {
        let Some(tool) = turn.setup.tools.find(tool_name) else {
            return Err(turn.setup.tools.unknown(tool_name));
        };
        if let Some(agent) = turn.permissions.without(tool.spec()) {
            let is_above = agent.id != turn.setup.agent.id;
            return Err(match &agent.instead {
                // A child can't do what the session above should do instead.
                _ if is_above => format!(
                    "`{tool_name}` is not available to a subagent of the {} agent: say in your last message what is to be done",
                    agent.id
                ),
                // The agent's own text is about changes; a tool without changes is simply missing.
                Some(instead) if tool.spec().effect == Effect::Mutates => {
                    format!("`{tool_name}` is not available {instead}")
                }
                Some(_) => format!(
                    "the {} agent does not have `{tool_name}`: use the tools it has, or answer",
                    agent.id
                ),
                None => format!("`{tool_name}` is not available to the {} agent", agent.id),
            });
        }
        if turn.permissions.has_sessions_above() && tool.spec().kind == ToolKind::SwitchMode {
            return Err(format!("`{tool_name}` is not available to a subagent: it keeps its agent"));
        }
        let model = &turn.setup.model;
        if tool.needs_images() && !model.images {
            return Err(format!("`{tool_name}` shows images, and {} does not take any", model.model));
        }
        // Advice about arguments is useless if the call can't succeed anyway.
        let has_person = turn.hub.ports.settings.people == People::Present;
        let refusal = tool.without_person().filter(|_| !has_person);
        let insist = |why: String| refusal.map_or(why, str::to_owned);
        let input = as_object(input).map_err(insist)?;
        // If a tool panics over its arguments, only this call fails, not the turn.
        let planned = AssertUnwindSafe(tool.plan(input, &turn.site())).catch_unwind().await;
        let crashed = |_| Err("internal error: the tool crashed over these arguments; it was not run".into());
        let plan = planned.unwrap_or_else(crashed).map_err(insist)?;
        Ok(Planned { tool, plan })
    }

    /// A call whose arguments could not be read; it already has its answer.
    pub(crate) fn unreadable(call_id: CallId, tool_name: String, why: String, repeated: Repetition) -> Self {
        Self {
            bare: bare(&tool_name),
            call_id,
            tool_name,
            input: Value::Null,
            effect: Effect::ReadOnly,
            plan: CallPlan::Failed(why),
            state: CallState::Settled,
            approval_id: None,
            decision: None,
            repeated,
            result: OnceLock::new(),
            hooked: Hooked::NotYet,
            hook_notes: Mutex::default(),
            announced: None,
            asked_at: None,
        }
    }

    pub(crate) fn planned(&self) -> Option<&Planned> {
        match &self.plan {
            CallPlan::Made(planned) => Some(planned.as_ref()),
            CallPlan::Later | CallPlan::Failed(_) => None,
        }
    }

    /// Postpones understanding until the call's turn comes. Keeps only its presentation, without the preview,
    /// which may become wrong.
    pub(super) fn understand_later(&mut self, marks: &ToolMarks, rest: &Rest) {
        if let CallPlan::Made(planned) = &self.plan {
            self.bare = Presentation { content: Vec::new(), ..planned.plan.presentation.clone() };
        }
        self.plan = CallPlan::Later;
        self.announced = Some(Box::new((marks.clone(), rest.clone())));
    }

    /// The chunk with its arguments and its current presentation.
    pub(super) fn announcement(&self, marks: ToolMarks, mut rest: Rest) -> Chunk {
        rest.set_tool_metadata(only_own(self.presentation()));
        let (call_id, tool_name, input) = (self.call_id.clone(), self.tool_name.clone(), self.input.clone());
        Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest }
    }

    /// How often it was made in a row without a new result.
    pub(super) fn times(&self) -> u32 {
        self.repeated.times(self.result.get().copied())
    }

    /// Adds a hook's text for the model.
    pub(super) fn note(&self, text: &str) {
        let note = hooks::framed(text);
        self.hook_notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// What the model is told beside the result: notes of the tool and of hooks, and a warning if it repeats
    /// itself.
    pub(super) fn warning(&self) -> Option<String> {
        let noted = self.planned().and_then(|planned| planned.plan.note.clone());
        let of_hooks = self.hook_notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let words: Vec<String> =
            noted.into_iter().chain(of_hooks).chain(repeats::warning(self.times())).collect();
        (!words.is_empty()).then(|| words.join("\n"))
    }

    /// Appends the warning for a model that may repeat itself.
    pub(super) fn warned(&self, text: &str) -> String {
        repeats::warned(text, repeats::warning(self.times())).0
    }

    /// The presentation before it runs.
    pub(crate) fn presentation(&self) -> Presentation {
        let planned = match &self.plan {
            CallPlan::Made(planned) => planned.plan.presentation.clone(),
            CallPlan::Later => self.bare.clone(),
            CallPlan::Failed(why) => {
                Presentation { title: failed_title(&self.tool_name, why), ..self.bare.clone() }
            }
        };
        Presentation { decision: self.decision.clone(), ..planned }
    }

    /// Fills in from the plan what a tool left out of its result's presentation.
    pub(super) fn complete(&self, result: Presentation) -> Presentation {
        let planned = self.presentation();
        Presentation {
            title: if result.title.is_empty() { planned.title } else { result.title },
            kind: result.kind.or(planned.kind),
            hidden: result.hidden || planned.hidden,
            decision: planned.decision,
            ..result
        }
    }

    pub(super) fn failure(&self, text: &str) -> Chunk {
        // Without the preview, because the change did not happen.
        self.failure_shown(text, Presentation { content: Vec::new(), ..self.presentation() })
    }

    pub(super) fn failure_shown(&self, text: &str, mut shown: Presentation) -> Chunk {
        // Names in it may hold invisible characters.
        let (error_text, note_bytes) = repeats::warned(&legible(text), self.warning());
        shown.note_bytes = note_bytes;
        let (call_id, marks) = (self.call_id.clone(), ToolMarks::default());
        let rest = Rest::with_tool_metadata(only_own(shown));
        Chunk::ToolOutputError { call_id, error_text, marks, rest }
    }

    pub(super) fn denial(&self, reason: &str) -> Chunk {
        // With the preview of what it would have done, because that is what the user rejected.
        let mut rest = Rest::with_tool_metadata(only_own(self.presentation()));
        let fields = rest.0.get_or_insert_default();
        fields.unknown.insert("errorText".into(), json!(reason));
        Chunk::ToolOutputDenied { call_id: self.call_id.clone(), rest }
    }
}
