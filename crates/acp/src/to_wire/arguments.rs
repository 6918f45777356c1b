//! The arguments of a call as a form, for a person who lets it run with others. Reads no answers.

use agent_client_protocol_schema::v1::{
    BooleanPropertySchema, CreateElicitationRequest, ElicitationFormMode, ElicitationMode,
    ElicitationPropertySchema, ElicitationSchema, ElicitationSessionScope, IntegerPropertySchema,
    NumberPropertySchema, StringPropertySchema, ToolCallId,
};
use attache_core::ports::client::Ask;
use serde_json::{Map, Value};

use super::legible::visible_line;
use crate::limits::FORM_ARGUMENT_BYTES;

/// What the field of an argument holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A text.
    Text,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// Yes or no.
    Flag,
    /// Anything else, as the JSON of it.
    Json,
}

impl ArgumentKind {
    /// By the value that the call was made with.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::String(_) => Self::Text,
            Value::Bool(_) => Self::Flag,
            Value::Number(number) if number.is_i64() => Self::Integer,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) | Value::Null | Value::Array(_) | Value::Object(_) => Self::Json,
        }
    }
}

/// Whether the arguments of a call can be put as a form: a few named values.
pub fn has_form(input: &Value) -> bool {
    let fields = input.as_object().is_some_and(|fields| !fields.is_empty());
    fields && input.to_string().len() <= FORM_ARGUMENT_BYTES
}

/// A form with a field for each argument. `typed` is what was typed before, as far as it was no good: `wrong`
/// names those fields.
pub fn argument_form(
    ask: &Ask,
    typed: &Map<String, Value>,
    wrong: &[String],
) -> Result<Value, serde_json::Error> {
    let mut schema = ElicitationSchema::new();
    for (name, value) in ask.input.as_object().into_iter().flatten() {
        let kind = ArgumentKind::of(value);
        let required = kind != ArgumentKind::Text;
        schema = schema.property(name.clone(), field(name, kind, typed.get(name).unwrap_or(value)), required);
    }
    let scope = ElicitationSessionScope::new(ask.session_id.as_str().to_owned())
        .tool_call_id(ToolCallId::new(ask.call_id.as_str().to_owned()));
    let mut message =
        format!("The arguments of `{}`. It runs with what you enter.", visible_line(&ask.tool_name));
    if !wrong.is_empty() {
        let names: Vec<String> = wrong.iter().map(|name| format!("`{}`", visible_line(name))).collect();
        message.push_str(&format!(" This is no JSON: {}.", names.join(", ")));
    }
    let mode = ElicitationMode::Form(ElicitationFormMode::new(scope, schema));
    serde_json::to_value(CreateElicitationRequest::new(mode, message))
}

/// `shown` is of the kind, or a text that was meant as JSON.
fn field(name: &str, kind: ArgumentKind, shown: &Value) -> ElicitationPropertySchema {
    let title = visible_line(name);
    let text = || shown.as_str().unwrap_or_default().to_owned();
    match kind {
        ArgumentKind::Text => StringPropertySchema::new().title(title).default_value(text()).into(),
        ArgumentKind::Integer => {
            IntegerPropertySchema::new().title(title).default_value(shown.as_i64()).into()
        }
        ArgumentKind::Number => NumberPropertySchema::new().title(title).default_value(shown.as_f64()).into(),
        ArgumentKind::Flag => BooleanPropertySchema::new().title(title).default_value(shown.as_bool()).into(),
        ArgumentKind::Json => {
            // What was typed before is a text already.
            let json = shown.as_str().map_or_else(|| shown.to_string(), str::to_owned);
            StringPropertySchema::new()
                .title(title)
                .description("As JSON.".to_owned())
                .default_value(json)
                .into()
        }
    }
}
