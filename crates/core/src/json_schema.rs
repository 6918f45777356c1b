//! Checks a JSON value against the part of JSON Schema that manifests use. Refuses unknown keywords when it
//! reads the schema, so that no check is incomplete.
//!
//! We wrote our own, because a complete validator with references and formats adds some megabytes to the
//! program, and all it would check is one last message of a subagent.

use serde_json::{Map, Value};

use crate::limits::{SCHEMA_DEPTH, SCHEMA_MISTAKES};

/// A schema whose keywords are all known.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'a>(&'a Value);

/// Keywords that do not restrict values.
const ANNOTATIONS: [&str; 8] =
    ["$schema", "$id", "$comment", "title", "description", "default", "examples", "format"];

const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

impl<'a> Schema<'a> {
    /// The error names the keyword and its place.
    pub fn read(schema: &'a Value) -> Result<Self, String> {
        known("", schema, 0)?;
        Ok(Self(schema))
    }

    /// The problems of a value, each with its place; if there are many, only the first.
    pub fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        let mut mistakes = Vec::new();
        check(self.0, value, "", &mut mistakes);
        mistakes.truncate(SCHEMA_MISTAKES);
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }
}

fn known(place: &str, schema: &Value, depth: usize) -> Result<(), String> {
    if depth > SCHEMA_DEPTH {
        return Err(format!("the schema is more than {SCHEMA_DEPTH} levels deep"));
    }
    let fields = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(fields) => fields,
        _ => return Err(format!("{} must be a schema: an object, true or false", named(place))),
    };
    for (key, value) in fields {
        let here = format!("{place}/{key}");
        let fits = match key.as_str() {
            key if ANNOTATIONS.contains(&key) => true,
            "const" => true,
            "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
            "type" => names(value).is_some_and(|names| names.iter().all(|name| TYPES.contains(name))),
            "required" => names(value).is_some() && value.is_array(),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                value.is_u64()
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "uniqueItems" => value.is_boolean(),
            "items" | "additionalProperties" | "not" => {
                known(&here, value, depth + 1)?;
                true
            }
            "properties" => {
                let Some(properties) = value.as_object() else { return Err(wrong(&here)) };
                for (name, property) in properties {
                    known(&format!("{here}/{name}"), property, depth + 1)?;
                }
                true
            }
            "anyOf" | "allOf" | "oneOf" => {
                let Some(schemas) = value.as_array() else { return Err(wrong(&here)) };
                for (index, schema) in schemas.iter().enumerate() {
                    known(&format!("{here}/{index}"), schema, depth + 1)?;
                }
                !schemas.is_empty()
            }
            _ => return Err(format!("the keyword `{key}` at {} is not supported", named(place))),
        };
        if !fits {
            return Err(wrong(&here));
        }
    }
    Ok(())
}

fn wrong(place: &str) -> String {
    format!("{} has a value that JSON Schema does not allow there", named(place))
}

fn named(place: &str) -> String {
    if place.is_empty() { "the top".to_owned() } else { format!("`{place}`") }
}

/// One name, or a list of them.
fn names(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

fn check(schema: &Value, value: &Value, place: &str, mistakes: &mut Vec<String>) {
    if mistakes.len() > SCHEMA_MISTAKES {
        return;
    }
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Bool(false) => return mistakes.push(format!("{} is not allowed", named(place))),
        _ => return,
    };
    if let Some(types) = fields.get("type").and_then(names)
        && !types.iter().any(|name| is_of_type(value, name))
    {
        // After a wrong type, other keywords of the schema do not apply.
        return mistakes.push(format!("{} must be {}", named(place), types.join(" or ")));
    }
    if fields.get("const").is_some_and(|only| !is_same(only, value)) {
        mistakes.push(format!("{} must be {}", named(place), fields["const"]));
    }
    if let Some(Value::Array(values)) = fields.get("enum")
        && !values.iter().any(|one| is_same(one, value))
    {
        let all: Vec<String> = values.iter().map(Value::to_string).collect();
        mistakes.push(format!("{} must be one of {}", named(place), all.join(", ")));
    }
    check_combined(fields, value, place, mistakes);
    match value {
        Value::Object(members) => check_object(fields, members, place, mistakes),
        Value::Array(items) => check_array(fields, items, place, mistakes),
        Value::String(text) => {
            check_size(
                fields,
                ("minLength", "maxLength", "characters"),
                text.chars().count(),
                place,
                mistakes,
            );
        }
        Value::Number(_) => check_number(fields, value.as_f64().unwrap_or_default(), place, mistakes),
        Value::Null | Value::Bool(_) => {}
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(_) => name == "object",
        Value::Array(_) => name == "array",
        Value::String(_) => name == "string",
        Value::Bool(_) => name == "boolean",
        Value::Null => name == "null",
        // 1.0 is an integer, too.
        Value::Number(number) => {
            let is_whole = number.as_f64().is_none_or(|number| number.fract() == 0.0);
            name == "number" || (name == "integer" && is_whole)
        }
    }
}

/// Compares numbers by value: 1 equals 1.0.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

fn fits(schema: &Value, value: &Value) -> bool {
    let mut mistakes = Vec::new();
    check(schema, value, "", &mut mistakes);
    mistakes.is_empty()
}

fn check_combined(fields: &Map<String, Value>, value: &Value, place: &str, mistakes: &mut Vec<String>) {
    let schemas = |key: &str| fields.get(key).and_then(Value::as_array);
    for schema in schemas("allOf").into_iter().flatten() {
        check(schema, value, place, mistakes);
    }
    let fitting = |schemas: &Vec<Value>| schemas.iter().filter(|schema| fits(schema, value)).count();
    if schemas("anyOf").is_some_and(|schemas| fitting(schemas) == 0) {
        mistakes.push(format!("{} fits none of the alternatives", named(place)));
    }
    if let Some(count) = schemas("oneOf").map(fitting).filter(|count| *count != 1) {
        mistakes.push(format!("{} fits {count} of the alternatives instead of one", named(place)));
    }
    if fields.get("not").is_some_and(|schema| fits(schema, value)) {
        mistakes.push(format!("{} is what it must not be", named(place)));
    }
}

fn check_object(
    fields: &Map<String, Value>,
    members: &Map<String, Value>,
    place: &str,
    mistakes: &mut Vec<String>,
) {
    for name in fields.get("required").and_then(names).into_iter().flatten() {
        if !members.contains_key(name) {
            mistakes.push(format!("`{place}/{name}` is missing"));
        }
    }
    check_size(fields, ("minProperties", "maxProperties", "members"), members.len(), place, mistakes);
    let properties = fields.get("properties").and_then(Value::as_object);
    for (name, member) in members {
        let here = format!("{place}/{name}");
        match (properties.and_then(|known| known.get(name)), fields.get("additionalProperties")) {
            (Some(schema), _) | (None, Some(schema)) => check(schema, member, &here, mistakes),
            (None, None) => {}
        }
    }
}

fn check_array(fields: &Map<String, Value>, items: &[Value], place: &str, mistakes: &mut Vec<String>) {
    check_size(fields, ("minItems", "maxItems", "items"), items.len(), place, mistakes);
    if let Some(schema) = fields.get("items") {
        for (index, item) in items.iter().enumerate() {
            check(schema, item, &format!("{place}/{index}"), mistakes);
        }
    }
    let repeats = |(index, item): (usize, &Value)| items[..index].iter().any(|before| is_same(before, item));
    if fields.get("uniqueItems") == Some(&Value::Bool(true)) && items.iter().enumerate().any(repeats) {
        mistakes.push(format!("{} holds something twice", named(place)));
    }
}

fn check_size(
    fields: &Map<String, Value>,
    (least, most, what): (&str, &str, &str),
    size: usize,
    place: &str,
    mistakes: &mut Vec<String>,
) {
    let bound = |key: &str| fields.get(key).and_then(Value::as_u64);
    if let Some(least) = bound(least).filter(|least| (size as u64) < *least) {
        mistakes.push(format!("{} has {size} {what}, fewer than {least}", named(place)));
    }
    if let Some(most) = bound(most).filter(|most| size as u64 > *most) {
        mistakes.push(format!("{} has {size} {what}, more than {most}", named(place)));
    }
}

fn check_number(fields: &Map<String, Value>, number: f64, place: &str, mistakes: &mut Vec<String>) {
    let bound = |key: &str| fields.get(key).and_then(Value::as_f64);
    let mut hold = |key: &str, words: &str, holds: fn(&f64, &f64) -> bool| {
        if let Some(bound) = bound(key).filter(|bound| !holds(&number, bound)) {
            mistakes.push(format!("{} must be {words} {bound}", named(place)));
        }
    };
    hold("minimum", "at least", f64::ge);
    hold("maximum", "at most", f64::le);
    hold("exclusiveMinimum", "more than", f64::gt);
    hold("exclusiveMaximum", "less than", f64::lt);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mistakes(schema: Value, value: Value) -> Vec<String> {
        Schema::read(&schema).unwrap().check(&value).err().unwrap_or_default()
    }

    #[test]
    fn what_fits_has_no_mistakes() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "required": ["files", "risk"],
            "additionalProperties": false,
            "properties": {
                "files": { "type": "array", "minItems": 1, "uniqueItems": true, "items": { "type": "string" } },
                "risk": { "enum": ["low", "high"] },
                "score": { "type": ["number", "null"], "minimum": 0, "exclusiveMaximum": 1 },
            },
        });
        let value = json!({ "files": ["a.rs"], "risk": "low", "score": 0.5 });
        assert!(Schema::read(&schema).unwrap().check(&value).is_ok());
        let wrong = json!({ "files": [1, 1], "score": 1, "more": true });
        assert_eq!(
            mistakes(schema, wrong),
            [
                "`/risk` is missing",
                "`/files/0` must be string",
                "`/files/1` must be string",
                "`/files` holds something twice",
                "`/score` must be less than 1",
                "`/more` is not allowed",
            ]
        );
    }

    #[test]
    fn alternatives_and_bounds_are_held() {
        let either = json!({ "oneOf": [{ "type": "integer" }, { "minimum": 5 }] });
        assert!(mistakes(either.clone(), json!(1)).is_empty());
        assert!(mistakes(either.clone(), json!(5.5)).is_empty());
        assert_eq!(mistakes(either, json!(6)), ["the top fits 2 of the alternatives instead of one"]);
        let any = json!({ "anyOf": [{ "const": 1 }, { "type": "string", "maxLength": 2 }] });
        assert!(mistakes(any.clone(), json!(1.0)).is_empty());
        assert_eq!(mistakes(any, json!("äöü")), ["the top fits none of the alternatives"]);
        assert_eq!(mistakes(json!({ "not": { "type": "null" } }), json!(null)).len(), 1);
        assert_eq!(
            mistakes(json!({ "allOf": [{ "minLength": 2 }, { "maxLength": 0 }] }), json!("a")).len(),
            2
        );
    }

    #[test]
    fn a_keyword_that_is_not_checked_is_refused() {
        for (schema, named) in [
            (json!({ "$ref": "#/x" }), "`$ref`"),
            (json!({ "properties": { "a": { "pattern": "x" } } }), "`pattern` at `/properties/a`"),
            (json!({ "type": "text" }), "`/type`"),
            (json!({ "items": [1] }), "`/items`"),
            (json!([]), "the top"),
        ] {
            let refused = Schema::read(&schema).unwrap_err();
            assert!(refused.contains(named), "{refused}");
        }
        let mut deep = json!({});
        for _ in 0..=SCHEMA_DEPTH {
            deep = json!({ "items": deep });
        }
        assert!(Schema::read(&deep).unwrap_err().contains("levels deep"));
    }
}
