//! Questions of the agent as forms of MCP, and what their answers mean. Pure: knows neither client nor session.

use attache_core::legible::{legible, legible_line};
use attache_core::ports::client::{Answer, Ask, ModeProposal, Permission, Question, Said, Selection};
use attache_core::ports::delegate::{Form, FormAnswer};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::limits::{QUESTION_CHARACTERS, SAID_CHARACTERS};
use crate::revision::Revision;

/// The one field of a form that asks for a decision, and what it may hold.
const DECISION: &str = "decision";
const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const ALLOW_EDITS: &str = "allow_edits";
const REJECT: &str = "reject";

/// Whether a call may run.
pub(crate) fn permission(ask: &Ask, about: &Permission, revision: Revision) -> Value {
    let mut message = format!("attache wants to do this: {}", legible_line(&ask.presentation.title));
    if !about.why.is_empty() {
        message.push_str(&format!("\nIt asks because {}", legible_line(&about.why)));
    }
    for directory in &about.outside {
        message
            .push_str(&format!("\nOutside of its workspace: {}", legible_line(&directory.to_string_lossy())));
    }
    let input = serde_json::to_string_pretty(&ask.input).unwrap_or_default();
    message.push_str(&format!("\n\n{}: {}", ask.tool_name, shortened(&legible(&input), QUESTION_CHARACTERS)));
    let mut choices = vec![(ALLOW_ONCE, "Allow this once".to_owned())];
    if let Some(name) = &about.rule_name {
        choices.push((ALLOW_ALWAYS, format!("Allow for this session: {}", legible_line(name))));
    }
    if let Some(name) = &about.edits_name {
        choices.push((ALLOW_EDITS, format!("Allow for this session: {}", legible_line(name))));
    }
    choices.push((REJECT, "Reject".to_owned()));
    decision(&message, &choices, revision)
}

/// Only what was offered is an answer; anything else rejects.
pub(crate) fn permitted(about: &Permission, response: &RawValue) -> Answer {
    match decided(response).as_deref() {
        Some(ALLOW_ONCE) => Answer::AllowOnce,
        Some(ALLOW_ALWAYS) if about.rule_name.is_some() => Answer::AllowAlways,
        Some(ALLOW_EDITS) if about.edits_name.is_some() => Answer::AllowEdits,
        Some(_) | None => Answer::RejectOnce,
    }
}

/// Whether the session goes on with another agent.
pub(crate) fn mode_switch(proposal: &ModeProposal, revision: Revision) -> Value {
    let message = format!("attache wants to go on with the agent {}.", legible_line(&proposal.name));
    let choices = [(ALLOW_ONCE, "Go on with it".to_owned()), (REJECT, "Not yet".to_owned())];
    decision(&message, &choices, revision)
}

pub(crate) fn switched(response: &RawValue) -> Answer {
    match decided(response).as_deref() {
        Some(ALLOW_ONCE) => Answer::AllowOnce,
        Some(_) | None => Answer::RejectOnce,
    }
}

fn decision(message: &str, choices: &[(&str, String)], revision: Revision) -> Value {
    let (values, names): (Vec<&str>, Vec<&str>) =
        choices.iter().map(|(value, name)| (*value, name.as_str())).unzip();
    let field = json!({ "type": "string", "title": "Decision", "enum": values, "enumNames": names });
    let mut fields = Map::new();
    fields.insert(DECISION.to_owned(), field);
    form(message, fields, &[DECISION.to_owned()], revision)
}

/// All questions as one form; `None` where one of them can't be put in this revision.
pub(crate) fn questions(questions: &[Question], revision: Revision) -> Option<Value> {
    let mut fields = Map::new();
    let mut required = Vec::new();
    for (index, question) in questions.iter().enumerate() {
        let name = field_name(index);
        if question.choices.is_empty() || question.selection == Selection::One {
            required.push(name.clone());
        }
        fields.insert(name, field(index, question, revision)?);
    }
    let message = match questions {
        [question] => legible(&question.text),
        _ => "attache has some questions.".to_owned(),
    };
    Some(form(&message, fields, &required, revision))
}

fn field(index: usize, question: &Question, revision: Revision) -> Option<Value> {
    let title = match &question.header {
        Some(header) => legible_line(header),
        None => format!("Question {}", index + 1),
    };
    let mut description = legible(&question.text);
    for choice in &question.choices {
        if let Some(more) = &choice.description {
            description.push_str(&format!("\n{}: {}", legible_line(&choice.label), legible_line(more)));
        }
    }
    let labels: Vec<&str> = question.choices.iter().map(|choice| choice.label.as_str()).collect();
    let about = json!({ "title": title, "description": shortened(&description, QUESTION_CHARACTERS) });
    let kind = match (labels.is_empty(), question.selection) {
        (true, _) => json!({ "type": "string" }),
        (false, Selection::One) => json!({ "type": "string", "enum": labels }),
        (false, Selection::Several) if revision.has_lists_in_forms() => {
            json!({ "type": "array", "items": { "type": "string", "enum": labels } })
        }
        (false, Selection::Several) => return None,
    };
    let mut field = kind;
    for key in ["title", "description"] {
        field[key] = about[key].clone();
    }
    Some(field)
}

/// A form that was put aside is no answer.
pub(crate) fn said(questions: &[Question], response: &RawValue) -> Answer {
    let Some(mut content) = accepted(response) else { return Answer::Unsaid };
    let answer = |(index, question): (usize, &Question)| match content.remove(&field_name(index)) {
        Some(Value::String(text)) if text.is_empty() => Said::Nothing,
        Some(Value::String(text)) => Said::Text(shortened(&text, SAID_CHARACTERS)),
        Some(Value::Array(chosen)) => {
            let offered = |label: &&str| question.choices.iter().any(|choice| choice.label == *label);
            let chosen = chosen.iter().filter_map(Value::as_str).filter(offered);
            Said::Chosen(chosen.map(str::to_owned).collect())
        }
        Some(Value::Null | Value::Object(_)) | None => Said::Nothing,
        Some(plain @ (Value::Bool(_) | Value::Number(_))) => Said::Text(plain.to_string()),
    };
    Answer::Said(questions.iter().enumerate().map(answer).collect())
}

/// A form that an MCP server of the session asks for, passed on to the client.
pub(crate) fn passed_on(theirs: &Form, revision: Revision) -> Value {
    let message = shortened(&legible(&theirs.message), QUESTION_CHARACTERS);
    with_mode(json!({ "message": message, "requestedSchema": theirs.schema }), revision)
}

pub(crate) fn filled(response: &RawValue) -> FormAnswer {
    match read(response) {
        Some(Response { action: FormAction::Accept, content }) => {
            FormAnswer::Filled(Value::Object(content.unwrap_or_default()))
        }
        Some(Response { action: FormAction::Decline, .. }) => FormAnswer::Declined,
        Some(Response { action: FormAction::Cancel, .. }) | None => FormAnswer::Dismissed,
    }
}

fn field_name(index: usize) -> String {
    format!("question_{}", index + 1)
}

fn form(message: &str, fields: Map<String, Value>, required: &[String], revision: Revision) -> Value {
    let schema = json!({ "type": "object", "properties": fields, "required": required });
    with_mode(json!({ "message": message, "requestedSchema": schema }), revision)
}

/// Only the newest clients know other modes than this, and name it.
fn with_mode(mut form: Value, revision: Revision) -> Value {
    if revision.has_lists_in_forms() {
        form["mode"] = "form".into();
    }
    form
}

#[derive(Deserialize)]
struct Response {
    action: FormAction,
    content: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum FormAction {
    Accept,
    Decline,
    Cancel,
}

fn read(response: &RawValue) -> Option<Response> {
    serde_json::from_str(response.get()).ok()
}

fn accepted(response: &RawValue) -> Option<Map<String, Value>> {
    let response = read(response)?;
    (response.action == FormAction::Accept).then(|| response.content.unwrap_or_default())
}

fn decided(response: &RawValue) -> Option<String> {
    Some(accepted(response)?.get(DECISION)?.as_str()?.to_owned())
}

fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use attache_core::ports::client::Choice;
    use proptest::prelude::*;

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    fn newest() -> Revision {
        Revision::agreed("2025-11-25")
    }

    #[test]
    fn only_an_offered_decision_allows() {
        let about = Permission { rule_name: Some("cargo test …".to_owned()), ..Permission::default() };
        let said = |word: &str| {
            permitted(&about, &raw(&json!({ "action": "accept", "content": { "decision": word } })))
        };
        assert_eq!(said("allow_once"), Answer::AllowOnce);
        assert_eq!(said("allow_always"), Answer::AllowAlways);
        for word in ["allow_edits", "reject", "ALLOW_ONCE", ""] {
            assert_eq!(said(word), Answer::RejectOnce, "{word}");
        }
        for response in [
            json!({ "action": "decline" }),
            json!({ "action": "cancel", "content": { "decision": "allow_once" } }),
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": { "decision": ["allow_once"] } }),
            json!({ "action": "yes", "content": { "decision": "allow_once" } }),
            json!([]),
        ] {
            assert_eq!(permitted(&about, &raw(&response)), Answer::RejectOnce, "{response}");
        }
    }

    #[test]
    fn several_choices_need_a_client_that_has_lists() {
        let choice = |label: &str| Choice { label: label.to_owned(), description: Some("why".to_owned()) };
        let question = Question {
            text: "Which?".to_owned(),
            header: None,
            choices: vec![choice("a"), choice("b")],
            selection: Selection::Several,
        };
        let one = [question];
        assert_eq!(questions(&one, Revision::agreed("2025-06-18")), None);
        let form = questions(&one, newest()).unwrap();
        assert_eq!(form["requestedSchema"]["properties"]["question_1"]["items"]["enum"], json!(["a", "b"]));
        let answer = json!({ "action": "accept", "content": { "question_1": ["b", "z"] } });
        let Answer::Said(answers) = said(&one, &raw(&answer)) else { panic!("no answer") };
        assert_eq!(answers, [Said::Chosen(vec!["b".to_owned()])]);
        assert_eq!(said(&one, &raw(&json!({ "action": "decline" }))), Answer::Unsaid);
    }

    proptest! {
        #[test]
        fn nothing_that_is_no_decision_lets_a_call_run(text in "\\PC{0,60}") {
            if let Ok(response) = RawValue::from_string(text.clone()) {
                let answer = permitted(&Permission::default(), &response);
                prop_assert!(answer == Answer::RejectOnce || text.contains("allow_once"));
            }
        }
    }
}
