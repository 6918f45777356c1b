//! The answer of an agent as it is recorded: steps around what needs one, ids that are new in the session, and
//! nothing out of order. What can't be an answer ends it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use attache_core::chunk::order::OrderChecker;
use attache_core::chunk::{Chunk, Rest, RestFields, ToolMarks};
use attache_core::data_name::DataName;
use attache_core::ids::CallId;
use attache_core::metadata::{OWN_KEY, own};
use attache_core::part::{Part, ToolPart, ToolState};
use attache_core::ports::backend::TurnContext;
use serde_json::{Value, json};

use super::Stop;
use super::weight::weight;
use crate::ForeignError;
use crate::agent::Decided;
use crate::limits::ANSWER_BYTES;

const NOBODY_RAN_IT: &str = "not run: the agent left it to others, and attache runs no tools for it";

/// Whether an agent's own data of this name would be taken for ours. A plan is a plan, whoever makes it.
fn is_ours(name: &str) -> bool {
    DataName::of(name).is_some_and(|known| known != DataName::Plan)
}

/// What stands before a name that is ours.
pub(crate) const RENAMED: &str = "agent-";

/// Under which a call keeps the id that its agent has for it.
const SAID_ID: &str = "said_id";

/// The id of a stored call as its agent knows it.
pub(crate) fn said_id(tool: &ToolPart) -> CallId {
    let said = tool.tool_metadata.as_ref().and_then(own).and_then(|ours| ours.get(SAID_ID)?.as_str());
    said.map_or_else(|| tool.call_id.clone(), CallId::new)
}

#[derive(Debug)]
pub(super) struct AnswerRecorder {
    order: OrderChecker,
    in_step: bool,
    /// The agent ended its step. It ends here once its calls are settled and something follows.
    step_is_over: bool,
    /// The open step is one that an earlier process began: some agents say that it ends, others begin it again.
    is_taken_up: bool,
    /// Ids that calls had before this answer.
    known: Arc<HashSet<CallId>>,
    /// Calls of this answer.
    own: HashSet<CallId>,
    /// Calls of the open step whose beginning is recorded.
    begun: HashSet<CallId>,
    /// What a call is called here, where another has its id already.
    renamed: HashMap<CallId, CallId>,
    /// Calls that were asked about: some agents tell their input again once that is decided.
    asked: HashSet<CallId>,
    /// Calls that were denied: whatever the agent says of them comes too late.
    denied: HashSet<CallId>,
    bytes: u64,
}

impl AnswerRecorder {
    pub(super) fn new(context: &TurnContext) -> Self {
        let mut order = OrderChecker::default();
        let start = Chunk::Start { message_id: None, message_metadata: None, rest: Rest::none() };
        // The first chunk of a run is never out of order.
        drop(order.check(&start));
        Self {
            order,
            in_step: false,
            step_is_over: false,
            is_taken_up: false,
            known: context.conversation.call_ids().clone(),
            own: HashSet::new(),
            begun: HashSet::new(),
            renamed: HashMap::new(),
            asked: HashSet::new(),
            denied: HashSet::new(),
            bytes: 0,
        }
    }

    /// Goes on with an answer that an earlier process began: its step is open, and its calls with it.
    pub(super) fn take_up(&mut self, context: &TurnContext) {
        let rest = Rest::none;
        let mut said = vec![Chunk::StartStep { rest: rest() }];
        for part in context.open_parts() {
            let Part::Tool(tool) = part else { continue };
            let (call_id, tool_name) = (tool.call_id.clone(), tool.tool_name.clone());
            self.own.insert(call_id.clone());
            self.begun.insert(call_id.clone());
            let of_agent = said_id(&tool);
            if of_agent != call_id {
                self.renamed.insert(of_agent, call_id.clone());
            }
            let input = tool.input.clone().unwrap_or_default();
            let marks = attache_core::chunk::ToolMarks::default();
            said.push(Chunk::ToolInputAvailable {
                call_id: call_id.clone(),
                tool_name,
                input,
                marks,
                rest: rest(),
            });
            if let Some(approval) = &tool.approval {
                let approval_id = approval.id.clone();
                self.asked.insert(call_id.clone());
                said.push(Chunk::ToolApprovalRequest { approval_id, call_id: call_id.clone(), rest: rest() });
            }
            if tool.is_settled() {
                if tool.state == ToolState::OutputDenied {
                    self.denied.insert(call_id.clone());
                }
                said.push(Chunk::ToolOutputDenied { call_id, rest: rest() });
            }
        }
        for chunk in said {
            // As it was recorded before.
            drop(self.order.check(&chunk));
        }
        (self.in_step, self.step_is_over, self.is_taken_up) = (true, true, true);
    }

    /// Records one chunk of the agent. Ends of the message are no chunks of it.
    pub(super) async fn say(&mut self, context: &mut TurnContext, mut chunk: Chunk) -> Result<(), Stop> {
        self.bytes += weight(&chunk);
        if self.bytes > ANSWER_BYTES {
            let text = format!("the agent said more than {} MiB in one answer", ANSWER_BYTES / 1024 / 1024);
            return Err(ForeignError::new(text).into());
        }
        if let Chunk::Start { .. } | Chunk::MessageMetadata { .. } = &chunk {
            return Ok(());
        }
        if let Chunk::StartStep { .. } = &chunk {
            return self.start_step(context).await;
        }
        if let Chunk::FinishStep { .. } = &chunk {
            return self.finish_step();
        }
        if chunk.is_terminal() {
            return Err(ForeignError::new("the agent ended its answer twice").into());
        }
        self.rename(&mut chunk);
        if ended_call(&chunk).is_some_and(|call| self.denied.contains(call))
            || input_of(&chunk).is_some_and(|call| self.asked.contains(call))
        {
            return Ok(());
        }
        if !matches!(chunk, Chunk::Data { transient: Some(true), .. }) {
            let settles = is_result(&chunk);
            if self.step_is_over && !settles && context.open_calls().is_empty() {
                self.close_step(context).await?;
            }
            self.begin_step(context).await?;
        }
        self.show(&mut chunk);
        if let Some(beginning) = self.beginning(&chunk) {
            self.record(context, beginning).await?;
        }
        context.shelve(&mut chunk).await?;
        self.record(context, chunk).await
    }

    /// The beginning of a call that the agent tells as a whole: clients know a call from its beginning on.
    fn beginning(&mut self, chunk: &Chunk) -> Option<Chunk> {
        if let Chunk::ToolInputStart { call_id, .. } = chunk {
            self.begun.insert(call_id.clone());
            return None;
        }
        let (Chunk::ToolInputAvailable { call_id, tool_name, marks, rest, .. }
        | Chunk::ToolInputError { call_id, tool_name, marks, rest, .. }) = chunk
        else {
            return None;
        };
        let tool_metadata = rest.tool_metadata().cloned();
        self.begun.insert(call_id.clone()).then(|| Chunk::ToolInputStart {
            call_id: call_id.clone(),
            tool_name: tool_name.clone(),
            input_encoding: None,
            marks: marks.clone(),
            rest: Rest(Some(Box::new(RestFields { tool_metadata, ..RestFields::default() }))),
        })
    }

    /// Begins a step unless one is open.
    pub(super) async fn begin_step(&mut self, context: &mut TurnContext) -> Result<(), Stop> {
        if self.in_step {
            return Ok(());
        }
        (self.in_step, self.step_is_over) = (true, false);
        self.record(context, Chunk::StartStep { rest: Rest::none() }).await
    }

    /// The step is what a call was told in: an answer that comes for it now is no part of the next.
    async fn start_step(&mut self, context: &mut TurnContext) -> Result<(), Stop> {
        self.is_taken_up = false;
        if self.step_is_over {
            // Some agents begin a step for the results of what they had asked about.
            if context.open_calls().keys().any(|call| self.asked.contains(call)) {
                self.step_is_over = false;
                return Ok(());
            }
            Self::demand_settled(context).await?;
            self.close_step(context).await?;
        }
        if self.in_step {
            return Err(out_of_order("start-step: a step ends before the next one"));
        }
        self.begin_step(context).await
    }

    fn finish_step(&mut self) -> Result<(), Stop> {
        if std::mem::take(&mut self.is_taken_up) && self.step_is_over {
            return Ok(());
        }
        if !self.in_step || self.step_is_over {
            return Err(out_of_order("finish-step: no step has begun"));
        }
        // Closed by what comes next: usage is told behind the step that it is of, and what is decided about its
        // calls belongs to it.
        self.step_is_over = true;
        Ok(())
    }

    async fn close_step(&mut self, context: &mut TurnContext) -> Result<(), Stop> {
        self.check(&Chunk::FinishStep { rest: Rest::none() })?;
        (self.in_step, self.step_is_over, self.is_taken_up) = (false, false, false);
        self.begun.clear();
        Ok(context.finish_step().await?)
    }

    /// Behind the last chunk. An answer has a step, also one that says nothing.
    pub(super) async fn end(&mut self, context: &mut TurnContext) -> Result<(), Stop> {
        Self::demand_settled(context).await?;
        if !context.has_steps() {
            self.begin_step(context).await?;
        }
        if self.in_step {
            self.close_step(context).await?;
        }
        Ok(())
    }

    async fn demand_settled(context: &mut TurnContext) -> Result<(), Stop> {
        let open = context.open_calls();
        let Some(tool) = open.values().min() else { return Ok(()) };
        for call_id in open.keys().cloned() {
            // Here, where it is known: nobody ran it, so it can't have had effects.
            let (error_text, marks) = (NOBODY_RAN_IT.to_owned(), ToolMarks::default());
            let failed = Chunk::ToolOutputError { call_id, error_text, marks, rest: Rest::none() };
            context.journal.record(failed).await?;
        }
        let text = format!(
            "the agent left the call of `{tool}` without a result; attache runs no tools for it: a tool without an \
             `execute` on its own side can't be used here"
        );
        Err(ForeignError::new(text).into())
    }

    /// Records the denial of a call; what the agent says of it from now on is passed over.
    pub(super) async fn deny(&mut self, context: &mut TurnContext, call_id: CallId) -> Result<(), Stop> {
        self.denied.insert(call_id.clone());
        self.record(context, Chunk::ToolOutputDenied { call_id, rest: Rest::none() }).await
    }

    pub(super) async fn record(&mut self, context: &mut TurnContext, chunk: Chunk) -> Result<(), Stop> {
        self.check(&chunk)?;
        Ok(context.journal.record(chunk).await?)
    }

    /// Records a question.
    pub(super) async fn ask(&mut self, context: &mut TurnContext, chunk: Chunk) -> Result<(), Stop> {
        if let Chunk::ToolApprovalRequest { call_id, .. } = &chunk {
            self.asked.insert(call_id.clone());
        }
        self.record(context, chunk).await
    }

    fn check(&mut self, chunk: &Chunk) -> Result<(), Stop> {
        self.order.check(chunk).map_err(|error| out_of_order(&error.to_string()))
    }

    /// The call as it is called here.
    pub(super) fn call(&self, said: &CallId) -> CallId {
        self.renamed.get(said).unwrap_or(said).clone()
    }

    /// The decision about a call as the agent calls it.
    pub(super) fn as_it_said(&self, decided: Decided) -> Decided {
        let said = self.renamed.iter().find(|(_, ours)| **ours == decided.call_id);
        Decided { call_id: said.map_or(decided.call_id.clone(), |(said, _)| said.clone()), ..decided }
    }

    /// How a call looks: its title, that it runs elsewhere, and what the agent calls it where that is another
    /// id.
    fn show(&self, chunk: &mut Chunk) {
        let (Chunk::ToolInputStart { call_id, tool_name, marks, rest, .. }
        | Chunk::ToolInputAvailable { call_id, tool_name, marks, rest, .. }
        | Chunk::ToolInputError { call_id, tool_name, marks, rest, .. }) = chunk
        else {
            return;
        };
        let title = marks.title.as_deref().unwrap_or(tool_name);
        let said = self.renamed.iter().find(|(_, ours)| *ours == call_id).map(|(said, _)| said.as_str());
        let fields = rest.0.get_or_insert_default();
        let metadata = fields.tool_metadata.get_or_insert_with(|| json!({}));
        let Some(metadata) = metadata.as_object_mut() else { return };
        let ours = metadata.entry(OWN_KEY).or_insert_with(|| json!({}));
        if let Value::Object(ours) = ours {
            ours.entry("title").or_insert_with(|| title.into());
            ours.entry("kind").or_insert_with(|| "other".into());
            ours.insert("elsewhere".into(), true.into());
            if let Some(said) = said {
                ours.insert(SAID_ID.into(), said.into());
            }
        }
    }

    /// Ids of calls are new in the session, and names of data are none of ours.
    fn rename(&mut self, chunk: &mut Chunk) {
        if let Chunk::Data { name, .. } = chunk {
            if is_ours(name) {
                name.insert_str(0, RENAMED);
            }
            return;
        }
        let Some(call_id) = call_of(chunk) else { return };
        if let Some(ours) = self.renamed.get(call_id) {
            *call_id = ours.clone();
        } else if !self.own.contains(call_id) {
            let said = call_id.clone();
            let taken = |id: &CallId| self.known.contains(id) || self.own.contains(id);
            let mut number = 2;
            while taken(call_id) {
                *call_id = CallId::new(format!("{said}-{number}"));
                number += 1;
            }
            if *call_id != said {
                self.renamed.insert(said, call_id.clone());
            }
            self.own.insert(call_id.clone());
        }
    }
}

fn out_of_order(what: &str) -> Stop {
    ForeignError::new(format!("the agent's answer is out of order: {what}")).into()
}

fn call_of(chunk: &mut Chunk) -> Option<&mut CallId> {
    let (Chunk::ToolInputStart { call_id, .. }
    | Chunk::ToolInputDelta { call_id, .. }
    | Chunk::ToolInputAvailable { call_id, .. }
    | Chunk::ToolInputError { call_id, .. }
    | Chunk::ToolApprovalRequest { call_id, .. }
    | Chunk::ToolOutputAvailable { call_id, .. }
    | Chunk::ToolOutputError { call_id, .. }
    | Chunk::ToolOutputDenied { call_id, .. }) = chunk
    else {
        return None;
    };
    Some(call_id)
}

fn input_of(chunk: &Chunk) -> Option<&CallId> {
    let (Chunk::ToolInputStart { call_id, .. }
    | Chunk::ToolInputDelta { call_id, .. }
    | Chunk::ToolInputAvailable { call_id, .. }) = chunk
    else {
        return None;
    };
    Some(call_id)
}

pub(super) fn ended_call(chunk: &Chunk) -> Option<&CallId> {
    let (Chunk::ToolOutputAvailable { call_id, .. }
    | Chunk::ToolOutputError { call_id, .. }
    | Chunk::ToolOutputDenied { call_id, .. }) = chunk
    else {
        return None;
    };
    Some(call_id)
}

fn is_result(chunk: &Chunk) -> bool {
    ended_call(chunk).is_some()
}
