//! Settles the calls of one step: understand, have them judged, run, record the one result of each. `gate` decides.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::close::failed;
use super::gate::Gate;
use super::progress::Recorder;
use super::results::{finished, preliminary};
use super::step::as_object;
use super::{Answered, Stop, Turn};
use crate::chunk::{Chunk, Rest};
use crate::ids::CallId;
use crate::limits::{REPEATS_STOPPED, REPEATS_WARNED, TOOL_ABORT};
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
    /// The error is the answer to the model.
    pub(crate) plan: Result<Planned, String>,
    pub(crate) state: CallState,
    /// Why it runs or does not, as soon as that is known.
    pub(super) decision: Option<Verdict>,
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

/// Counts identical calls in a row.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    last: Option<(String, Value)>,
    count: u32,
}

impl Repeats {
    fn count(&mut self, call: &Call) -> u32 {
        let same =
            self.last.as_ref().is_some_and(|(name, input)| *name == call.tool_name && *input == call.input);
        if !same {
            self.last = Some((call.tool_name.clone(), call.input.clone()));
            self.count = 0;
        }
        self.count += 1;
        self.count
    }
}

impl Call {
    /// Finds the tool and lets it read the arguments; nothing is changed by this.
    pub(crate) async fn understand(turn: &Turn, call_id: CallId, tool_name: String, input: Value) -> Self {
        let plan = Self::plan(turn, &tool_name, &input).await;
        let bare = match turn.tool(&tool_name) {
            Some(tool) => tool.spec().presentation(),
            None => bare(&tool_name),
        };
        Self { call_id, tool_name, input, bare, plan, state: CallState::Open, decision: None }
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
    pub(crate) fn unreadable(call_id: CallId, tool_name: String, why: String) -> Self {
        let bare = bare(&tool_name);
        let (input, state) = (Value::Null, CallState::Settled);
        Self { call_id, tool_name, input, bare, plan: Err(why), state, decision: None }
    }

    /// How the call looks before it runs.
    pub(crate) fn presentation(&self) -> Presentation {
        let planned = match &self.plan {
            Ok(planned) => &planned.plan.presentation,
            Err(_) => &self.bare,
        };
        Presentation { decision: self.decision.clone(), ..planned.clone() }
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

    fn is_read_only(&self) -> bool {
        self.plan.as_ref().is_ok_and(|planned| planned.tool.spec().effect == Effect::ReadOnly)
    }

    /// What travels with a failure: how to show the call, without the preview of what did not happen.
    fn failure_marks(&self) -> Rest {
        let presentation = Presentation { content: Vec::new(), ..self.presentation() };
        Rest::with_tool_metadata(json!({ "attache": presentation }))
    }

    pub(super) fn failure(&self, text: &str) -> Chunk {
        let mut chunk = failed(self.call_id.clone(), text);
        if let Chunk::ToolOutputError { rest, .. } = &mut chunk {
            *rest = self.failure_marks();
        }
        chunk
    }

    pub(super) fn denial(&self, reason: &str) -> Chunk {
        let mut rest = self.failure_marks();
        let fields = rest.0.get_or_insert_default();
        fields.unknown.insert("errorText".into(), json!(reason));
        Chunk::ToolOutputDenied { call_id: self.call_id.clone(), rest }
    }
}

impl Turn {
    /// Gives every call of the step its one result, or stops at the first that needs an answer.
    pub(super) async fn settle_calls(&mut self, answered: Option<Box<Answered>>) -> Result<Settled, Stop> {
        if let Some(answered) = answered {
            self.take_answer(*answered).await?;
        }
        let side_by_side = self.calls.len() > 1 && self.calls.iter().all(Call::is_read_only);
        for index in 0..self.calls.len() {
            if self.cancel.is_cancelled() {
                return Err(Stop::Aborted);
            }
            if self.calls[index].state == CallState::Open {
                match self.gate(index) {
                    Gate::Open(grant) => self.calls[index].state = CallState::Allowed(grant),
                    Gate::Ask(ask) => {
                        self.record_ask(&ask).await?;
                        return Ok(Settled::Waiting(ask));
                    }
                    Gate::Refused(text) => {
                        let chunk = self.calls[index].failure(&text);
                        self.settle(index, chunk).await?;
                    }
                }
            }
            if !side_by_side {
                self.run_call(index).await?;
            }
        }
        if side_by_side {
            self.run_side_by_side().await?;
        }
        Ok(self.check_repeats())
    }

    async fn run_call(&mut self, index: usize) -> Result<(), Stop> {
        let CallState::Allowed(grant) = self.calls[index].state.clone() else { return Ok(()) };
        let result = self.execute(&self.calls[index], grant).await?;
        self.settle(index, result).await
    }

    async fn run_side_by_side(&mut self) -> Result<(), Stop> {
        let running = self.calls.iter().enumerate().filter_map(|(index, call)| match &call.state {
            CallState::Allowed(grant) => Some((index, self.execute(call, grant.clone()))),
            CallState::Open | CallState::Settled => None,
        });
        let (indexes, futures): (Vec<_>, Vec<_>) = running.unzip();
        let results = join_all(futures).await;
        for (index, result) in indexes.into_iter().zip(results) {
            self.settle(index, result?).await?;
        }
        Ok(())
    }

    /// Runs one allowed call. The intent is stored first, so that a crash never leads to a second run.
    async fn execute(&self, call: &Call, grant: Grant) -> Result<Chunk, Stop> {
        let Ok(planned) = &call.plan else { return Ok(call.failure("not understood")) };
        let started = Presentation { content: Vec::new(), ..call.presentation() };
        self.record(preliminary(&call.call_id, &started)).await?;
        if planned.tool.spec().effect == Effect::Mutates {
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
            () = cancel.cancelled() => match tokio::time::timeout(TOOL_ABORT, &mut running).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    running.abort();
                    recorder.close();
                    return Ok(call.failure("aborted"));
                }
            },
        };
        recorder.close();
        match outcome {
            Ok(outcome) => Ok(finished(self, call, outcome, self.repeat_warning(call)).await?),
            Err(_) => Ok(call.failure("internal error: the tool crashed; its outcome is unknown")),
        }
    }

    pub(super) async fn settle(&mut self, index: usize, chunk: Chunk) -> Result<(), Stop> {
        self.record(chunk).await?;
        self.calls[index].state = CallState::Settled;
        Ok(())
    }

    fn check_repeats(&mut self) -> Settled {
        let Self { calls, repeats, .. } = self;
        for call in calls.iter() {
            if repeats.count(call) >= REPEATS_STOPPED {
                return Settled::Repeating(format!(
                    "the model made the same `{}` call {REPEATS_STOPPED} times in a row; the turn was stopped",
                    call.tool_name
                ));
            }
        }
        Settled::All
    }

    /// A word to the model when it goes round in circles; it rides on the result of the call.
    fn repeat_warning(&self, call: &Call) -> Option<String> {
        let (name, input) = self.repeats.last.as_ref()?;
        let repeated =
            *name == call.tool_name && *input == call.input && self.repeats.count + 1 >= REPEATS_WARNED;
        repeated.then(|| {
            format!(
                "You have made this very call {} times in a row; do something else.",
                self.repeats.count + 1
            )
        })
    }
}

/// A call of a tool that nobody knows.
fn bare(tool_name: &str) -> Presentation {
    Presentation { title: tool_name.to_owned(), ..Presentation::default() }
}
