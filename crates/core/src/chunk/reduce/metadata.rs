//! Merges message metadata the way the AI SDK's clients do: objects key by key, anything else is replaced.

use serde_json::{Map, Value};

/// Keys JavaScript gives a meaning of their own; its clients never merge them.
const SKIPPED: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// `overrides` wins. Both stand for objects: of a list or a text the entries are taken by position, other values have none.
pub(super) fn merged(base: Value, overrides: &Value) -> Value {
    let mut result = entries(base);
    for (key, value) in entries(overrides.clone()) {
        if SKIPPED.contains(&key.as_str()) {
            continue;
        }
        let merged = match result.get_mut(&key) {
            Some(held @ Value::Object(_)) if value.is_object() => merged(held.take(), &value),
            _ => value,
        };
        result.insert(key, merged);
    }
    Value::Object(result)
}

fn entries(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        Value::Array(items) => {
            items.into_iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect()
        }
        Value::String(text) => {
            let characters = text.chars().enumerate();
            characters.map(|(at, character)| (at.to_string(), Value::String(character.to_string()))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Map::new(),
    }
}
