//! A user's answers to questions: a filled form, or one chosen option at a time. Checks only shapes.

use agent_client_protocol_schema::v1::{
    CreateElicitationResponse, ElicitationAction, ElicitationContentValue, RequestPermissionOutcome,
    RequestPermissionResponse,
};
use attache_core::ports::client::{Answer, Question, Said, Selection};
use attache_core::ports::delegate::{FormAnswer, PermitAnswer};
use attache_core::ports::projects::ConsentAnswer;
use serde_json::value::RawValue;

use crate::limits::SAID_CHARS;
use crate::to_wire::{
    CONSENT_DECLINED, CONSENT_FIELD, CONSENT_GIVEN, MORE_CHOICES, choice_id, field_name, has_more_choices,
};

/// A filled form. A declined form is no answer; a cancelled one ends the turn.
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
        // The user declined, or the action belongs to a later protocol.
        _ => Answer::Unsaid,
    }
}

/// The user's answer to a form that does not come from the agent.
pub fn filled(response: &RawValue) -> FormAnswer {
    let Ok(response) = serde_json::from_str::<CreateElicitationResponse>(response.get()) else {
        return FormAnswer::Dismissed;
    };
    match response.action {
        ElicitationAction::Accept(accepted) => {
            let fields = serde_json::to_value(accepted.content.unwrap_or_default());
            fields.map_or(FormAnswer::Dismissed, FormAnswer::Filled)
        }
        ElicitationAction::Decline => FormAnswer::Declined,
        // The user cancelled, or the action belongs to a later protocol.
        _ => FormAnswer::Dismissed,
    }
}

/// Whether a call may do one more thing: only the exact option permits it.
pub fn permitted(response: &RawValue) -> PermitAnswer {
    match serde_json::from_str::<RequestPermissionResponse>(response.get()).map(|said| said.outcome) {
        Ok(RequestPermissionOutcome::Selected(chosen)) if &*chosen.option_id.0 == "allow_once" => {
            PermitAnswer::Allowed
        }
        Ok(_) | Err(_) => PermitAnswer::Refused,
    }
}

/// The form about a project: only a clear answer counts. A cancelled form says nothing.
pub fn consent(response: &RawValue) -> Option<ConsentAnswer> {
    let response = serde_json::from_str::<CreateElicitationResponse>(response.get()).ok()?;
    match response.action {
        ElicitationAction::Accept(accepted) => match accepted.content?.remove(CONSENT_FIELD)? {
            ElicitationContentValue::String(word) if word == CONSENT_GIVEN => Some(ConsentAnswer::Given),
            ElicitationContentValue::String(word) if word == CONSENT_DECLINED => {
                Some(ConsentAnswer::Declined)
            }
            _ => None,
        },
        ElicitationAction::Decline => Some(ConsentAnswer::Declined),
        // The user cancelled, or the action belongs to a later protocol.
        _ => None,
    }
}

/// The value of a field. A choice that we did not offer counts as text.
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

/// The user's choice among options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picked {
    /// An answer.
    Said(Said),
    /// The user wants to see the next choices.
    More,
}

/// One choice among the options from `first` on; `Err` answers all questions at once.
pub fn choice(question: &Question, first: usize, response: &RawValue) -> Result<Picked, Answer> {
    let Ok(response) = serde_json::from_str::<RequestPermissionResponse>(response.get()) else {
        return Err(Answer::Unsaid);
    };
    match response.outcome {
        RequestPermissionOutcome::Cancelled => Err(Answer::Cancelled),
        RequestPermissionOutcome::Selected(selected)
            if *selected.option_id.0 == *MORE_CHOICES && has_more_choices(question, first) =>
        {
            Ok(Picked::More)
        }
        RequestPermissionOutcome::Selected(selected) => {
            let mut offered = question.choices.iter().enumerate();
            let chosen = offered.find(|(index, _)| choice_id(*index) == *selected.option_id.0);
            let said = chosen.map(|(_, choice)| Said::Text(choice.label.clone()));
            said.map(Picked::Said).ok_or(Answer::RejectOnce)
        }
        _ => Err(Answer::Unsaid),
    }
}
