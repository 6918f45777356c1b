//! The calls of one step, in the order the model made them. Each is understood when its turn comes, judged, run, and has
//! its one result recorded. `gate` decides what may run.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::gate::Gate;
use super::progress::Recorder;
use super::results::{finished, preliminary};
use super::step::as_object;
use super::unreadable::{bare, failed_title};
use super::{Answered, Stop, Turn, repeats};
use crate::chunk::{Chunk, Rest, ToolMarks};
use crate::ids::CallId;
use crate::legible::legible;
use crate::limits::{READ_ABORT, TOOL_ABORT};
use crate::metadata::only_own;
use crate::ports::client::Ask;
use crate::ports::tool::{Effect, NetworkGrant, Presentation, Tool, ToolPlan, ToolRuntime, WriteGrant};
use crate::watchdog::Verdict;

/// One call of the model, understood or not.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) call_id: CallId,
    pub(crate) tool_name: String,
    pub(crate) input: Value,
    /// How it looks as long as nobody has understood it.
    bare: Presentation,
    /// Known before it is understood: it decides which calls run side by side.
    effect: Effect,
    pub(crate) plan: Plan,
    pub(crate) state: CallState,
    /// Why it runs or does not, as soon as that is known.
    pub(super) decision: Option<Verdict>,
    /// How often the model made this very call in a row.
    repeated: u32,
    /// What the model sent with it, to tell it again once it is understood. Only for a call that is understood later.
    announced: Option<Box<(ToolMarks, Rest)>>,
}

/// What is understood of a call.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// Nothing so far: a call before it may change what it finds.
    Later,
    Made(Box<Planned>),
    /// The error is the answer to the model.
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

/// What one call may reach beside the roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) network: NetworkGrant,
    pub(crate) writes: WriteGrant,
}

/// What came of a step's calls.
#[derive(Debug)]
pub(crate) enum Settled {
    All,
    Waiting(Arc<Ask>),
    /// The model makes the same call for ever.
    Repeating(String),
}

impl Call {
    /// A call as the model made it; `repeated` as `Repeats` counted it.
    pub(crate) fn new(turn: &Turn, call_id: CallId, tool_name: String, input: Value, repeated: u32) -> Self {
        let tool = turn.tool(&tool_name);
        let (bare, effect) = match &tool {
            Some(tool) => (tool.spec().presentation(), tool.spec().effect),
            // It will fail, which changes nothing.
            None => (bare(&tool_name), Effect::ReadOnly),
        };
        let (plan, state, decision) = (Plan::Later, CallState::Open, None);
        Self { call_id, tool_name, input, bare, effect, plan, state, decision, repeated, announced: None }
    }

    /// Finds the tool and lets it read the arguments; nothing was changed by this.
    pub(crate) async fn understood(turn: &Turn, tool_name: &str, input: &Value) -> Plan {
        match Self::plan(turn, tool_name, input).await {
            Ok(planned) => Plan::Made(Box::new(planned)),
            Err(text) => Plan::Failed(text),
        }
    }

    async fn plan(turn: &Turn, tool_name: &str, input: &Value) -> Result<Planned, String> {
        let Some(tool) = turn.tool(tool_name) else {
            let known: Vec<_> = turn.setting.specs.iter().map(|spec| spec.id).collect();
            return Err(format!("there is no tool `{tool_name}`; available: {}", known.join(", ")));
        };
        if !turn.setting.agent.is_offered(tool.spec()) {
            return Err(format!("`{tool_name}` is not available to the {} agent", turn.setting.agent.id));
        }
        let model = &turn.setting.model;
        if tool.needs_images() && !model.images {
            return Err(format!("`{tool_name}` shows images, and {} does not take any", model.model));
        }
        let input = as_object(input)?;
        // A tool that panics over its arguments fails this call, not the turn.
        let planned = AssertUnwindSafe(tool.plan(input, &turn.site())).catch_unwind().await;
        let crashed = |_| Err("internal error: the tool crashed over these arguments; it was not run".into());
        let plan = planned.unwrap_or_else(crashed)?;
        Ok(Planned { tool, plan })
    }

    /// A call whose arguments could not be read: it has its answer already.
    pub(crate) fn unreadable(call_id: CallId, tool_name: String, why: String, repeated: u32) -> Self {
        let bare = bare(&tool_name);
        let (input, plan, state) = (Value::Null, Plan::Failed(why), CallState::Settled);
        let (effect, decision, announced) = (Effect::ReadOnly, None, None);
        Self { call_id, tool_name, input, bare, effect, plan, state, decision, repeated, announced }
    }

    pub(crate) fn planned(&self) -> Option<&Planned> {
        match &self.plan {
            Plan::Made(planned) => Some(planned.as_ref()),
            Plan::Later | Plan::Failed(_) => None,
        }
    }

    /// Leaves the understanding to the moment when its turn comes; of what was found now only how it looks is kept, without
    /// the preview, which may come to be wrong.
    fn understand_later(&mut self, marks: &ToolMarks, rest: &Rest) {
        if let Plan::Made(planned) = &self.plan {
            self.bare = Presentation { content: Vec::new(), ..planned.plan.presentation.clone() };
        }
        self.plan = Plan::Later;
        self.announced = Some(Box::new((marks.clone(), rest.clone())));
    }

    /// The chunk that tells its arguments and how it looks now.
    fn announcement(&self, marks: ToolMarks, mut rest: Rest) -> Chunk {
        rest.set_tool_metadata(only_own(self.presentation()));
        let (call_id, tool_name, input) = (self.call_id.clone(), self.tool_name.clone(), self.input.clone());
        Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest }
    }

    /// A word to the model when it goes round in circles.
    pub(super) fn warning(&self) -> Option<String> {
        repeats::warning(self.repeated)
    }

    /// This with the word to the model, if there is one.
    pub(super) fn warned(&self, text: &str) -> String {
        repeats::warned(text, self.repeated).0
    }

    /// How the call looks before it runs.
    pub(crate) fn presentation(&self) -> Presentation {
        let planned = match &self.plan {
            Plan::Made(planned) => planned.plan.presentation.clone(),
            Plan::Later => self.bare.clone(),
            Plan::Failed(why) => {
                Presentation { title: failed_title(&self.tool_name, why), ..self.bare.clone() }
            }
        };
        Presentation { decision: self.decision.clone(), ..planned }
    }

    /// What a tool left out of the presentation of its result stays as it was planned.
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
        // Without the preview of what did not happen.
        self.failure_shown(text, Presentation { content: Vec::new(), ..self.presentation() })
    }

    pub(super) fn failure_shown(&self, text: &str, mut shown: Presentation) -> Chunk {
        // Names in it may hold what can't be seen.
        let (error_text, note_bytes) = repeats::warned(&legible(text), self.repeated);
        shown.note_bytes = note_bytes;
        let (call_id, marks) = (self.call_id.clone(), ToolMarks::default());
        let rest = Rest::with_tool_metadata(only_own(shown));
        Chunk::ToolOutputError { call_id, error_text, marks, rest }
    }

    pub(super) fn denial(&self, reason: &str) -> Chunk {
        let shown = Presentation { content: Vec::new(), ..self.presentation() };
        let mut rest = Rest::with_tool_metadata(only_own(shown));
        let fields = rest.0.get_or_insert_default();
        fields.unknown.insert("errorText".into(), json!(reason));
        Chunk::ToolOutputDenied { call_id: self.call_id.clone(), rest }
    }
}

impl Turn {
    /// Takes a call whose arguments are whole, and tells how it looks. It is understood at once, unless a call before it
    /// may change what it finds.
    pub(super) async fn take_call(
        &mut self,
        call_id: CallId,
        tool_name: String,
        input: Value,
        (marks, rest): (ToolMarks, Rest),
    ) -> Result<(), Stop> {
        let repeated = self.repeats.count(&tool_name, &input);
        let mut call = Call::new(self, call_id, tool_name, input, repeated);
        call.plan = self.plan(&call).await?;
        if self.calls.iter().any(|before| before.effect == Effect::Mutates) {
            call.understand_later(&marks, &rest);
        }
        let announcement = call.announcement(marks, rest);
        self.calls.push(call);
        self.record(announcement).await
    }

    /// Understands a call. A cancel ends the wait: a client may owe the tool an answer.
    async fn plan(&self, call: &Call) -> Result<Plan, Stop> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Stop::Aborted),
            plan = Call::understood(self, &call.tool_name, &call.input) => Ok(plan),
        }
    }

    /// Gives every call of the step its one result, or stops at the first that needs an answer.
    pub(super) async fn settle_calls(&mut self, answered: Option<Box<Answered>>) -> Result<Settled, Stop> {
        if let Some(answered) = answered {
            self.take_answer(*answered).await?;
            // Much may have changed while the question was open.
            for call in self.calls.iter_mut().filter(|call| call.state == CallState::Open) {
                call.plan = Plan::Later;
            }
        }
        let mut first = 0;
        while first < self.calls.len() {
            // Calls that only read run side by side; one that changes something waits for those before it.
            let reads = self.calls[first..].iter().take_while(|call| call.effect == Effect::ReadOnly).count();
            let end = first + reads.max(1);
            if let Some(ask) = self.settle_some(first, end).await? {
                return Ok(Settled::Waiting(ask));
            }
            first = end;
        }
        let stop = self.calls.iter().find_map(|call| repeats::stop(&call.tool_name, call.repeated));
        Ok(stop.map_or(Settled::All, Settled::Repeating))
    }

    /// Settles calls that may run side by side; gives the question at which the turn has to wait, if there is one.
    async fn settle_some(&mut self, first: usize, end: usize) -> Result<Option<Arc<Ask>>, Stop> {
        let mut question = None;
        for index in first..end {
            if self.cancel.is_cancelled() {
                return Err(Stop::Aborted);
            }
            if self.calls[index].state != CallState::Open {
                continue;
            }
            self.understand(index).await?;
            match self.gate(index) {
                Gate::Open(grant) => self.calls[index].state = CallState::Allowed(grant),
                Gate::Refused(text) => {
                    let chunk = self.calls[index].failure(&text);
                    self.settle(index, chunk).await?;
                }
                Gate::Ask(ask) => {
                    question = Some(ask);
                    break;
                }
            }
        }
        self.run_side_by_side(first, end).await?;
        let Some(ask) = question else { return Ok(None) };
        if self.cancel.is_cancelled() {
            return Err(Stop::Aborted);
        }
        self.record_ask(&ask).await?;
        Ok(Some(ask))
    }

    /// Understands a call whose turn has come, and tells what is known of it by now.
    async fn understand(&mut self, index: usize) -> Result<(), Stop> {
        let call = &self.calls[index];
        if !matches!(call.plan, Plan::Later) {
            return Ok(());
        }
        let (plan, told) = (self.plan(call).await?, call.presentation());
        let call = &mut self.calls[index];
        call.plan = plan;
        match call.announced.take() {
            Some(announced) if call.presentation() != told => {
                let announcement = call.announcement(announced.0, announced.1);
                self.record(announcement).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Runs what was allowed. Each result is recorded as it lands.
    async fn run_side_by_side(&mut self, first: usize, end: usize) -> Result<(), Stop> {
        let mut landed = Vec::new();
        {
            let turn = &*self;
            let allowed = (first..end).filter_map(|index| match &turn.calls[index].state {
                CallState::Allowed(grant) => Some((index, grant.clone())),
                CallState::Open | CallState::Settled => None,
            });
            let run = |(index, grant)| async move { (index, turn.execute(&turn.calls[index], grant).await) };
            let mut running: FuturesUnordered<_> = allowed.map(run).collect();
            while let Some((index, result)) = running.next().await {
                turn.record(result?).await?;
                landed.push(index);
            }
        }
        for index in landed {
            self.calls[index].state = CallState::Settled;
        }
        Ok(())
    }

    /// Runs one allowed call. The intent is stored first, so that a crash never leads to a second run.
    async fn execute(&self, call: &Call, grant: Grant) -> Result<Chunk, Stop> {
        let Some(planned) = call.planned() else { return Ok(call.failure("not understood")) };
        let effect = planned.tool.spec().effect;
        let started = Presentation { content: Vec::new(), ..call.presentation() };
        self.record(preliminary(&call.call_id, &started)).await?;
        if effect == Effect::Mutates {
            self.journal.settle().await?;
        }
        let cancel = self.cancel.child_token();
        // A turn that is dropped takes its tools along.
        let _dropped_with_us = cancel.clone().drop_guard();
        let recorder = Arc::new(Recorder::new(self.journal.clone(), self.voice.clone(), call));
        let runtime = ToolRuntime {
            call_id: call.call_id.clone(),
            site: self.site_of(planned, &grant.directories),
            network: grant.network,
            writes: grant.writes,
            progress: recorder.clone(),
            cancel: cancel.clone(),
        };
        let (tool, input) = (planned.tool.clone(), call.input.clone());
        // A task of its own: a tool that panics fails its call, not the turn.
        let mut running = tokio::spawn(async move { tool.run(input, runtime).await });
        let outcome = tokio::select! {
            biased;
            outcome = &mut running => outcome,
            () = cancel.cancelled() => match tokio::time::timeout(time_to_stop(effect), &mut running).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    running.abort();
                    recorder.close();
                    return Ok(call.failure("cancelled while it ran; it may have had effects"));
                }
            },
        };
        recorder.close();
        match outcome {
            Ok(outcome) => Ok(finished(self, call, outcome).await?),
            Err(_) => Ok(call.failure("internal error: the tool crashed; its outcome is unknown")),
        }
    }

    pub(super) async fn settle(&mut self, index: usize, chunk: Chunk) -> Result<(), Stop> {
        self.record(chunk).await?;
        self.calls[index].state = CallState::Settled;
        Ok(())
    }
}

/// How long a call that was cancelled may take to end: one that only reads has nothing to clean up.
fn time_to_stop(effect: Effect) -> Duration {
    match effect {
        Effect::ReadOnly => READ_ABORT,
        Effect::Mutates => TOOL_ABORT,
    }
}
