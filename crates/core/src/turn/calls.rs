//! Settles the calls of one step: understand, check the grant, ask the watchdog, run, record the one result of each.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::close::failed;
use super::progress::Recorder;
use super::results::{finished, preliminary};
use super::step::as_object;
use super::{Answered, Stop, Turn};
use crate::chunk::{Chunk, Rest};
use crate::hub::People;
use crate::ids::CallId;
use crate::limits::{REPEATS_STOPPED, REPEATS_WARNED, TOOL_ABORT};
use crate::ports::client::{About, Ask};
use crate::ports::delegate::Offers;
use crate::ports::tool::{Access, Effect, NetworkGrant, Presentation, Site, Tool, ToolPlan, ToolRuntime};
use crate::scope::{Reach, reach};
use crate::watchdog::{Action, Approval, rule_name};

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
}

#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) plan: ToolPlan,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallState {
    Open,
    /// May run, with these directories beside the roots.
    Allowed(Vec<PathBuf>),
    Settled,
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

pub(super) enum Gate {
    Open(Vec<PathBuf>),
    Ask(Arc<Ask>),
    Refused(Chunk),
}

impl Call {
    /// Finds the tool and lets it read the arguments; nothing is changed by this.
    pub(crate) async fn understand(turn: &Turn, call_id: CallId, tool_name: String, input: Value) -> Self {
        let plan = Self::plan(turn, &tool_name, &input).await;
        let bare = match turn.tool(&tool_name) {
            Some(tool) => tool.spec().presentation(),
            None => bare(&tool_name),
        };
        Self { call_id, tool_name, input, bare, plan, state: CallState::Open }
    }

    async fn plan(turn: &Turn, tool_name: &str, input: &Value) -> Result<Planned, String> {
        let Some(tool) = turn.tool(tool_name) else {
            let known: Vec<_> = turn.setting.specs.iter().map(|spec| spec.id).collect();
            return Err(format!("there is no tool `{tool_name}`; available: {}", known.join(", ")));
        };
        if !turn.setting.agent.is_offered(tool.spec()) {
            return Err(format!("`{tool_name}` is not available to the {} agent", turn.setting.agent.id));
        }
        let input = as_object(input)?;
        // A tool that panics over its arguments fails this call, not the turn.
        let planned = AssertUnwindSafe(tool.plan(input, &turn.site(&[]))).catch_unwind().await;
        let crashed = |_| Err("internal error: the tool crashed over these arguments; it was not run".into());
        let plan = planned.unwrap_or_else(crashed)?;
        Ok(Planned { tool, plan })
    }

    /// A call whose arguments could not be read: it has its answer already.
    pub(crate) fn unreadable(call_id: CallId, tool_name: String, why: String) -> Self {
        let bare = bare(&tool_name);
        Self { call_id, tool_name, input: Value::Null, bare, plan: Err(why), state: CallState::Settled }
    }

    /// How the call looks before it runs.
    pub(crate) fn presentation(&self) -> Presentation {
        match &self.plan {
            Ok(planned) => planned.plan.presentation.clone(),
            Err(_) => self.bare.clone(),
        }
    }

    /// What a tool left out of the presentation of its result stays as it was planned.
    pub(super) fn complete(&self, result: Presentation) -> Presentation {
        let planned = self.presentation();
        Presentation {
            title: if result.title.is_empty() { planned.title } else { result.title },
            kind: result.kind.or(planned.kind),
            hidden: result.hidden || planned.hidden,
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
                    Gate::Open(granted) => self.calls[index].state = CallState::Allowed(granted),
                    Gate::Ask(ask) => {
                        self.record_ask(&ask).await?;
                        return Ok(Settled::Waiting(ask));
                    }
                    Gate::Refused(chunk) => self.settle(index, chunk).await?,
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

    /// Capability, then rules. Pure: nothing is recorded here.
    fn gate(&self, index: usize) -> Gate {
        let call = &self.calls[index];
        let planned = match &call.plan {
            Ok(planned) => planned,
            Err(text) => return Gate::Refused(call.failure(text)),
        };
        let accesses = &planned.plan.accesses;
        let approval = self.approval.get();
        let verdict = self.rules.verdict(accesses, approval);
        if verdict.action == Action::Deny {
            let rule = verdict.rule.map(|rule| rule.pattern).unwrap_or_default();
            return Gate::Refused(call.failure(&format!("denied by the rule `{rule}` of this session")));
        }
        let decided = verdict.rule.is_some() || approval == Approval::All;
        match reach(accesses, &self.setting.workspace, &self.granted) {
            Reach::Protected(reason) => Gate::Refused(call.failure(&reason)),
            Reach::Outside(directory) if verdict.action == Action::Allow && decided => {
                Gate::Open(vec![directory])
            }
            Reach::Inside if verdict.action == Action::Allow => self.gate_of_questions(call, planned),
            Reach::Inside | Reach::Outside(_) => match self.hub.parts.settings.people {
                People::Absent => Gate::Refused(call.failure("nobody is here who could allow it")),
                People::Present => {
                    let about = About::Permission { rule_name: rule_name(accesses) };
                    Gate::Ask(self.ask_about(call, planned, about))
                }
            },
        }
    }

    async fn run_call(&mut self, index: usize) -> Result<(), Stop> {
        let CallState::Allowed(granted) = self.calls[index].state.clone() else { return Ok(()) };
        let result = self.execute(&self.calls[index], granted).await?;
        self.settle(index, result).await
    }

    async fn run_side_by_side(&mut self) -> Result<(), Stop> {
        let running = self.calls.iter().enumerate().filter_map(|(index, call)| match &call.state {
            CallState::Allowed(granted) => Some((index, self.execute(call, granted.clone()))),
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
    async fn execute(&self, call: &Call, granted: Vec<PathBuf>) -> Result<Chunk, Stop> {
        let Ok(planned) = &call.plan else { return Ok(call.failure("not understood")) };
        let started = Presentation { content: Vec::new(), ..planned.plan.presentation.clone() };
        self.record(preliminary(&call.call_id, &started)).await?;
        if planned.tool.spec().effect == Effect::Mutates {
            self.journal.settle().await?;
        }
        let cancel = self.cancel.child_token();
        // A turn that is dropped takes its tools along.
        let _dropped_with_us = cancel.clone().drop_guard();
        let recorder = Recorder::new(self.journal.clone(), self.voice.clone(), call.call_id.clone());
        let recorder = Arc::new(recorder);
        let runtime = ToolRuntime {
            call_id: call.call_id.clone(),
            site: self.site(&granted),
            network: network_grant(&planned.plan.accesses),
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
        Ok(match outcome {
            Ok(outcome) => finished(call, outcome, self.repeat_warning(call)),
            Err(_) => call.failure("internal error: the tool crashed; its outcome is unknown"),
        })
    }

    /// Where calls work: the session's directories, those granted to it, and those granted to one call.
    fn site(&self, to_call: &[PathBuf]) -> Site {
        let granted = match to_call {
            [] => self.granted.clone(),
            to_call => self.granted.iter().chain(to_call).cloned().collect(),
        };
        // A client that offers nothing (any more) is as good as none.
        let client = self.client.clone().filter(|client| client.offers() != Offers::default());
        Site { workspace: self.setting.workspace.clone(), granted, client }
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

/// The network belongs to a call that named it before it was allowed.
fn network_grant(accesses: &[Access]) -> NetworkGrant {
    let names_it = accesses.iter().any(|access| matches!(access, Access::Network { .. }));
    if names_it { NetworkGrant::Granted } else { NetworkGrant::Withheld }
}

/// A call of a tool that nobody knows.
fn bare(tool_name: &str) -> Presentation {
    Presentation { title: tool_name.to_owned(), ..Presentation::default() }
}
