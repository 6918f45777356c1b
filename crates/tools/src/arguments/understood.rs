//! What a call's arguments mean under a schema: near misses of names and types become what they are plainly meant as, anything
//! else is an error. What fits the schema already stays as it is.

use serde_json::{Map, Value};

use super::aliases::{self, Unit, plain};

/// How alike a name must be to be offered in an error.
const SIMILAR: f64 = 0.8;

/// The arguments by the names and types of the schema, without nulls. Whether they fit is for `check` to say.
pub(super) fn understood(schema: &Value, input: &Value) -> Result<Value, String> {
    value(schema, input, "")
}

fn value(schema: &Value, input: &Value, place: &str) -> Result<Value, String> {
    match retyped(schema, input) {
        Value::Object(fields) => object(schema, &fields, place).map(Value::Object),
        Value::Array(items) => {
            let item = |(index, item)| value(&schema["items"], item, &format!("{place}[{index}]"));
            items.iter().enumerate().map(item).collect()
        }
        other => Ok(other),
    }
}

fn object(schema: &Value, fields: &Map<String, Value>, place: &str) -> Result<Map<String, Value>, String> {
    let Some(known) = schema["properties"].as_object() else { return Ok(fields.clone()) };
    let full = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    let mut result = Map::new();
    let mut said: Vec<(&String, &String)> = Vec::new();
    // Models write `null` for what they leave out.
    for (name, given) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let (field, unit) = match known.contains_key(name) {
            true => (name, Unit::Same),
            false => aliases::meant(name, known.keys()).ok_or_else(|| unknown(&full(name), name, known))?,
        };
        if let Some((_, other)) = said.iter().find(|(other, _)| *other == field) {
            let (one, other, field) = (full(other), full(name), full(field));
            return Err(format!("fields `{one}` and `{other}` both mean `{field}`; give one of them"));
        }
        said.push((field, name));
        let given = value(&known[field], given, &full(field))?;
        result.insert(field.clone(), in_milliseconds(given, unit));
    }
    Ok(result)
}

/// No argument is passed over: it may be what the call is about.
fn unknown(full: &str, name: &str, known: &Map<String, Value>) -> String {
    let alike = |field: &&String| strsim::jaro_winkler(&plain(field), &plain(name));
    let nearest = known.keys().max_by(|one, other| alike(one).total_cmp(&alike(other)));
    let aside = match (nearest.filter(|field| alike(field) >= SIMILAR), aliases::advice(name, known.keys())) {
        (Some(field), _) => format!(" (did you mean `{field}`?)"),
        (None, Some(advice)) => format!(" ({advice})"),
        (None, None) => String::new(),
    };
    let allowed: Vec<_> = known.keys().map(|name| format!("`{name}`")).collect();
    format!("field `{full}` is unknown{aside}; allowed are {}", allowed.join(", "))
}

/// A value of another type that can only mean one of the wanted type.
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

/// Exact as a float, and at least zero.
fn whole(number: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.fract() == 0.0 && (0.0..=EXACT).contains(&number)
}

fn written(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// The one of an enum's values that differs by case or separators at most.
fn listed(schema: &Value, text: &str) -> Option<Value> {
    let values = schema["enum"].as_array()?;
    if values.iter().any(|value| value == text) {
        return None;
    }
    let mut alike =
        values.iter().filter(|value| value.as_str().is_some_and(|value| plain(value) == plain(text)));
    alike.next().filter(|_| alike.next().is_none()).cloned()
}

fn in_milliseconds(value: Value, unit: Unit) -> Value {
    match (unit, value.as_u64()) {
        (Unit::Seconds, Some(number)) => number.saturating_mul(1000).into(),
        (Unit::Either, Some(number)) if number < 1000 => (number * 1000).into(),
        (Unit::Same | Unit::Seconds | Unit::Either, _) => value,
    }
}
