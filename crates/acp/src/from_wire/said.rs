//! What a client's user said to questions: a filled form, or one chosen option at a time. Checks shapes only.

use agent_client_protocol_schema::v1::{
    CreateElicitationResponse, ElicitationAction, ElicitationContentValue, RequestPermissionOutcome,
    RequestPermissionResponse,
};
use attache_core::ports::client::{Answer, Question, Said, Selection};
use serde_json::value::RawValue;

use crate::limits::SAID_CHARS;
use crate::to_wire::{choice_id, field_name};

/// A filled form. One that was put aside is no answer, one that was turned away ends the turn.
pub fn form(questions: &[Question], response: &RawValue) -> Answer {
    let Ok(response) = serde_json::from_str::<CreateElicitationResponse>(response.get()) else {
        return Answer::Unsaid;
    };
    match response.action {
        ElicitationAction::Cancel => Answer::Cancelled,
        ElicitationAction::Accept(accepted) => {
            let mut content = accepted.content.unwrap_or_default();
            let answer = |(index, question): (usize, &Question)| match content.remove(&field_name(index)) {
                Some(value) => said(question, value),
                None => Said::Nothing,
            };
            Answer::Said(questions.iter().enumerate().map(answer).collect())
        }
        // Declined, or an action of a later protocol.
        _ => Answer::Unsaid,
    }
}

/// What a field holds. A choice that was not offered counts as the words it is.
fn said(question: &Question, value: ElicitationContentValue) -> Said {
    match value {
        ElicitationContentValue::StringArray(labels) => {
            let offered = |label: &String| question.choices.iter().any(|choice| choice.label == *label);
            Said::Chosen(labels.into_iter().filter(offered).collect())
        }
        ElicitationContentValue::String(text) => match question.selection {
            Selection::Several if !question.choices.is_empty() => Said::Chosen(vec![short(text)]),
            Selection::One | Selection::Several => Said::Text(short(text)),
        },
        ElicitationContentValue::Integer(number) => Said::Text(number.to_string()),
        ElicitationContentValue::Number(number) => Said::Text(number.to_string()),
        ElicitationContentValue::Boolean(flag) => Said::Text(flag.to_string()),
        _ => Said::Nothing,
    }
}

fn short(text: String) -> String {
    match text.char_indices().nth(SAID_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// One choice among options; `Err` is an answer to all questions at once.
pub fn choice(question: &Question, response: &RawValue) -> Result<Said, Answer> {
    let Ok(response) = serde_json::from_str::<RequestPermissionResponse>(response.get()) else {
        return Err(Answer::Unsaid);
    };
    match response.outcome {
        RequestPermissionOutcome::Cancelled => Err(Answer::Cancelled),
        RequestPermissionOutcome::Selected(selected) => {
            let mut offered = question.choices.iter().enumerate();
            let chosen = offered.find(|(index, _)| choice_id(*index) == *selected.option_id.0);
            chosen.map(|(_, choice)| Said::Text(choice.label.clone())).ok_or(Answer::RejectOnce)
        }
        _ => Err(Answer::Unsaid),
    }
}
