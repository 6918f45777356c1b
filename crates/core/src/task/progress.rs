//! What a parent shows of a running child: its latest calls with a line each, its current activity, and its
//! usage. Derived from the child's own entries.

use std::collections::VecDeque;

use serde::Deserialize;

use crate::chunk::{Chunk, Rest};
use crate::data_name::DataName;
use crate::entry::SharedSegment;
use crate::ids::CallId;
use crate::legible::legible_line;
use crate::limits::{CALL_TITLE_CHARACTERS, TASK_CALLS_SHOWN, TASK_DENIED_SHOWN};
use crate::metadata::own;
use crate::part::Role;
use crate::ports::tool::{DeniedWithin, Presentation, Shown};
use crate::watchdog::Verdict;

#[derive(Debug)]
pub(super) struct ChildView {
    /// The call's presentation before the child has said anything: each update has to be complete.
    call: Presentation,
    name: String,
    /// The latest calls, each with its state.
    calls: VecDeque<ShownCall>,
    all_calls: usize,
    does: &'static str,
    tokens: u64,
    denied: Vec<DeniedWithin>,
}

#[derive(Debug)]
struct ShownCall {
    call_id: CallId,
    tool: String,
    title: String,
    mark: &'static str,
}

impl ChildView {
    pub(super) fn new(call: Presentation, name: String) -> Self {
        Self {
            call,
            name,
            calls: VecDeque::new(),
            all_calls: 0,
            does: "waits for its turn",
            tokens: 0,
            denied: Vec::new(),
        }
    }

    pub(super) fn begins(&mut self) {
        self.does = "begins";
    }

    /// Takes the child's entries; returns whether the view has changed.
    pub(super) fn take(&mut self, segment: &SharedSegment) -> bool {
        let mut changed = false;
        for entry in segment.entries().filter(|entry| entry.role != Role::User) {
            changed |= self.take_chunk(entry.chunk);
        }
        changed
    }

    fn take_chunk(&mut self, chunk: &Chunk) -> bool {
        match chunk {
            Chunk::ReasoningStart { .. } => self.does("thinks"),
            Chunk::TextStart { .. } => self.does("writes"),
            Chunk::ToolInputAvailable { call_id, tool_name, rest, .. } => {
                let title = rest.tool_metadata().and_then(|metadata| own(metadata)?.get("title")?.as_str());
                self.call(call_id, tool_name, title.filter(|title| !title.is_empty()).unwrap_or(tool_name));
                self.does("works");
                true
            }
            Chunk::ToolApprovalRequest { call_id, .. } => {
                self.mark(call_id, "?");
                self.does("waits for an answer");
                true
            }
            Chunk::ToolOutputAvailable { call_id, preliminary, rest, .. } => {
                // The live progress of a running call is not shown here.
                let is_over = *preliminary != Some(true);
                if is_over {
                    self.learn_denials(call_id, rest);
                }
                self.mark(call_id, if is_over { "✓" } else { "…" });
                self.does("works") || is_over
            }
            Chunk::ToolOutputError { call_id, rest, .. }
            | Chunk::ToolInputError { call_id, rest, .. }
            | Chunk::ToolOutputDenied { call_id, rest } => {
                self.learn_denials(call_id, rest);
                self.mark(call_id, "✗");
                self.does("works");
                true
            }
            Chunk::Data { name, data, .. } if *name == DataName::Usage => {
                let count = |key: &str| data.get(key).and_then(serde_json::Value::as_u64).unwrap_or_default();
                let five = ["input", "output", "reasoning", "cache_read", "cache_write"];
                self.tokens += five.into_iter().map(count).sum::<u64>();
                true
            }
            Chunk::Start { .. }
            | Chunk::StartStep { .. }
            | Chunk::FinishStep { .. }
            | Chunk::TextDelta { .. }
            | Chunk::TextEnd { .. }
            | Chunk::ReasoningDelta { .. }
            | Chunk::ReasoningEnd { .. }
            | Chunk::ToolInputStart { .. }
            | Chunk::ToolInputDelta { .. }
            | Chunk::SourceUrl { .. }
            | Chunk::SourceDocument { .. }
            | Chunk::File { .. }
            | Chunk::Data { .. }
            | Chunk::MessageMetadata { .. }
            | Chunk::Error { .. }
            | Chunk::Abort { .. }
            | Chunk::Finish { .. } => false,
        }
    }

    fn does(&mut self, does: &'static str) -> bool {
        std::mem::replace(&mut self.does, does) != does
    }

    /// Collects denied calls, here or further below. A denial by a person is left out: people know of it.
    fn learn_denials(&mut self, call_id: &CallId, rest: &Rest) {
        let shown = rest.tool_metadata().and_then(own).map(Presentation::deserialize);
        let Some(Ok(shown)) = shown else { return };
        let verdict = shown.decision.filter(Verdict::denies_by_itself);
        if let Some(verdict) = verdict {
            let call = self.calls.iter().find(|call| call.call_id == *call_id);
            let (tool, title) = call.map(|call| (call.tool.clone(), call.title.clone())).unwrap_or_default();
            self.denied.push(DeniedWithin { tool, title, why: verdict.reason.in_words() });
        }
        self.denied.extend(shown.denied_within);
        self.denied.truncate(TASK_DENIED_SHOWN);
    }

    /// The calls denied to the child so far.
    pub(super) fn denied(&self) -> &[DeniedWithin] {
        &self.denied
    }

    fn call(&mut self, call_id: &CallId, tool: &str, title: &str) {
        let title: String = legible_line(title).chars().take(CALL_TITLE_CHARACTERS).collect();
        // A call is announced again once its arguments are understood.
        if let Some(known) = self.calls.iter_mut().find(|known| known.call_id == *call_id) {
            known.title = title;
            return;
        }
        self.all_calls += 1;
        self.calls
            .push_back(ShownCall { call_id: call_id.clone(), tool: tool.to_owned(), title, mark: "…" });
        if self.calls.len() > TASK_CALLS_SHOWN {
            self.calls.pop_front();
        }
    }

    fn mark(&mut self, call_id: &CallId, mark: &'static str) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.call_id == *call_id) {
            call.mark = mark;
        }
    }

    /// How many calls it made, and its usage.
    pub(super) fn summary(&self) -> String {
        let calls = match self.all_calls {
            1 => "1 call".to_owned(),
            calls => format!("{calls} calls"),
        };
        format!("{calls}, {} tokens", self.tokens)
    }

    pub(super) fn presentation(&self) -> Presentation {
        let before = self.all_calls - self.calls.len();
        let before = (before > 0).then(|| format!("- {before} calls before"));
        let calls = self.calls.iter().map(|call| format!("- {} {}", call.mark, call.title));
        let head = format!("{} {}: {}", self.name, self.does, self.summary());
        let lines: Vec<String> = std::iter::once(head).chain(before).chain(calls).collect();
        Presentation { content: vec![Shown::Text { text: lines.join("\n") }], ..self.call.clone() }
    }
}
