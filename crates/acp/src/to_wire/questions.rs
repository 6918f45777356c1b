//! Questions of the agent as a client can put them: one form for all of them, or the options of a permission request each.

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, ElicitationFormMode, ElicitationMode, ElicitationPropertySchema,
    ElicitationSchema, ElicitationSessionScope, EnumOption, MultiSelectPropertySchema, PermissionOption,
    PermissionOptionKind, StringPropertySchema, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    ToolKind,
};
use attache_core::ports::client::{Ask, Choice, Question, Selection};
use serde_json::{Value, json};

use super::legible::{visible, visible_line};

/// The id of the option that chooses nothing.
pub const NO_CHOICE: &str = "none";

/// The name of a question's field in its form.
pub fn field_name(index: usize) -> String {
    format!("question_{}", index + 1)
}

/// The id of a choice among the options of a permission request.
pub fn choice_id(index: usize) -> String {
    format!("choice_{}", index + 1)
}

/// All questions as one form.
pub fn form_request(ask: &Ask, questions: &[Question]) -> Result<Value, serde_json::Error> {
    let mut schema = ElicitationSchema::new();
    for (index, question) in questions.iter().enumerate() {
        schema = schema.property(field_name(index), field(index, question), is_required(question));
    }
    let scope = ElicitationSessionScope::new(ask.session_id.as_str().to_owned())
        .tool_call_id(agent_client_protocol_schema::v1::ToolCallId::new(ask.call_id.as_str().to_owned()));
    let message = match questions {
        [question] => visible(&question.text),
        _ => "The agent has some questions.".to_owned(),
    };
    let mode = ElicitationMode::Form(ElicitationFormMode::new(scope, schema));
    serde_json::to_value(CreateElicitationRequest::new(mode, message))
}

/// Of several choices none is an answer too.
fn is_required(question: &Question) -> bool {
    question.choices.is_empty() || question.selection == Selection::One
}

fn field(index: usize, question: &Question) -> ElicitationPropertySchema {
    let title = match &question.header {
        Some(header) => visible_line(header),
        None => format!("Question {}", index + 1),
    };
    let text = visible(&question.text);
    let options = || question.choices.iter().map(form_option).collect::<Vec<_>>();
    match (question.choices.is_empty(), question.selection) {
        (true, _) => {
            ElicitationPropertySchema::String(StringPropertySchema::new().title(title).description(text))
        }
        (false, Selection::One) => ElicitationPropertySchema::String(
            StringPropertySchema::new().title(title).description(text).one_of(options()),
        ),
        (false, Selection::Several) => ElicitationPropertySchema::Array(
            MultiSelectPropertySchema::titled(options()).title(title).description(text),
        ),
    }
}

fn form_option(choice: &Choice) -> EnumOption {
    EnumOption::new(choice.label.clone(), visible_line(&choice.label))
        .description(choice.description.as_deref().map(visible_line))
}

/// One single-choice question as a permission request whose options are its choices.
pub fn choice_request(ask: &Ask, question: &Question) -> Result<Value, serde_json::Error> {
    let fields = ToolCallUpdateFields::new()
        .status(ToolCallStatus::Pending)
        .kind(ToolKind::Other)
        .title(visible_line(&question.text))
        .name(ask.tool_name.clone());
    let call = serde_json::to_value(ToolCallUpdate::new(ask.call_id.as_str().to_owned(), fields))?;
    let option = |(index, choice): (usize, &Choice)| {
        let name = match &choice.description {
            Some(description) => format!("{}: {}", visible_line(&choice.label), visible_line(description)),
            None => visible_line(&choice.label),
        };
        PermissionOption::new(choice_id(index), name, PermissionOptionKind::AllowOnce)
    };
    let mut options: Vec<_> = question.choices.iter().enumerate().map(option).collect();
    // No rejection: the call is answered all the same, and goes on with that.
    options.push(PermissionOption::new(NO_CHOICE, "None of these", PermissionOptionKind::AllowOnce));
    Ok(json!({ "sessionId": ask.session_id, "toolCall": call, "options": options }))
}
