//! What a call's arguments mean under a schema: corrects near misses of names and types whose meaning is plain,
//! and leaves what already fits the schema. `unknown` decides whether a call may go without an unknown field.

use serde_json::{Map, Value, json};

use super::aliases::{self, Unit, plain};
use super::unknown::Unknown;
use super::{command_line, ranges};

/// The arguments by the names and types of the schema, without nulls. `check` decides whether they fit.
#[derive(Debug, PartialEq)]
pub struct Understood {
    /// By the names and types of the schema.
    pub arguments: Value,
    /// Fields that mean nothing here, each once.
    pub unknown: Vec<Unknown>,
}

/// Reads the arguments of a call by the schema of its tool; the error is for the model, and names the field.
pub fn understood(schema: &Value, input: &Value) -> Result<Understood, String> {
    let mut unknown = Vec::new();
    let arguments = value(schema, input, &ArgumentPlace::default(), &mut unknown)?;
    Ok(Understood { arguments, unknown })
}

/// A place in the arguments: with the item's number for errors, and without it for all items of a list.
#[derive(Clone, Debug, Default)]
struct ArgumentPlace {
    exact: String,
    general: String,
}

impl ArgumentPlace {
    fn field(&self, name: &str) -> Self {
        let below = |place: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
        Self { exact: below(&self.exact), general: below(&self.general) }
    }

    fn item(&self, index: usize) -> Self {
        Self { exact: format!("{}[{index}]", self.exact), general: format!("{}[]", self.general) }
    }
}

fn value(
    schema: &Value,
    input: &Value,
    place: &ArgumentPlace,
    unknown: &mut Vec<Unknown>,
) -> Result<Value, String> {
    match retyped(schema, input) {
        Value::Object(fields) => object(schema, &fields, place, unknown).map(Value::Object),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| value(&schema["items"], item, &place.item(index), unknown))
            .collect(),
        Value::String(text) if !place.exact.is_empty() => {
            Ok(only_field(schema, &text).unwrap_or(Value::String(text)))
        }
        other => Ok(other),
    }
}

fn object(
    schema: &Value,
    fields: &Map<String, Value>,
    place: &ArgumentPlace,
    unknown: &mut Vec<Unknown>,
) -> Result<Map<String, Value>, String> {
    let Some(known) = schema["properties"].as_object() else { return Ok(fields.clone()) };
    // Models write `null` for fields that they leave out.
    let given: Map<String, Value> = fields
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let (given, directory) =
        command_line::without_directory(known, ranges::as_offset_and_limit(known, given)?);
    let mut result = Map::new();
    let mut said: Vec<(&String, &String)> = Vec::new();
    for (name, given) in &given {
        let meant = match known.contains_key(name) {
            true => Some((name, Unit::Same)),
            false => aliases::meant(name, known.keys()),
        };
        let before = said.iter().find(|(field, _)| meant.is_some_and(|meant| meant.0 == *field));
        // `count: true` is another agent's wish for numbers only, not for a limit.
        let is_other = meant.is_some_and(|(field, _)| {
            field != name && given.is_boolean() && known[field]["type"] == "integer"
        });
        let meant = meant.filter(|_| !is_other);
        let (field, unit) = match (meant, before) {
            (Some(meant), None) => meant,
            (Some(_), Some(_)) if aliases::is_remark(name) => {
                Unknown::add(unknown, &place.general, name, known);
                continue;
            }
            (Some((field, unit)), Some((_, other))) => {
                let given = converted(value(&known[field], given, &place.field(field), unknown)?, unit);
                let both = result.get(field).and_then(|before| together(field, before, &given));
                result.insert(field.clone(), both.ok_or_else(|| contradiction(place, other, name, field))?);
                continue;
            }
            (None, _) => {
                Unknown::add(unknown, &place.general, name, known);
                continue;
            }
        };
        said.push((field, name));
        let given = match field.as_str() {
            command_line::FIELD => &command_line::as_line(given),
            // A list of patterns becomes one pattern with alternatives.
            "glob" | "pattern" if given.is_array() => &Value::String(given.to_string()),
            _ => given,
        };
        let given = value(&known[field], given, &place.field(field), unknown)?;
        result.insert(field.clone(), converted(given, unit));
    }
    command_line::go_to(directory, &mut result);
    Ok(result)
}

/// One value for a field that the model gave twice; `None` if the two contradict each other.
fn together(field: &str, one: &Value, other: &Value) -> Option<Value> {
    match (one.as_u64(), other.as_u64()) {
        // One number counts lines before a match, the other lines behind it: the larger shows both.
        (Some(one), Some(other)) if field == "context" => Some(one.max(other).into()),
        _ => (one == other).then(|| one.clone()),
    }
}

fn contradiction(place: &ArgumentPlace, one: &str, other: &str, field: &str) -> String {
    let full = |name: &str| place.field(name).exact;
    format!("fields `{}` and `{}` both mean `{}`; give one of them", full(one), full(other), full(field))
}

/// A value of another type, converted where it can only mean one value of the wanted type.
fn retyped(schema: &Value, input: &Value) -> Value {
    let meant = match (schema["type"].as_str(), input) {
        (Some("integer"), Value::String(text)) => text.trim().parse::<u64>().ok().map(Value::from),
        (Some("integer"), Value::Number(number)) if !number.is_u64() => {
            number.as_f64().filter(|number| whole(*number)).map(|number| Value::from(number as u64))
        }
        (Some("boolean"), Value::String(text)) => {
            text.trim().to_ascii_lowercase().parse().ok().map(Value::Bool)
        }
        (Some("array"), Value::String(text)) => written(text).filter(Value::is_array),
        (Some("object"), Value::String(text)) => written(text).filter(Value::is_object),
        (Some("string"), Value::Number(number)) if number.is_u64() || number.is_i64() => {
            Some(Value::String(number.to_string()))
        }
        (Some("string"), Value::String(text)) => listed(schema, text),
        (_, _) => None,
    };
    meant.unwrap_or_else(|| input.clone())
}

/// A whole number, exact as a float, at least zero.
fn whole(number: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.fract() == 0.0 && (0.0..=EXACT).contains(&number)
}

/// A text in place of an object whose only required field is a text.
fn only_field(schema: &Value, text: &str) -> Option<Value> {
    if schema["type"] != "object" {
        return None;
    }
    let [name] = schema["required"].as_array()?.as_slice() else { return None };
    let name = name.as_str().filter(|name| schema["properties"][*name]["type"] == "string")?;
    Some(json!({ name: text }))
}

fn written(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// The one of an enum's values that differs by case or separators at most, or that another agent calls so.
fn listed(schema: &Value, text: &str) -> Option<Value> {
    let values = schema["enum"].as_array()?;
    if values.iter().any(|value| value == text) {
        return None;
    }
    let text = plain(text);
    let means = |value: &&Value| {
        value.as_str().is_some_and(|value| plain(value) == text || aliases::is_value(value, &text))
    };
    let mut meant = values.iter().filter(means);
    meant.next().filter(|_| meant.next().is_none()).cloned()
}

fn converted(value: Value, unit: Unit) -> Value {
    match (unit, value.as_u64(), value.as_bool()) {
        (Unit::Seconds, Some(number), _) => number.saturating_mul(1000).into(),
        (Unit::Either, Some(number), _) if number < 1000 => (number * 1000).into(),
        (Unit::Opposite, _, Some(said)) => (!said).into(),
        (Unit::MoreThanOne, Some(number), _) => (number > 1).into(),
        (Unit::Same | Unit::Seconds | Unit::Either | Unit::Opposite | Unit::MoreThanOne, _, _) => value,
    }
}
