//! One tool call of an ACP agent: what was said of it so far, and the chunks that tell it.

use agent_client_protocol_schema::v1::{ToolCallContent, ToolCallStatus, ToolCallUpdateFields, ToolKind};
use attache_core::chunk::{Chunk, Rest, RestFields, ToolMarks};
use attache_core::ids::CallId;
use attache_core::metadata::only_own;
use attache_core::ports::tool::{Presentation, Shown};
use serde_json::{Value, json};

use super::present::{self, TerminalTexts};
use crate::limits::PROGRESS_BYTES;

/// As far as it is known.
#[derive(Debug)]
pub(super) struct AcpCall {
    pub(super) call_id: CallId,
    pub(super) tool_name: String,
    pub(super) shown: Presentation,
    blocks: Vec<ToolCallContent>,
    pub(super) input: Option<Value>,
    pub(super) output: Option<Value>,
    pub(super) stage: AcpCallStage,
    /// How it was told last while it ran: the same is not told again.
    told: Option<Presentation>,
    /// What was recorded of it while it ran.
    progress_bytes: usize,
    pub(super) use_of: UseOfCall,
}

/// Why a call is in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UseOfCall {
    /// The agent made it.
    Work,
    /// The agent asked about a call that ran already: the question is a call of its own, which ends with the
    /// answer.
    Question,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AcpCallStage {
    Begun,
    /// Its input was told.
    Whole,
    /// It was asked about.
    Asked,
    Runs,
    Settled,
}

/// Whether a message about a call said something new.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallNews {
    Something,
    Nothing,
}

impl AcpCall {
    pub(super) fn new(call_id: CallId, tool_name: String, shown: Presentation, use_of: UseOfCall) -> Self {
        let (blocks, input, output, told, progress_bytes) = (Vec::new(), None, None, None, 0);
        let stage = AcpCallStage::Begun;
        Self { call_id, tool_name, shown, blocks, input, output, stage, told, progress_bytes, use_of }
    }

    pub(super) fn start(&self) -> Chunk {
        Chunk::ToolInputStart {
            call_id: self.call_id.clone(),
            tool_name: self.tool_name.clone(),
            input_encoding: None,
            marks: marks(&self.shown),
            rest: rest(&self.shown),
        }
    }

    /// What is not said stays as it was.
    pub(super) fn take(&mut self, fields: ToolCallUpdateFields, terminals: &dyn TerminalTexts) -> CallNews {
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
    pub(super) fn more(&mut self, news: CallNews, out: &mut Vec<Chunk>) {
        match self.stage {
            AcpCallStage::Begun if self.input.is_some() => self.tell_input(out),
            AcpCallStage::Whole if news == CallNews::Something => self.tell_input(out),
            AcpCallStage::Runs if news == CallNews::Something => self.progress(out),
            AcpCallStage::Begun
            | AcpCallStage::Whole
            | AcpCallStage::Asked
            | AcpCallStage::Runs
            | AcpCallStage::Settled => {}
        }
    }

    /// It is asked about, and shown like this. The yes to that is recorded as its first progress.
    pub(super) fn asked_as(&mut self, shown: &Presentation) {
        (self.stage, self.told) = (AcpCallStage::Asked, Some(shown.clone()));
    }

    pub(super) fn progress(&mut self, out: &mut Vec<Chunk>) {
        if self.stage == AcpCallStage::Begun {
            self.tell_input(out);
        }
        let (is_first, is_new) = (self.told.is_none(), self.told.as_ref() != Some(&self.shown));
        self.stage = AcpCallStage::Runs;
        let bytes = weight(&self.shown);
        let fits = self.progress_bytes + bytes <= PROGRESS_BYTES;
        if is_first || (fits && is_new) {
            self.told = Some(self.shown.clone());
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

    pub(super) fn settle(&mut self, status: ToolCallStatus, out: &mut Vec<Chunk>) {
        if self.stage == AcpCallStage::Begun {
            self.tell_input(out);
        }
        self.stage = AcpCallStage::Settled;
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

    pub(super) fn tell_input(&mut self, out: &mut Vec<Chunk>) {
        self.stage = AcpCallStage::Whole;
        out.push(Chunk::ToolInputAvailable {
            call_id: self.call_id.clone(),
            tool_name: self.tool_name.clone(),
            input: self.whole_input(),
            marks: marks(&self.shown),
            rest: rest(&self.shown),
        });
    }

    pub(super) fn whole_input(&self) -> Value {
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
