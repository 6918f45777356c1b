//! Settles everything a turn opened, whatever stopped it: each part gets its end, each call exactly one result.

use serde_json::{Value, json};

use super::{Turn, TurnEnd};
use crate::chunk::reduce::StreamKind;
use crate::chunk::{Chunk, Rest, ToolMarks};
use crate::ids::CallId;
use crate::journal::{Journal, Voice};
use crate::part::ToolState;
use crate::ports::store::StoreResult;

impl Turn {
    /// Before the terminal chunk of a turn that did not end by itself.
    pub(crate) async fn close_everything(&mut self, end: &TurnEnd) -> StoreResult<()> {
        self.calls.clear();
        close_message(&self.journal, &self.voice, reason_of(end), OpenApprovals::Close).await
    }

    pub(crate) async fn close_streams(&self) -> StoreResult<()> {
        close_streams(&self.journal, &self.voice).await
    }
}

fn reason_of(end: &TurnEnd) -> &str {
    match end {
        TurnEnd::Aborted => "aborted",
        TurnEnd::Failed { message, .. } => message,
        TurnEnd::StepLimit => "not run: the turn reached its step limit",
        TurnEnd::Finished(_) => "not run: the turn ended",
    }
}

/// What happens to a call whose question nobody has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenApprovals {
    Close,
    /// The question outlives the process; it is asked again.
    Keep,
}

/// Closes open parts and calls of the message under the journal's fold.
pub(crate) async fn close_message(
    journal: &Journal,
    voice: &Voice,
    reason: &str,
    approvals: OpenApprovals,
) -> StoreResult<()> {
    close_streams(journal, voice).await?;
    let open = journal.with_fold(|fold| {
        let reducer = fold.reducer();
        let tools = reducer.open_calls().into_iter().filter_map(|call| reducer.tool(&call));
        tools
            .map(|tool| (tool.call_id.clone(), tool.tool_name.clone(), tool.state, tool.input.clone()))
            .collect::<Vec<_>>()
    });
    for (call_id, tool_name, state, input) in open.unwrap_or_default() {
        match (state, approvals) {
            (ToolState::ApprovalRequested, OpenApprovals::Keep) => {}
            (ToolState::InputStreaming, _) => {
                journal.record(voice, cut_input(call_id, tool_name, input, reason)).await?;
            }
            (
                ToolState::ApprovalRequested
                | ToolState::InputAvailable
                | ToolState::ApprovalResponded
                | ToolState::OutputAvailable
                | ToolState::OutputError
                | ToolState::OutputDenied,
                _,
            ) => journal.record(voice, failed(call_id, reason)).await?,
        }
    }
    Ok(())
}

async fn close_streams(journal: &Journal, voice: &Voice) -> StoreResult<()> {
    let open = journal.with_fold(|fold| fold.reducer().open_streams()).unwrap_or_default();
    for (kind, id) in open {
        let end = match kind {
            StreamKind::Text => Chunk::TextEnd { id, rest: Rest::none() },
            StreamKind::Reasoning => Chunk::ReasoningEnd { id, rest: Rest::none() },
        };
        journal.record(voice, end).await?;
    }
    Ok(())
}

/// A call whose arguments never became complete: it was never run and never will be.
fn cut_input(call_id: CallId, tool_name: String, input: Option<Value>, reason: &str) -> Chunk {
    Chunk::ToolInputError {
        call_id,
        tool_name,
        input: input.unwrap_or(json!(null)),
        error_text: reason.to_string(),
        marks: ToolMarks::default(),
        rest: Rest::none(),
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
