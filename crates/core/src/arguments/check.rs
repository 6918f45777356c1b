//! Checks that arguments, once understood, match a tool's schema. Changes nothing.

use serde_json::{Map, Value};

/// Checks the part of JSON Schema that our own structs produce; its messages are clearer to a model than those
/// of serde.
pub fn check(schema: &Value, value: &Value, field: &str) -> Result<(), String> {
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
    // `understood` has dealt with unknown names already.
    for (name, value, inner) in
        fields.iter().filter_map(|(name, value)| Some((name, value, known.get(name)?)))
    {
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
