//! The agent's questions in a form that clients can show: one form for all of them, or one permission request
//! each.

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, ElicitationFormMode, ElicitationMode, ElicitationPropertySchema,
    ElicitationSchema, ElicitationSessionScope, ElicitationUrlMode, EnumOption, MultiSelectPropertySchema,
    PermissionOption, PermissionOptionKind, StringPropertySchema, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use attache_core::ids::SessionId;
use attache_core::ports::client::{Ask, Choice, Question, Selection};
use attache_core::ports::delegate::{AddressOffer, Form, Permit};
use attache_core::ports::projects::ConsentRequest;
use serde_json::{Value, json};

use super::answers::own_meta;
use super::legible::{fenced, visible, visible_line};

/// The id of the option that chooses nothing: the model must continue without an answer.
pub const NO_CHOICE: &str = "none";

/// The id of the option that shows the next choices.
pub const MORE_CHOICES: &str = "more";

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

/// A form that does not come from the agent, as far as clients support such forms.
pub fn foreign_form(session_id: &SessionId, form: Form) -> Result<Value, serde_json::Error> {
    let schema: ElicitationSchema = serde_json::from_value(form.schema)?;
    let scope = ElicitationSessionScope::new(session_id.as_str().to_owned())
        .tool_call_id(agent_client_protocol_schema::v1::ToolCallId::new(form.call_id.as_str().to_owned()));
    let mode = ElicitationMode::Form(ElicitationFormMode::new(scope, schema));
    serde_json::to_value(CreateElicitationRequest::new(mode, visible(&form.message)))
}

/// An address for the user to visit.
pub fn address_request(session_id: &SessionId, address: &AddressOffer) -> CreateElicitationRequest {
    let scope = ElicitationSessionScope::new(session_id.as_str().to_owned());
    let scope = match &address.call_id {
        Some(call) => {
            scope.tool_call_id(agent_client_protocol_schema::v1::ToolCallId::new(call.as_str().to_owned()))
        }
        None => scope,
    };
    let mode = ElicitationUrlMode::new(scope, address.id.clone(), address.url.clone());
    CreateElicitationRequest::new(ElicitationMode::Url(mode), visible(&address.message))
}

/// Asks about one more thing that a call would do: yes for this once, or no.
pub fn permit_request(session_id: &SessionId, permit: &Permit) -> Result<Value, serde_json::Error> {
    let fields = ToolCallUpdateFields::new()
        .title(visible_line(&permit.title))
        .status(ToolCallStatus::InProgress)
        .content(vec![fenced(&visible(&permit.text)).into()]);
    let call = ToolCallUpdate::new(permit.call_id.as_str().to_owned(), fields);
    let call = call.meta(own_meta(json!({ "asks": "permission", "rules": [] })));
    let option = |id: &'static str, name: &str, kind| PermissionOption::new(id, name, kind);
    let options = [
        option("allow_once", "Allow once", PermissionOptionKind::AllowOnce),
        option("reject_once", "Reject", PermissionOptionKind::RejectOnce),
    ];
    Ok(json!({ "sessionId": session_id, "toolCall": serde_json::to_value(call)?, "options": options }))
}

/// The only field of the form about a project.
pub const CONSENT_FIELD: &str = "trust";
/// The option that means yes.
pub const CONSENT_GIVEN: &str = "yes";
/// The option that means no.
pub const CONSENT_DECLINED: &str = "no";

/// Asks whether a project's own configuration may take effect, in a form that shows it.
pub fn consent_form(session: &SessionId, request: &ConsentRequest) -> Result<Value, serde_json::Error> {
    let options = vec![
        EnumOption::new(CONSENT_GIVEN, "Trust it as it is"),
        EnumOption::new(CONSENT_DECLINED, "Do not use it"),
    ];
    let field = StringPropertySchema::new()
        .title("Trust")
        .description("A change of these files asks again.".to_owned())
        .one_of(options);
    let field = ElicitationPropertySchema::String(field);
    let schema = ElicitationSchema::new().property(CONSENT_FIELD.to_owned(), field, true);
    let scope = ElicitationSessionScope::new(session.as_str().to_owned());
    let mode = ElicitationMode::Form(ElicitationFormMode::new(scope, schema));
    let project = visible_line(&request.project.display().to_string());
    let message = format!("Do you trust the configuration of {project}?\n\n{}", request.text);
    serde_json::to_value(CreateElicitationRequest::new(mode, message))
}

/// A question with several choices also accepts none of them.
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

/// The option kinds for the choices of a question, in order: some clients offer only one option of each kind,
/// and take a rejection for the end of the call.
const CHOICE_KINDS: [PermissionOptionKind; 2] =
    [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways];

/// The most choices that we show as options, as many at a time as there are kinds: people do not page through
/// more.
const CHOICES_MOST: usize = 4;

/// Whether permission requests can ask this question: it has a few choices, of which one is the answer.
pub fn fits_options(question: &Question) -> bool {
    (1..=CHOICES_MOST).contains(&question.choices.len()) && question.selection == Selection::One
}

/// Whether there are more choices after those that a request offers from this one on.
pub fn has_more_choices(question: &Question, first: usize) -> bool {
    question.choices.len().saturating_sub(first) > CHOICE_KINDS.len()
}

/// One question with a few choices as a permission request, whose options are the choices from `first` on. The
/// call lists all of them, because most clients shorten the names of options, and some replace them.
pub fn choice_request(ask: &Ask, question: &Question, first: usize) -> Result<Value, serde_json::Error> {
    let fields = ToolCallUpdateFields::new()
        .status(ToolCallStatus::Pending)
        .kind(ToolKind::Other)
        .title(visible_line(&question.text))
        .name(ask.tool_name.clone())
        .content(vec![listed(question).into()]);
    let call = ToolCallUpdate::new(ask.call_id.as_str().to_owned(), fields);
    let call = serde_json::to_value(call.meta(own_meta(json!({ "asks": "answer" }))))?;
    let named = |(index, choice): (usize, &Choice)| (choice_id(index), visible_line(&choice.label));
    let mut offered: Vec<_> = question.choices.iter().enumerate().skip(first).map(named).collect();
    if has_more_choices(question, first) {
        offered.truncate(CHOICE_KINDS.len() - 1);
        offered.push((MORE_CHOICES.to_owned(), "Another of the listed answers".to_owned()));
    }
    let offered = offered.into_iter().zip(CHOICE_KINDS);
    let mut options: Vec<_> =
        offered.map(|((id, name), kind)| PermissionOption::new(id, name, kind)).collect();
    options.push(PermissionOption::new(NO_CHOICE, "None of these", PermissionOptionKind::RejectOnce));
    Ok(json!({ "sessionId": ask.session_id, "toolCall": call, "options": options }))
}

/// The question and its choices as Markdown.
fn listed(question: &Question) -> String {
    let choice = |(index, choice): (usize, &Choice)| {
        let label = visible_line(&choice.label);
        match &choice.description {
            Some(description) => format!("{}. **{label}**: {}", index + 1, visible_line(description)),
            None => format!("{}. **{label}**", index + 1),
        }
    };
    let choices: Vec<_> = question.choices.iter().enumerate().map(choice).collect();
    format!("{}\n\n{}", visible(&question.text), choices.join("\n"))
}
