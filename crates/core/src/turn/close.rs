//! Closes everything that a turn opened, whatever stopped it: each part gets its end, each call exactly one
//! result.

use serde::Deserialize;
use serde_json::{Value, json};

use super::repeats::Repetition;
use super::{Turn, TurnEnd, repeats};
use crate::chunk::reduce::StreamKind;
use crate::chunk::{Chunk, Rest, ToolMarks};
use crate::compaction;
use crate::ids::CallId;
use crate::journal::{Author, Journal};
use crate::metadata::{only_own, own};
use crate::part::{ToolPart, ToolState};
use crate::ports::store::StoreResult;
use crate::ports::tool::ToolKind;

impl Turn {
    /// Called before the last chunk of a turn that did not end by itself.
    pub(crate) async fn close_everything(&mut self, end: &TurnEnd) -> StoreResult<()> {
        self.calls.clear();
        close_message(&self.journal, &self.author, &CutShort::by(reason_of(end)), OpenApprovals::Close).await
    }

    pub(crate) async fn close_streams(&self) -> StoreResult<()> {
        close_streams(&self.journal, &self.author).await
    }

    /// Fails the calls whose arguments are still streaming; returns them with their tools and how often each
    /// was repeated.
    pub(crate) async fn close_inputs(
        &mut self,
        reason: &str,
    ) -> StoreResult<Vec<(CallId, String, Repetition)>> {
        let mut closed = Vec::new();
        for open in open_calls(&self.journal) {
            if open.state == ToolState::InputStreaming {
                let input = open.input.clone().unwrap_or_default();
                let repeated = self.repeats.count(&open.tool_name, &input);
                closed.push((open.call_id.clone(), open.tool_name.clone(), repeated));
                let (text, _) = repeats::warned(reason, repeats::warning(repeated.times(None)));
                let shown = self.unreadable_shown(&open.tool_name, reason);
                let rest = Rest::with_tool_metadata(only_own(shown));
                self.journal.record(&self.author, cut_input(open, &text, rest)).await?;
            }
        }
        Ok(closed)
    }
}

/// The results for calls that a turn left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CutShort {
    begun: String,
    /// The model must not think that such a call may have had effects.
    not_begun: String,
}

impl CutShort {
    pub(crate) fn by(reason: &str) -> Self {
        let not_begun = match reason.starts_with(NOT_RUN) {
            true => reason.to_owned(),
            false => format!("{NOT_RUN}: {reason}"),
        };
        // A call that had begun did run: its text must not begin like that of the others.
        let why = reason.strip_prefix(NOT_RUN).map(|why| why.trim_start_matches(": "));
        let begun = match why {
            Some(CANCELLED) => "cancelled while it ran".to_owned(),
            Some(why) => format!("{why} while it ran"),
            None => reason.to_owned(),
        };
        Self { begun, not_begun }
    }

    /// The process that ran the turn is gone.
    pub(crate) fn by_restart() -> Self {
        Self {
            begun: "aborted by host restart: attache ended while this ran".to_owned(),
            not_begun: "aborted by host restart: attache ended before this ran, so it did nothing".to_owned(),
        }
    }

    fn of(&self, open: &OpenCall) -> String {
        if open.runs == RunsWhere::Elsewhere && open.has_input() {
            return format!("{}; it may have had effects", self.begun);
        }
        match (open.state, open.may_have_done_something) {
            // Its start is recorded before it does anything.
            (ToolState::OutputAvailable, true) => format!("{}; it may have had effects", self.begun),
            (ToolState::OutputAvailable, false) => self.begun.clone(),
            (
                ToolState::InputStreaming
                | ToolState::InputAvailable
                | ToolState::ApprovalRequested
                | ToolState::ApprovalResponded
                | ToolState::OutputError
                | ToolState::OutputDenied,
                _,
            ) => self.not_begun.clone(),
        }
    }
}

const NOT_RUN: &str = "not run";

/// The reason for a turn that its user stopped.
const CANCELLED: &str = "the turn was cancelled";

/// Why a call of such a turn has no result.
pub(crate) fn reason_of(end: &TurnEnd) -> &str {
    match end {
        TurnEnd::Aborted => "not run: the turn was cancelled",
        TurnEnd::Failed { message, .. } => message,
        TurnEnd::StepLimit => "not run: the turn reached its step limit",
        TurnEnd::Finished(_) => "not run: the turn ended",
    }
}

/// What happens to a call whose question is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenApprovals {
    Close,
    /// The question survives the process and is asked again.
    Keep,
}

/// Closes the open parts and calls of the message that the journal folds.
pub(crate) async fn close_message(
    journal: &Journal,
    author: &Author,
    cut: &CutShort,
    approvals: OpenApprovals,
) -> StoreResult<()> {
    close_streams(journal, author).await?;
    close_compactions(journal, author).await?;
    for open in open_calls(journal) {
        let reason = cut.of(&open);
        match (open.state, approvals) {
            (ToolState::ApprovalRequested, OpenApprovals::Keep) => {}
            (ToolState::InputStreaming, _) => {
                journal.record(author, cut_input(open, &reason, Rest::none())).await?
            }
            (
                ToolState::ApprovalRequested
                | ToolState::InputAvailable
                | ToolState::ApprovalResponded
                | ToolState::OutputAvailable
                | ToolState::OutputError
                | ToolState::OutputDenied,
                _,
            ) => journal.record(author, failed(open.call_id, &reason)).await?,
        }
    }
    Ok(())
}

/// A call without its result.
struct OpenCall {
    call_id: CallId,
    tool_name: String,
    state: ToolState,
    input: Option<Value>,
    /// Judged by its presentation.
    may_have_done_something: bool,
    runs: RunsWhere,
}

/// Who runs a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunsWhere {
    Here,
    /// An agent that lives elsewhere, which does not say when a call begins.
    Elsewhere,
}

impl OpenCall {
    /// Whether it may have begun, as far as is known here.
    fn has_input(&self) -> bool {
        match self.state {
            ToolState::InputAvailable | ToolState::ApprovalResponded | ToolState::OutputAvailable => true,
            ToolState::InputStreaming
            | ToolState::ApprovalRequested
            | ToolState::OutputError
            | ToolState::OutputDenied => false,
        }
    }
}

fn runs_where(tool: &ToolPart) -> RunsWhere {
    let ours = tool.tool_metadata.as_ref().and_then(own);
    match ours.and_then(|ours| ours.get("elsewhere")?.as_bool()) {
        Some(true) => RunsWhere::Elsewhere,
        Some(false) | None => RunsWhere::Here,
    }
}

/// Whether a call that ran may have changed anything. A call of unknown kind may have.
fn may_do_something(tool: &ToolPart) -> bool {
    let kind = tool.tool_metadata.as_ref().and_then(|metadata| own(metadata)?.get("kind"));
    match kind.and_then(|kind| ToolKind::deserialize(kind).ok()) {
        Some(
            ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Fetch | ToolKind::SwitchMode,
        ) => false,
        Some(ToolKind::Edit | ToolKind::Execute | ToolKind::Other) | None => true,
    }
}

fn open_calls(journal: &Journal) -> Vec<OpenCall> {
    let open = journal.with_fold(|fold| {
        let reducer = fold.reducer();
        let tools = reducer.open_calls().into_iter().filter_map(|call| reducer.tool(&call));
        let open = |tool: &ToolPart| OpenCall {
            call_id: tool.call_id.clone(),
            tool_name: tool.tool_name.clone(),
            state: tool.state,
            input: tool.input.clone(),
            may_have_done_something: may_do_something(tool),
            runs: runs_where(tool),
        };
        tools.map(open).collect()
    });
    open.unwrap_or_default()
}

async fn close_streams(journal: &Journal, author: &Author) -> StoreResult<()> {
    let open = journal.with_fold(|fold| fold.reducer().open_streams()).unwrap_or_default();
    for (kind, id) in open {
        let end = match kind {
            StreamKind::Text => Chunk::TextEnd { id, rest: Rest::none() },
            StreamKind::Reasoning => Chunk::ReasoningEnd { id, rest: Rest::none() },
        };
        journal.record(author, end).await?;
    }
    Ok(())
}

async fn close_compactions(journal: &Journal, author: &Author) -> StoreResult<()> {
    let open = journal.with_fold(|fold| {
        fold.reducer().parts().filter_map(|part| compaction::cut_off(&part)).collect::<Vec<_>>()
    });
    for end in open.unwrap_or_default() {
        journal.record(author, end).await?;
    }
    Ok(())
}

/// A call whose arguments never became complete: it did not run and never will.
fn cut_input(open: OpenCall, reason: &str, rest: Rest) -> Chunk {
    Chunk::ToolInputError {
        call_id: open.call_id,
        tool_name: open.tool_name,
        input: open.input.unwrap_or(json!(null)),
        error_text: reason.to_string(),
        marks: ToolMarks::default(),
        rest,
    }
}

pub(crate) fn failed(call_id: CallId, reason: &str) -> Chunk {
    Chunk::ToolOutputError {
        call_id,
        error_text: reason.to_string(),
        marks: ToolMarks::default(),
        rest: Rest::none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(reason: &str, state: ToolState, runs: RunsWhere) -> String {
        CutShort::by(reason).of(&OpenCall {
            call_id: CallId::new("c"),
            tool_name: "bash".into(),
            state,
            input: None,
            may_have_done_something: true,
            runs,
        })
    }

    #[test]
    fn only_a_call_that_had_begun_may_have_had_effects() {
        let (begun, waits) = (ToolState::OutputAvailable, ToolState::InputAvailable);
        let cancelled = reason_of(&TurnEnd::Aborted);
        let effects = "cancelled while it ran; it may have had effects";
        assert_eq!(told(cancelled, begun, RunsWhere::Here), effects);
        assert_eq!(told(cancelled, waits, RunsWhere::Elsewhere), effects);
        assert_eq!(told(cancelled, waits, RunsWhere::Here), "not run: the turn was cancelled");
        assert_eq!(told("it broke", waits, RunsWhere::Here), "not run: it broke");
        let ended = told(reason_of(&TurnEnd::StepLimit), begun, RunsWhere::Here);
        assert_eq!(ended, "the turn reached its step limit while it ran; it may have had effects");
    }
}
