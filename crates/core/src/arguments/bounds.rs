//! Numbers above what a tool's schema allows. Such a call plainly wants as much as it can get: it gets the
//! maximum, and the model learns so. `check` refuses numbers below a minimum: a request for 0 is not a request
//! for 1.

use serde_json::Value;

/// A number that became the maximum of its field.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    field: String,
    given: Value,
    most: u64,
}

impl Lowered {
    fn in_words(&self) -> String {
        format!("`{}` is {}, the maximum, instead of {}", self.field, self.most, self.given)
    }
}

/// The arguments with every number lowered to its maximum, and the numbers that were too large.
pub fn lowered(schema: &Value, mut arguments: Value) -> (Value, Vec<Lowered>) {
    let mut found = Vec::new();
    lower(schema, &mut arguments, "", &mut found);
    (arguments, found)
}

fn lower(schema: &Value, value: &mut Value, field: &str, found: &mut Vec<Lowered>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let full = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
                lower(&schema["properties"][name], value, &full, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                lower(&schema["items"], item, &format!("{field}[{index}]"), found);
            }
        }
        Value::Number(number) => {
            let is_above = |most: u64| match number.as_u64() {
                Some(number) => number > most,
                // Too large for an integer of 64 bits; a fraction is not a count.
                None => number.as_f64().is_some_and(|number| number.fract() == 0.0 && number > most as f64),
            };
            if schema["type"] == "integer"
                && let Some(most) = schema["maximum"].as_u64().filter(|most| is_above(*most))
            {
                found.push(Lowered { field: field.to_owned(), given: value.clone(), most });
                *value = most.into();
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// What the model is told of a call that ran with less than it asked for.
pub fn note(lowered: &[Lowered]) -> String {
    format!("[{}]", lowered.iter().map(Lowered::in_words).collect::<Vec<_>>().join(", "))
}
