//! Checks the arguments of a call against the schema of its tool, before a server sees them. Knows what tools
//! use of JSON Schema: types, properties, items, choices, bounds and references within the schema. What it does
//! not know (patterns, formats, conditions) passes, and is the server's to refuse.

use serde_json::{Map, Value, json};

use crate::limits::{SCHEMA_DEPTH, SCHEMA_STEPS};

/// A schema that describes an object, as providers want it.
pub(crate) fn of_any_object() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// What is wrong with `input`, by the path of the field; `None` where it fits.
pub(crate) fn problem(schema: &Value, input: &Value) -> Option<String> {
    let mut check = SchemaCheck { root: schema, steps: 0 };
    check.value(schema, input, "", 0)
}

struct SchemaCheck<'a> {
    root: &'a Value,
    steps: usize,
}

impl<'a> SchemaCheck<'a> {
    fn value(&mut self, schema: &'a Value, input: &Value, path: &str, depth: usize) -> Option<String> {
        self.steps += 1;
        if depth > SCHEMA_DEPTH || self.steps > SCHEMA_STEPS {
            return None;
        }
        let schema = match schema {
            Value::Bool(false) => return Some(format!("{}must not be there", at(path))),
            Value::Object(schema) => schema,
            _ => return None,
        };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.referred(target)?;
            return self.value(target, input, path, depth + 1);
        }
        type_problem(schema, input, path)
            .or_else(|| choice_problem(schema, input, path))
            .or_else(|| bounds_problem(schema, input, path))
            .or_else(|| self.combined(schema, input, path, depth))
            .or_else(|| match input {
                Value::Object(fields) => self.fields(schema, fields, path, depth),
                Value::Array(items) => self.items(schema, items, path, depth),
                _ => None,
            })
    }

    /// Only what lies within the schema itself is followed.
    fn referred(&self, target: &str) -> Option<&'a Value> {
        self.root.pointer(target.strip_prefix('#')?)
    }

    fn combined(
        &mut self,
        schema: &'a Map<String, Value>,
        input: &Value,
        path: &str,
        depth: usize,
    ) -> Option<String> {
        let parts = |key: &str| schema.get(key).and_then(Value::as_array);
        for part in parts("allOf").into_iter().flatten() {
            if let Some(problem) = self.value(part, input, path, depth + 1) {
                return Some(problem);
            }
        }
        for key in ["anyOf", "oneOf"] {
            let Some(parts) = parts(key).filter(|parts| !parts.is_empty()) else { continue };
            let mut problems = parts.iter().map(|part| self.value(part, input, path, depth + 1));
            let first = problems.next().flatten();
            if first.is_some() && problems.all(|problem| problem.is_some()) {
                return Some(format!("{}fits none of its {} forms", at(path), parts.len()));
            }
        }
        None
    }

    fn fields(
        &mut self,
        schema: &'a Map<String, Value>,
        fields: &Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Option<String> {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut missing = required.filter_map(Value::as_str).filter(|name| !fields.contains_key(*name));
        if let Some(name) = missing.next() {
            return Some(format!("field `{}` is missing", below(path, name)));
        }
        let known = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.contains_key("patternProperties");
        for (name, value) in fields {
            let path = below(path, name);
            let found = match (known.and_then(|known| known.get(name)), schema.get("additionalProperties")) {
                (Some(schema), _) => self.value(schema, value, &path, depth + 1),
                (None, Some(Value::Bool(false))) if !patterns => {
                    Some(format!("there is no field `{path}`{}", nearest(name, known)))
                }
                (None, Some(schema @ Value::Object(_))) if !patterns => {
                    self.value(schema, value, &path, depth + 1)
                }
                (None, _) => None,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn items(
        &mut self,
        schema: &'a Map<String, Value>,
        items: &[Value],
        path: &str,
        depth: usize,
    ) -> Option<String> {
        let of_all = schema.get("items").filter(|items| items.is_object() || items.is_boolean())?;
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        items
            .iter()
            .enumerate()
            .skip(first)
            .find_map(|(index, item)| self.value(of_all, item, &format!("{path}[{index}]"), depth + 1))
    }
}

fn type_problem(schema: &Map<String, Value>, input: &Value, path: &str) -> Option<String> {
    let is = |name: &str| match name {
        "string" => input.is_string(),
        "number" => input.is_number(),
        "integer" => input.is_i64() || input.is_u64() || input.as_f64().is_some_and(|n| n.fract() == 0.0),
        "boolean" => input.is_boolean(),
        "array" => input.is_array(),
        "object" => input.is_object(),
        "null" => input.is_null(),
        _ => true,
    };
    let wanted: Vec<&str> = match schema.get("type")? {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    if wanted.is_empty() || wanted.iter().any(|name| is(name)) {
        return None;
    }
    Some(format!("{}must be {}, not {}", at(path), wanted.join(" or "), shown(input)))
}

fn choice_problem(schema: &Map<String, Value>, input: &Value, path: &str) -> Option<String> {
    let one_of = |choices: &[Value]| {
        let words: Vec<String> = choices.iter().take(20).map(Value::to_string).collect();
        format!("{}must be one of {}, not {}", at(path), words.join(", "), shown(input))
    };
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(input)
    {
        return Some(one_of(choices));
    }
    let constant = schema.get("const")?;
    (constant != input).then(|| one_of(std::slice::from_ref(constant)))
}

fn bounds_problem(schema: &Map<String, Value>, input: &Value, path: &str) -> Option<String> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let (least, most, size, what) = match input {
        Value::Number(number) => {
            let number = number.as_f64()?;
            if bound("exclusiveMinimum").is_some_and(|least| number <= least) {
                return Some(format!("{}must be above {}", at(path), schema["exclusiveMinimum"]));
            }
            if bound("exclusiveMaximum").is_some_and(|most| number >= most) {
                return Some(format!("{}must be below {}", at(path), schema["exclusiveMaximum"]));
            }
            ("minimum", "maximum", number, "")
        }
        Value::String(text) => ("minLength", "maxLength", text.chars().count() as f64, " characters"),
        Value::Array(items) => ("minItems", "maxItems", items.len() as f64, " items"),
        Value::Object(fields) => ("minProperties", "maxProperties", fields.len() as f64, " fields"),
        Value::Null | Value::Bool(_) => return None,
    };
    if bound(least).is_some_and(|least| size < least) {
        return Some(format!("{}must be at least {}{what}", at(path), schema[least]));
    }
    bound(most)
        .is_some_and(|most| size > most)
        .then(|| format!("{}must be at most {}{what}", at(path), schema[most]))
}

fn at(path: &str) -> String {
    if path.is_empty() { "the arguments ".to_owned() } else { format!("field `{path}` ") }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn shown(input: &Value) -> String {
    match input {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        other => other.to_string().chars().take(60).collect(),
    }
}

fn nearest(name: &str, known: Option<&Map<String, Value>>) -> String {
    let close = |known: &&String| strsim::damerau_levenshtein(name, known) <= 2;
    match known.into_iter().flat_map(Map::keys).take(200).find(close) {
        Some(meant) => format!(", did you mean `{meant}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1 },
                "count": { "type": ["integer", "null"], "minimum": 1, "maximum": 5 },
                "kind": { "enum": ["a", "b"] },
                "list": { "type": "array", "maxItems": 2, "items": { "$ref": "#/$defs/item" } },
                "either": { "anyOf": [{ "type": "string" }, { "type": "number" }] },
            },
            "required": ["path"],
            "additionalProperties": false,
            "$defs": { "item": { "type": "object", "required": ["x"], "properties": { "x": { "const": 1 } } } },
        });
        for (input, expected) in [
            (json!({ "path": "p", "count": 3.0, "list": [{ "x": 1, "y": 2 }], "either": 1 }), None),
            (json!({ "path": "p", "count": null, "kind": "a" }), None),
            (json!({}), Some("field `path` is missing")),
            (json!([]), Some("the arguments must be object, not an array")),
            (json!({ "path": 5 }), Some("field `path` must be string, not 5")),
            (json!({ "path": "" }), Some("field `path` must be at least 1 characters")),
            (json!({ "path": "p", "count": 1.5 }), Some("field `count` must be integer or null, not 1.5")),
            (json!({ "path": "p", "count": 6 }), Some("field `count` must be at most 5")),
            (json!({ "path": "p", "kind": "c" }), Some(r#"field `kind` must be one of "a", "b", not "c""#)),
            (json!({ "path": "p", "list": [{}] }), Some("field `list[0].x` is missing")),
            (json!({ "path": "p", "list": [{ "x": 2 }] }), Some("field `list[0].x` must be one of 1, not 2")),
            (json!({ "path": "p", "list": [1, 2, 3] }), Some("field `list` must be at most 2 items")),
            (json!({ "path": "p", "either": [] }), Some("field `either` fits none of its 2 forms")),
            (json!({ "path": "p", "counts": 1 }), Some("there is no field `counts`, did you mean `count`?")),
        ] {
            assert_eq!(problem(&schema, &input).as_deref(), expected, "{input}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_comes_to_an_end() {
        let endless = json!({ "$ref": "#" });
        assert_eq!(problem(&endless, &json!({})), None);
        let both = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }, { "$ref": "#" }] });
        assert_eq!(problem(&both, &json!(1)), None);
        let tree = json!({ "type": "object", "properties": { "left": { "$ref": "#" } }, "required": ["v"] });
        let deep = json!({ "v": 1, "left": { "v": 1, "left": {} } });
        assert_eq!(problem(&tree, &deep).as_deref(), Some("field `left.left.v` is missing"));
        assert_eq!(problem(&json!({ "$ref": "https://example.org/x" }), &json!(1)), None);
        assert_eq!(problem(&json!({ "$ref": "#/nowhere" }), &json!(1)), None);
    }
}
