//! From an input struct to a tool's schema, and from a call's arguments to the struct. Knows no tool by name.

mod aliases;
mod bounds;
mod check;
mod command_line;
mod ranges;
mod understood;
mod unknown;

use attache_core::legible::visible_block;
use attache_core::ports::tool::{Effect, ToolKind, ToolSpec};
use attache_sandbox::limits::ERROR_BYTES;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::bounded::Bounded;

use bounds::lowered;
use check::check;
use understood::{Understood, understood};
use unknown::{may_be_left_out, refusal};

/// Whether clients get a tool call or see the tool's work by other means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Shown,
    Hidden,
}

/// What a tool is, with the struct's doc comment as the text the model reads. Made once per process and tool.
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

/// The arguments as the tool's struct, or what is wrong with them: the field, what it may be, and an example.
pub(crate) fn parse<Input: DeserializeOwned>(
    spec: &ToolSpec,
    example: &str,
    input: &Value,
) -> Result<Input, String> {
    accepted(spec, input)
        .and_then(|arguments| serde_json::from_value(arguments).map_err(|error| error.to_string()))
        .map_err(|problem| rejected(spec, example, &problem))
}

/// The arguments as the schema wants them.
fn accepted(spec: &ToolSpec, input: &Value) -> Result<Value, String> {
    let Understood { arguments, unknown } = understood(&spec.parameters, input)?;
    if !may_be_left_out(spec, &unknown) {
        return Err(refusal(&unknown));
    }
    let (arguments, _) = lowered(&spec.parameters, arguments);
    check(&spec.parameters, &arguments, "").map_err(|problem| match unknown.is_empty() {
        true => problem,
        // What is missing may be what was given by a name that means nothing.
        false => format!("{problem}; {}", refusal(&unknown)),
    })?;
    Ok(arguments)
}

/// What the model is told of a call that runs with less than it was given: without a field, or with a smaller
/// number.
pub(crate) fn left_out(spec: &ToolSpec, input: &Value) -> Option<String> {
    let Understood { arguments, unknown } = understood(&spec.parameters, input).ok()?;
    let (_, lowered) = lowered(&spec.parameters, arguments);
    let unknown = (!unknown.is_empty()).then(|| unknown::note(spec, &unknown));
    let lowered = (!lowered.is_empty()).then(|| bounds::note(&lowered));
    let notes: Vec<String> = unknown.into_iter().chain(lowered).collect();
    let notes = (!notes.is_empty()).then(|| notes.join("\n"))?;
    Some(visible_block(Bounded::whole(notes, ERROR_BYTES / 2).text()))
}

/// The one form of an argument error.
pub(crate) fn rejected(spec: &ToolSpec, example: &str, problem: &str) -> String {
    // A name or value of the model's own may be of any length.
    let problem = Bounded::whole(problem, ERROR_BYTES / 2);
    format!("{}: {}, for example {example}", spec.id, visible_block(problem.text()))
}

/// Drops what costs tokens and tells the model nothing.
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

/// An optional field is one that may be missing; that it may also be null need not be said.
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
