//! From an input struct to a tool's schema, and from a call's arguments to the struct. Knows no tool by name.

use attache_core::ports::tool::{Effect, ToolKind, ToolSpec};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::bounded::Bounded;
use crate::fence::visible_block;
use crate::limits::ERROR_BYTES;

/// Whether clients get a tool call or see the tool's work by other means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Shown,
    Hidden,
}

/// What a tool is, with the struct's doc comment as the text the model reads. Made once per process and tool.
pub(crate) fn spec<Input: JsonSchema>(
    id: &'static str,
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
        id,
        // The port wants text that lives as long as the process; this is one allocation per tool.
        description: description.leak(),
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
    let input = without_nulls(input);
    check(&spec.parameters, &input, "")
        .and_then(|()| serde_json::from_value(input).map_err(|error| error.to_string()))
        .map_err(|problem| rejected(spec, example, &problem))
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

/// Models write `null` for what they leave out.
fn without_nulls(input: &Value) -> Value {
    match input {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), without_nulls(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => input.clone(),
    }
}

/// Checks as much of JSON Schema as our own structs produce, in words that serde does not have.
fn check(schema: &Value, value: &Value, field: &str) -> Result<(), String> {
    let wanted = wanted(schema);
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.as_u64().is_some_and(|number| {
            schema["minimum"].as_u64().is_none_or(|least| number >= least)
                && schema["maximum"].as_u64().is_none_or(|most| number <= most)
        }),
        Some(_) | None => true,
    };
    let listed = schema["enum"].as_array().is_none_or(|values| values.contains(value));
    if !fits || !listed {
        return Err(match field {
            "" => format!("the arguments must be {wanted}"),
            field => format!("field `{field}` must be {wanted}"),
        });
    }
    match value {
        Value::Object(fields) => check_fields(schema, fields, field),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, item)| check(&schema["items"], item, &format!("{field}[{index}]"))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn check_fields(schema: &Value, fields: &Map<String, Value>, parent: &str) -> Result<(), String> {
    let Some(known) = schema["properties"].as_object() else { return Ok(()) };
    let full = |name: &str| if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
    for (name, value) in fields {
        let Some(inner) = known.get(name) else {
            let allowed: Vec<_> = known.keys().map(|name| format!("`{name}`")).collect();
            return Err(format!("field `{}` is unknown; allowed are {}", full(name), allowed.join(", ")));
        };
        check(inner, value, &full(name))?;
    }
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    match required.iter().filter_map(Value::as_str).find(|name| !fields.contains_key(*name)) {
        Some(name) => Err(format!("field `{}` is missing and must be {}", full(name), wanted(&known[name]))),
        None => Ok(()),
    }
}

fn wanted(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().map(Value::to_string).collect();
        return format!("one of {}", values.join(", "));
    }
    match (schema["type"].as_str(), schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
        (Some("integer"), least, Some(most)) => format!("an integer from {} to {most}", least.unwrap_or(0)),
        (Some("integer"), Some(1), None) => "a positive integer".to_owned(),
        (Some("integer"), _, None) => "an integer, zero or more".to_owned(),
        (Some("array"), ..) => "an array".to_owned(),
        (Some("object"), ..) => "an object".to_owned(),
        (Some("boolean"), ..) => "true or false".to_owned(),
        (Some(name), ..) => format!("a {name}"),
        (None, ..) => "a value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    /// Does a thing
    /// over two lines.
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Input {
        path: String,
        /// Lines.
        #[schemars(range(min = 1))]
        limit: Option<u64>,
        items: Option<Vec<Item>>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Item {
        state: State,
        weight: Option<State>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum State {
        Open,
        Closed,
    }

    fn test_spec() -> ToolSpec {
        spec::<Input>("thing", ToolKind::Other, Effect::ReadOnly, Visibility::Shown)
    }

    fn problem(input: Value) -> String {
        parse::<Input>(&test_spec(), "{}", &input).unwrap_err()
    }

    #[test]
    fn the_schema_holds_nothing_but_what_the_model_needs() {
        let spec = test_spec();
        assert_eq!(spec.description, "Does a thing over two lines.");
        let state = json!({"type": "string", "enum": ["open", "closed"]});
        assert_eq!(
            *spec.parameters,
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "limit": {"type": "integer", "description": "Lines.", "minimum": 1},
                    "items": {"type": "array", "items": {
                        "type": "object", "properties": {"state": state, "weight": state},
                        "additionalProperties": false, "required": ["state"],
                    }},
                },
                "additionalProperties": false,
                "required": ["path"],
            })
        );
    }

    #[test]
    fn a_wrong_argument_names_its_field_and_what_it_may_be() {
        assert_eq!(
            problem(json!({"path": "a", "limit": 0})),
            "thing: field `limit` must be a positive integer, for example {}"
        );
        assert!(
            problem(json!({"path": "a", "limit": "7"})).contains("field `limit` must be a positive integer")
        );
        assert!(problem(json!({})).contains("field `path` is missing and must be a string"));
        assert!(
            problem(json!({"pth": "a"}))
                .contains("field `pth` is unknown; allowed are `path`, `limit`, `items`")
        );
        assert!(problem(json!([])).contains("the arguments must be an object"));
        assert!(
            problem(json!({"path": "a", "items": [{"state": "ajar"}]}))
                .contains("field `items[0].state` must be one of \"open\", \"closed\"")
        );
    }

    #[test]
    fn null_means_left_out() {
        let input = parse::<Input>(&test_spec(), "{}", &json!({"path": "a", "limit": null})).unwrap();
        assert_eq!(input.limit, None);
        assert!(problem(json!({"path": null})).contains("`path` is missing"));
    }
}
