//! The tool calls of one answer: ACP lets an agent say anything about a call at any time, the vocabulary of
//! chunks has an order. Keeps what was said of each call and says it again in that order.

use std::collections::HashMap;

use agent_client_protocol_schema::v1::{
    Meta, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use attache_core::chunk::{Chunk, Rest, RestFields, ToolMarks};
use attache_core::ids::CallId;
use attache_core::metadata::only_own;
use attache_core::ports::tool::{Presentation, Shown};
use serde_json::{Value, json};

use crate::limits::{CALLS, PROGRESS_BYTES};
use super::present::{self, TerminalTexts};

/// All calls of one answer.
#[derive(Debug, Default)]
pub(super) struct CallBook {
    /// By the agent's own ids.
    calls: HashMap<String, KnownCall>,
    opened: usize,
}

#[derive(Debug)]
struct KnownCall {
    call_id: CallId,
    tool_name: String,
    shown: Presentation,
    blocks: Vec<ToolCallContent>,
    input: Option<Value>,
    output: Option<Value>,
    stage: CallStage,
    /// What was recorded of it while it ran.
    progress_bytes: usize,
    use_of: UseOfCall,
}

/// Why a call is in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UseOfCall {
    /// The agent made it.
    Work,
    /// The agent asked about a call that ran already: the question is a call of its own, which ends with the
    /// answer.
    Question,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CallStage {
    Begun,
    /// Its input was told.
    Whole,
    /// It was asked about.
    Asked,
    Runs,
    Settled,
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
}

/// One message about a call, in the form of an update.
struct Said<'a> {
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
        self.calls.values().all(|call| call.stage == CallStage::Settled)
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
        let said = Said { id: &tool_call_id.0, fields, meta: call.meta.as_ref(), is_new: IsNew::Announced };
        self.said(said, terminals, out)
    }

    pub(super) fn updated(
        &mut self,
        update: ToolCallUpdate,
        terminals: &dyn TerminalTexts,
        out: &mut Vec<Chunk>,
    ) -> Result<(), TooManyCalls> {
        let ToolCallUpdate { tool_call_id, fields, meta, .. } = update;
        let said = Said { id: &tool_call_id.0, fields, meta: meta.as_ref(), is_new: IsNew::Updated };
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
        self.updated(update, terminals, out)?;
        let is_late = self.calls.get(&id).is_some_and(|call| call.stage > CallStage::Whole);
        let key = if is_late { self.ask_beside(&id, out)? } else { id };
        let Some(call) = self.calls.get_mut(&key) else { return Ok(None) };
        if call.stage == CallStage::Begun {
            call.tell_input(out);
        }
        call.stage = CallStage::Asked;
        Ok(Some(CallInQuestion {
            call_id: call.call_id.clone(),
            tool_name: call.tool_name.clone(),
            input: call.whole_input(),
            shown: call.shown.clone(),
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
            call.stage = CallStage::Settled;
        }
    }

    /// The turn is over: what the agent left open has no result.
    pub(super) fn close(&mut self, out: &mut Vec<Chunk>) {
        for call in self.calls.values_mut().filter(|call| call.stage != CallStage::Settled) {
            if call.stage == CallStage::Begun {
                call.tell_input(out);
            }
            call.settle(ToolCallStatus::Failed, out);
        }
    }

    fn said(
        &mut self,
        said: Said<'_>,
        terminals: &dyn TerminalTexts,
        out: &mut Vec<Chunk>,
    ) -> Result<(), TooManyCalls> {
        let known = self.calls.get(said.id).map(|call| call.stage);
        let is_another = known == Some(CallStage::Settled) && said.is_new == IsNew::Announced;
        if known.is_none() || is_another {
            self.begin(&said, out)?;
        }
        let Some(call) = self.calls.get_mut(said.id) else { return Ok(()) };
        if call.stage == CallStage::Settled {
            return Ok(());
        }
        let status = said.fields.status;
        let news = call.take(said.fields, terminals);
        match status {
            Some(ToolCallStatus::InProgress) => call.progress(news, out),
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
        // No id of an agent has this in it.
        let key = format!("{id}\0{}", self.opened);
        let said = Said { id: &key, fields, meta: None, is_new: IsNew::Announced };
        self.begin(&said, out)?;
        if let Some(call) = self.calls.get_mut(&key) {
            (call.use_of, call.input) = (UseOfCall::Question, input);
            call.call_id = CallId::new(format!("{id}?{}", self.opened));
        }
        Ok(key)
    }

    fn begin(&mut self, said: &Said<'_>, out: &mut Vec<Chunk>) -> Result<(), TooManyCalls> {
        if self.opened == CALLS {
            return Err(TooManyCalls);
        }
        self.opened += 1;
        // Agents number their calls anew in each turn or process; within one message ids are told apart.
        let call_id = match self.calls.contains_key(said.id) {
            true => CallId::new(format!("{}#{}", said.id, self.opened)),
            false => CallId::new(said.id),
        };
        let fields = &said.fields;
        let tool_name = present::tool_name(fields.name.as_deref(), said.meta, fields.kind);
        let title = fields.title.as_deref().map(present::title).unwrap_or_default();
        let shown = Presentation { title, kind: fields.kind.map(present::kind), ..Presentation::default() };
        out.push(Chunk::ToolInputStart {
            call_id: call_id.clone(),
            tool_name: tool_name.clone(),
            input_encoding: None,
            marks: marks(&shown),
            rest: rest(&shown),
        });
        let call = KnownCall {
            call_id,
            tool_name,
            shown,
            blocks: Vec::new(),
            input: None,
            output: None,
            stage: CallStage::Begun,
            progress_bytes: 0,
            use_of: UseOfCall::Work,
        };
        self.calls.insert(said.id.to_owned(), call);
        Ok(())
    }
}

/// Whether a message about a call said something new.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallNews {
    Something,
    Nothing,
}

impl KnownCall {
    /// What is not said stays as it was.
    fn take(&mut self, fields: ToolCallUpdateFields, terminals: &dyn TerminalTexts) -> CallNews {
        let before = (self.shown.clone(), self.input.is_some(), self.output.is_some());
        if let Some(title) = fields.title {
            self.shown.title = present::title(&title);
        }
        if let Some(kind) = fields.kind.filter(|kind| *kind != ToolKind::Other || self.shown.kind.is_none()) {
            self.shown.kind = Some(present::kind(kind));
        }
        if let Some(places) = fields.locations {
            self.shown.locations = present::locations(&places);
        }
        if let Some(blocks) = fields.content {
            self.blocks = blocks;
        }
        self.shown.content = present::content(&self.blocks, terminals);
        if let Some(input) = fields.raw_input {
            self.input = Some(input);
        }
        if let Some(output) = fields.raw_output.filter(|output| !output.is_null()) {
            self.output = Some(output);
        }
        let after = (self.shown.clone(), self.input.is_some(), self.output.is_some());
        if before == after { CallNews::Nothing } else { CallNews::Something }
    }

    /// Before it runs: the input, as often as more is known of it.
    fn more(&mut self, news: CallNews, out: &mut Vec<Chunk>) {
        match self.stage {
            CallStage::Begun if self.input.is_some() => self.tell_input(out),
            CallStage::Whole if news == CallNews::Something => self.tell_input(out),
            CallStage::Runs if news == CallNews::Something => self.progress(news, out),
            CallStage::Begun
            | CallStage::Whole
            | CallStage::Asked
            | CallStage::Runs
            | CallStage::Settled => {}
        }
    }

    fn progress(&mut self, news: CallNews, out: &mut Vec<Chunk>) {
        if self.stage == CallStage::Begun {
            self.tell_input(out);
        }
        let is_first = self.stage != CallStage::Runs;
        self.stage = CallStage::Runs;
        let bytes = weight(&self.shown);
        let fits = self.progress_bytes + bytes <= PROGRESS_BYTES;
        if is_first || (fits && news == CallNews::Something) {
            self.progress_bytes += bytes;
            out.push(Chunk::ToolOutputAvailable {
                call_id: self.call_id.clone(),
                output: json!({}),
                preliminary: Some(true),
                marks: marks(&self.shown),
                rest: rest(&self.shown),
            });
        }
    }

    fn settle(&mut self, status: ToolCallStatus, out: &mut Vec<Chunk>) {
        if self.stage == CallStage::Begun {
            self.tell_input(out);
        }
        self.stage = CallStage::Settled;
        let call_id = self.call_id.clone();
        let chunk = match status {
            ToolCallStatus::Failed => {
                let error_text = self.error_text();
                // The words of the error are shown once.
                self.shown.content.retain(|shown| !matches!(shown, Shown::Text { .. }));
                Chunk::ToolOutputError {
                    call_id,
                    error_text,
                    marks: marks(&self.shown),
                    rest: rest(&self.shown),
                }
            }
            _ => Chunk::ToolOutputAvailable {
                call_id,
                output: self.result(),
                preliminary: None,
                marks: marks(&self.shown),
                rest: rest(&self.shown),
            },
        };
        out.push(chunk);
    }

    fn tell_input(&mut self, out: &mut Vec<Chunk>) {
        self.stage = CallStage::Whole;
        out.push(Chunk::ToolInputAvailable {
            call_id: self.call_id.clone(),
            tool_name: self.tool_name.clone(),
            input: self.whole_input(),
            marks: marks(&self.shown),
            rest: rest(&self.shown),
        });
    }

    fn whole_input(&self) -> Value {
        self.input.clone().unwrap_or_else(|| json!({}))
    }

    fn result(&self) -> Value {
        let words = || Value::String(present::words(&self.blocks));
        self.output.clone().unwrap_or_else(words)
    }

    fn error_text(&self) -> String {
        let words = present::words(&self.blocks);
        if !words.trim().is_empty() {
            return words;
        }
        let said = |output: &Value| match output {
            Value::String(text) => text.clone(),
            output => match ["error", "message"].iter().find_map(|key| output.get(key)?.as_str()) {
                Some(text) => text.to_owned(),
                None => output.to_string(),
            },
        };
        self.output.as_ref().map(said).unwrap_or_else(|| "the agent gave no result".to_owned())
    }
}

/// Tools of another agent: not in our list, and run by itself.
fn marks(shown: &Presentation) -> ToolMarks {
    let title = (!shown.title.is_empty()).then(|| shown.title.clone());
    ToolMarks { title, dynamic: Some(true), provider_executed: Some(true) }
}

fn rest(shown: &Presentation) -> Rest {
    Rest(Some(Box::new(RestFields { tool_metadata: Some(only_own(shown)), ..RestFields::default() })))
}

fn weight(shown: &Presentation) -> usize {
    let of = |shown: &Shown| match shown {
        Shown::Text { text } => text.len(),
        Shown::Diff { old_text, new_text, .. } => old_text.as_ref().map_or(0, String::len) + new_text.len(),
        Shown::Terminal { printed, .. } => printed.as_ref().map_or(0, String::len),
        Shown::Image { data, .. } => data.len(),
        Shown::Link { .. } => 100,
    };
    200 + shown.title.len() + shown.content.iter().map(of).sum::<usize>()
}
