//! Handles answers that end a turn without a result: empty ones, and calls that no tool received. The first
//! time the model is told and has one more step; the second time people are told.

use super::{StepStop, Turn};
use crate::chunk::FinishReason;
use crate::hooks;
use crate::notice;
use crate::part::Part;

/// What is wrong with an answer without calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdleAnswer {
    Empty,
    /// A call written as text, which runs nothing.
    CallAsText,
    /// It ended for a call, but contains none.
    CallMissing,
}

impl IdleAnswer {
    fn of(parts: &[Part], reason: FinishReason) -> Option<Self> {
        match reason {
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other => {}
            FinishReason::Length | FinishReason::ContentFilter | FinishReason::Error => return None,
        }
        let mut text = "";
        for part in parts {
            match part {
                Part::Text { text: said, .. } if said.trim().is_empty() => {}
                Part::Text { text: said, .. } => text = said,
                Part::Reasoning { .. } | Part::StepStart | Part::Data { .. } => {}
                // A call or a file of the model, or something that its provider ran or found.
                Part::Tool(_) | Part::File { .. } | Part::SourceUrl { .. } | Part::SourceDocument { .. } => {
                    return None;
                }
            }
        }
        let text = text.trim_end();
        match (text, reason) {
            ("", _) => Some(Self::Empty),
            (text, _) if ENDS_OF_CALLS.iter().any(|end| text.ends_with(end)) => Some(Self::CallAsText),
            (_, FinishReason::ToolCalls) => Some(Self::CallMissing),
            (
                _,
                FinishReason::Stop
                | FinishReason::Length
                | FinishReason::ContentFilter
                | FinishReason::Error
                | FinishReason::Other,
            ) => None,
        }
    }

    fn told_to_model(self) -> &'static str {
        match self {
            Self::Empty => {
                "Your answer was empty: no text and no call. Go on with the work, or say what came of it."
            }
            Self::CallAsText => {
                "You wrote a call as text, so nothing was run. Make it as a tool call, not in the text."
            }
            Self::CallMissing => {
                "Your answer ended for a tool call, but has none, so nothing was run. Make the call, or say what came of \
                 the work."
            }
        }
    }

    fn told_to_people(self) -> &'static str {
        match self {
            Self::Empty => "The model gave an empty answer",
            Self::CallAsText => "The model wrote a call as text; it was not run",
            Self::CallMissing => "The model ended its answer for a call that it did not make",
        }
    }
}

/// Endings of calls, as models write them when their server did not recognise the call.
const ENDS_OF_CALLS: [&str; 6] = [
    "</tool_call>",
    "</function>",
    "</function_call>",
    "</function_calls>",
    "</invoke>",
    "<|tool_calls_section_end|>",
];

/// Whether the model was already told in this turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ToldOfIdleAnswer {
    #[default]
    NotYet,
    Once,
}

/// What happens after an answer without calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterAnswer {
    OneMoreStep,
    Nothing,
}

impl Turn {
    /// Called after a step without calls.
    pub(super) async fn after_idle_answer(&mut self) -> Result<AfterAnswer, StepStop> {
        if self.steering.is_wanted() || self.steps >= self.setup.max_steps {
            return Ok(AfterAnswer::Nothing);
        }
        let parts = self.journal.with_fold(|fold| {
            let mut last: Vec<Part> = Vec::new();
            for part in fold.reducer().parts() {
                if *part == Part::StepStart {
                    last.clear();
                }
                last.push(part.into_owned());
            }
            last
        });
        let Some(idle) = IdleAnswer::of(&parts.unwrap_or_default(), self.reason) else {
            return Ok(AfterAnswer::Nothing);
        };
        match std::mem::replace(&mut self.told_of_idle_answer, ToldOfIdleAnswer::Once) {
            ToldOfIdleAnswer::NotYet => {
                self.record(hooks::own_word_chunk(idle.told_to_model())).await?;
                Ok(AfterAnswer::OneMoreStep)
            }
            ToldOfIdleAnswer::Once => {
                self.record(notice::kept("warning", idle.told_to_people(), None)).await?;
                Ok(AfterAnswer::Nothing)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_nothing_came_of_is_idle() {
        let text = |text: &str| Part::Text { text: text.into(), state: None, provider_metadata: None };
        let said = |parts: &[Part], reason| IdleAnswer::of(parts, reason);
        let stop = FinishReason::Stop;
        assert_eq!(said(&[Part::StepStart], stop), Some(IdleAnswer::Empty));
        assert_eq!(said(&[text(" \n")], stop), Some(IdleAnswer::Empty));
        assert_eq!(said(&[text("Done.")], stop), None);
        assert_eq!(said(&[text("Done.")], FinishReason::ToolCalls), Some(IdleAnswer::CallMissing));
        let call = "Now I look:\n<tool_call>\n{\"name\":\"read\"}\n</tool_call>\n";
        assert_eq!(said(&[text(call)], stop), Some(IdleAnswer::CallAsText));
        assert_eq!(said(&[text("`</tool_call>` ends a call.")], stop), None);
        for reason in [FinishReason::Length, FinishReason::ContentFilter, FinishReason::Error] {
            assert_eq!(said(&[], reason), None);
        }
        let file = Part::File {
            url: "data:,".into(),
            media_type: "text/plain".into(),
            filename: None,
            provider_metadata: None,
        };
        assert_eq!(said(&[file], stop), None);
    }
}
