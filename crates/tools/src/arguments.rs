//! From an input struct to a tool's schema, and from a call's arguments to the struct. Knows no tool by name;
//! `attache_core::arguments` decides what arguments mean.

use attache_core::arguments::{self, accepted};
use attache_core::legible::visible_block;
use attache_core::ports::tool::{Effect, ToolKind, ToolSpec};
use attache_sandbox::limits::ERROR_BYTES;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::bounded::Bounded;

/// Whether clients get a tool call or see the tool's work in another form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Shown,
    Hidden,
}

/// A tool's description, with the struct's doc comment as the text for the model. Made once per process and
/// tool.
pub(crate) fn spec<Input: JsonSchema>(
    id: &str,
    kind: ToolKind,
    effect: Effect,
    visibility: Visibility,
) -> ToolSpec {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut parameters = settings.into_generator().into_root_schema_for::<Input>().to_value();
    without_noise(&mut parameters);
    let description = match parameters.as_object_mut().and_then(|schema| schema.remove("description")) {
        Some(Value::String(text)) => text,
        Some(_) | None => String::new(),
    };
    ToolSpec {
        id: id.into(),
        description: description.into(),
        parameters: parameters.into(),
        kind,
        effect,
        hidden: visibility == Visibility::Hidden,
    }
}

/// The arguments as the tool's struct, or what is wrong with them: the field, its allowed values, and an
/// example.
pub(crate) fn parse<Input: DeserializeOwned>(
    spec: &ToolSpec,
    example: &str,
    input: &Value,
) -> Result<Input, String> {
    accepted(spec, input)
        .and_then(|arguments| serde_json::from_value(arguments).map_err(|error| error.to_string()))
        .map_err(|problem| rejected(spec, example, &problem))
}

/// What the model is told about a call that runs with less than the model gave.
pub(crate) fn left_out(spec: &ToolSpec, input: &Value) -> Option<String> {
    let notes = arguments::left_out(spec, input)?;
    Some(visible_block(Bounded::whole(notes, ERROR_BYTES / 2).text()))
}

/// The one form of an argument error.
pub(crate) fn rejected(spec: &ToolSpec, example: &str, problem: &str) -> String {
    // A name or value from the model may have any length.
    let problem = Bounded::whole(problem, ERROR_BYTES / 2);
    format!("{}: {}, for example {example}", spec.id, visible_block(problem.text()))
}

/// Removes what costs tokens and tells the model nothing.
fn without_noise(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for noise in ["$schema", "title", "format", "default"] {
                if !fields.get(noise).is_some_and(Value::is_object) {
                    fields.remove(noise);
                }
            }
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            unwrap_optional(fields);
            fields.values_mut().for_each(without_noise);
        }
        Value::Array(items) => items.iter_mut().for_each(without_noise),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An optional field may be missing; that it may also be null need not be said.
fn unwrap_optional(fields: &mut Map<String, Value>) {
    let single = match fields.get("type") {
        Some(Value::Array(types)) => types.iter().find(|name| *name != "null").cloned(),
        Some(_) | None => None,
    };
    if let Some(name) = single {
        fields.insert("type".to_owned(), name);
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let inner = match fields.get("anyOf") {
        Some(Value::Array(options)) => {
            options.iter().find(|option| option.get("type").is_none_or(|name| name != "null")).cloned()
        }
        Some(_) | None => None,
    };
    if let Some(Value::Object(inner)) = inner {
        fields.remove("anyOf");
        fields.extend(inner);
    }
}

#[cfg(test)]
mod tests;
