//! Merges message metadata the way the AI SDK's clients do: objects key by key, anything else is replaced.

use serde_json::{Map, Value};

/// Keys that mean something to JavaScript itself; its clients never merge them.
const SKIPPED: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// `overrides` wins. Both are treated as objects: a list or a text has its positions as keys, other values have
/// no keys. `None` when `overrides` has keys but the base can't hold any.
pub(super) fn merged(base: &Value, overrides: &Value) -> Option<Value> {
    let mut new = entries(overrides.clone());
    new.retain(|key, _| !SKIPPED.contains(&key.as_str()));
    let has_keys = base.is_object() || base.is_array();
    (has_keys || new.is_empty()).then(|| Value::Object(with(entries(base.clone()), new)))
}

fn with(mut result: Map<String, Value>, overrides: Map<String, Value>) -> Map<String, Value> {
    for (key, value) in overrides {
        let merged = match (result.get_mut(&key).map(Value::take), value) {
            (Some(Value::Object(held)), Value::Object(mut new)) => {
                new.retain(|key, _| !SKIPPED.contains(&key.as_str()));
                Value::Object(with(held, new))
            }
            (_, value) => value,
        };
        result.insert(key, merged);
    }
    result
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
