//! The tool calls of one answer: ACP lets an agent say anything about a call at any time, the vocabulary of
//! chunks has an order. Keeps what was said of each call and says it again in that order.

use std::collections::HashMap;

use agent_client_protocol_schema::v1::{
    Meta, ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use attache_core::chunk::Chunk;
use attache_core::ids::CallId;
use attache_core::ports::tool::{Presentation, ToolKind};
use serde_json::{Value, json};

use super::call::{AcpCall, AcpCallStage, UseOfCall};
use super::present::{self, TerminalTexts};
use super::question::QuestionContent;
use crate::limits::CALLS;

/// All calls of one answer.
#[derive(Debug, Default)]
pub(super) struct CallBook {
    /// By the agent's own ids.
    calls: HashMap<String, AcpCall>,
    opened: usize,
}

/// An agent that calls without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent made more than {CALLS} tool calls in one turn")]
pub(super) struct TooManyCalls;

/// A call that is asked about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallInQuestion {
    pub(super) call_id: CallId,
    pub(super) tool_name: String,
    pub(super) input: Value,
    pub(super) shown: Presentation,
    /// Why the agent asks, where it says so in words that we know.
    pub(super) reason: Option<String>,
}

impl CallInQuestion {
    /// Whether it runs a command. Some agents say no kind.
    pub(super) fn is_command(&self) -> bool {
        let may_run = matches!(self.shown.kind, None | Some(ToolKind::Execute | ToolKind::Other));
        may_run && self.input.get("command").is_some_and(|command| !command.is_null())
    }
}

/// One message about a call, in the form of an update.
struct CallMessage<'a> {
    id: &'a str,
    fields: ToolCallUpdateFields,
    meta: Option<&'a Meta>,
    /// A call that is announced anew under an id that is settled is another call.
    is_new: IsNew,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IsNew {
    Announced,
    Updated,
}

impl CallBook {
    /// Whether nothing runs: a step may end.
    pub(super) fn all_settled(&self) -> bool {
        self.calls.values().all(|call| call.stage == AcpCallStage::Settled)
    }

    pub(super) fn announced(
        &mut self,
        call: ToolCall,
        terminals: &dyn TerminalTexts,
        out: &mut Vec<Chunk>,
    ) -> Result<(), TooManyCalls> {
        let ToolCall { tool_call_id, title, name, kind, status, content, locations, .. } = call;
        let fields = ToolCallUpdateFields::new()
            .title(title)
            .name(name)
            .kind(kind)
            .status(status)
            .content((!content.is_empty()).then_some(content))
            .locations((!locations.is_empty()).then_some(locations))
            .raw_input(call.raw_input)
            .raw_output(call.raw_output);
        let said =
            CallMessage { id: &tool_call_id.0, fields, meta: call.meta.as_ref(), is_new: IsNew::Announced };
        self.said(said, terminals, out)
    }

    pub(super) fn updated(
        &mut self,
        update: ToolCallUpdate,
        terminals: &dyn TerminalTexts,
        out: &mut Vec<Chunk>,
    ) -> Result<(), TooManyCalls> {
        let ToolCallUpdate { tool_call_id, fields, meta, .. } = update;
        let said = CallMessage { id: &tool_call_id.0, fields, meta: meta.as_ref(), is_new: IsNew::Updated };
        self.said(said, terminals, out)
    }

    /// The call as a question shows it; its input counts as whole from here on.
    pub(super) fn asked(
        &mut self,
        update: ToolCallUpdate,
        terminals: &dyn TerminalTexts,
        out: &mut Vec<Chunk>,
    ) -> Result<Option<CallInQuestion>, TooManyCalls> {
        let id = update.tool_call_id.0.to_string();
        // What the question says of its progress is no progress.
        let mut update = update;
        update.fields.status = None;
        let content = QuestionContent::of(update.fields.content.take());
        update.fields.content = content.of_call;
        self.updated(update, terminals, out)?;
        let is_late = self.calls.get(&id).is_some_and(|call| call.stage > AcpCallStage::Whole);
        let key = if is_late { self.ask_beside(&id, out)? } else { id };
        let Some(call) = self.calls.get_mut(&key) else { return Ok(None) };
        if call.stage == AcpCallStage::Begun {
            call.tell_input(out);
        }
        let mut shown = call.shown.clone();
        if !content.shown.is_empty() {
            shown.content = present::content(&content.shown, terminals);
        }
        call.asked_as(&shown);
        Ok(Some(CallInQuestion {
            call_id: call.call_id.clone(),
            tool_name: call.tool_name.clone(),
            input: call.whole_input(),
            shown,
            reason: content.reason,
        }))
    }

    /// It may run.
    pub(super) fn allowed(&mut self, call_id: &CallId, out: &mut Vec<Chunk>) {
        if let Some(call) = self.calls.values_mut().find(|call| call.call_id == *call_id)
            && call.use_of == UseOfCall::Question
        {
            call.output = Some(json!({ "allowed": true }));
            call.settle(ToolCallStatus::Completed, out);
        }
    }

    /// It may not run, which is recorded already: whatever the agent says of it now comes too late.
    pub(super) fn denied(&mut self, call_id: &CallId) {
        if let Some(call) = self.calls.values_mut().find(|call| call.call_id == *call_id) {
            call.stage = AcpCallStage::Settled;
        }
    }

    /// The turn is over: what the agent left open has no result.
    pub(super) fn close(&mut self, out: &mut Vec<Chunk>) {
        for call in self.calls.values_mut().filter(|call| call.stage != AcpCallStage::Settled) {
            if call.stage == AcpCallStage::Begun {
                call.tell_input(out);
            }
            call.settle(ToolCallStatus::Failed, out);
        }
    }

    fn said(
        &mut self,
        said: CallMessage<'_>,
        terminals: &dyn TerminalTexts,
        out: &mut Vec<Chunk>,
    ) -> Result<(), TooManyCalls> {
        let known = self.calls.get(said.id).map(|call| call.stage);
        let is_another = known == Some(AcpCallStage::Settled) && said.is_new == IsNew::Announced;
        if known.is_none() || is_another {
            let call = self.begin(&said, UseOfCall::Work)?;
            out.push(call.start());
            self.calls.insert(said.id.to_owned(), call);
        }
        let Some(call) = self.calls.get_mut(said.id) else { return Ok(()) };
        if call.stage == AcpCallStage::Settled {
            return Ok(());
        }
        let status = said.fields.status;
        let news = call.take(said.fields, terminals);
        match status {
            Some(ToolCallStatus::InProgress) => call.progress(out),
            Some(status @ (ToolCallStatus::Completed | ToolCallStatus::Failed)) => call.settle(status, out),
            Some(_) | None => call.more(news, out),
        }
        Ok(())
    }

    /// The question as a call of its own; gives its key.
    fn ask_beside(&mut self, id: &str, out: &mut Vec<Chunk>) -> Result<String, TooManyCalls> {
        let Some(call) = self.calls.get(id) else { return Ok(id.to_owned()) };
        let (title, input) = (call.shown.title.clone(), call.input.clone());
        let fields = ToolCallUpdateFields::new().title(title).name(call.tool_name.clone());
        let said = CallMessage { id, fields, meta: None, is_new: IsNew::Announced };
        let mut question = self.begin(&said, UseOfCall::Question)?;
        question.input = input;
        out.push(question.start());
        // No id of an agent has this in it.
        let key = format!("{id}\0{}", self.opened);
        self.calls.insert(key.clone(), question);
        Ok(key)
    }

    fn begin(&mut self, said: &CallMessage<'_>, use_of: UseOfCall) -> Result<AcpCall, TooManyCalls> {
        if self.opened == CALLS {
            return Err(TooManyCalls);
        }
        self.opened += 1;
        // Agents number their calls anew in each turn or process; within one message ids are told apart.
        let call_id = match (use_of, self.calls.contains_key(said.id)) {
            (UseOfCall::Work, false) => CallId::new(said.id),
            (UseOfCall::Work, true) => CallId::new(format!("{}#{}", said.id, self.opened)),
            (UseOfCall::Question, _) => CallId::new(format!("{}?{}", said.id, self.opened)),
        };
        let fields = &said.fields;
        let tool_name = present::tool_name(fields.name.as_deref(), said.meta, fields.kind);
        let title = fields.title.as_deref().map(present::title).unwrap_or_default();
        let shown = Presentation { title, kind: fields.kind.map(present::kind), ..Presentation::default() };
        Ok(AcpCall::new(call_id, tool_name, shown, use_of))
    }
}
