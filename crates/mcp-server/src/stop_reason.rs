//! Why a turn ended, in the words that clients of this system know.

use attache_core::chunk::FinishReason;
use attache_core::turn::TurnEnd;

pub(crate) fn stop_reason(end: &TurnEnd) -> &'static str {
    match end {
        TurnEnd::Finished(FinishReason::Length) => "max_tokens",
        TurnEnd::Finished(FinishReason::ContentFilter) => "refusal",
        TurnEnd::Finished(
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Error | FinishReason::Other,
        ) => "end_turn",
        TurnEnd::StepLimit => "max_turn_requests",
        TurnEnd::Aborted => "cancelled",
        TurnEnd::Failed { .. } => "error",
    }
}
