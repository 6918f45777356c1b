//! What is understood of arguments, and what is refused.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::aliases::{self, Unit};
use super::*;
use crate::{Equipment, builtin};

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
    assert!(problem(json!({"path": "a", "limit": "many"})).contains("`limit` must be a positive integer"));
    assert!(problem(json!({})).contains("field `path` is missing and must be a string"));
    assert!(
        problem(json!({"pth": "a"}))
            .contains("field `pth` is unknown (did you mean `path`?); allowed are `path`, `limit`, `items`")
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

fn schemas() -> Vec<(&'static str, Value)> {
    let mut equipment = Equipment::bare();
    equipment.web_search =
        crate::SearchEndpoint::new(crate::SearchProvider::Searxng, "https://search.example", None).ok();
    builtin(equipment).iter().map(|tool| (tool.spec().id, (*tool.spec().parameters).clone())).collect()
}

/// The objects of a schema: itself, and those of its arrays.
fn objects(schema: &Value) -> Vec<&Map<String, Value>> {
    let Some(fields) = schema["properties"].as_object() else { return Vec::new() };
    std::iter::once(fields).chain(fields.values().flat_map(|field| objects(&field["items"]))).collect()
}

#[test]
fn near_misses_of_names_and_types_are_understood() {
    let schema = |id: &str| schemas().into_iter().find(|(name, _)| *name == id).unwrap().1;
    for (tool, said, meant) in [
        ("read", json!({"file_path": "a", "offset": "3"}), json!({"path": "a", "offset": 3})),
        ("read", json!({"filePath": "a", "limit": 5.0}), json!({"path": "a", "limit": 5})),
        ("read", json!({"filename": "a", "offset": null}), json!({"path": "a"})),
        ("write", json!({"path": "a", "contents": "x"}), json!({"path": "a", "content": "x"})),
        (
            "edit",
            json!({"path": "a", "old_str": "x", "newString": "y", "replace_all": "True"}),
            json!({"path": "a", "old_string": "x", "new_string": "y", "replace_all": true}),
        ),
        (
            "edit",
            json!({"path": "a", "edits": "[{\"old_str\": \"x\", \"new_str\": \"y\"}]"}),
            json!({"path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}),
        ),
        ("bash", json!({"cmd": "ls", "timeout": 30}), json!({"command": "ls", "timeout_ms": 30_000})),
        ("bash", json!({"script": "ls", "timeout": 30_000}), json!({"command": "ls", "timeout_ms": 30_000})),
        (
            "bash",
            json!({"command": "ls", "timeoutSeconds": "2"}),
            json!({"command": "ls", "timeout_ms": 2000}),
        ),
        (
            "bash",
            json!({"command": "ls", "run_in_background": "false"}),
            json!({"command": "ls", "background": false}),
        ),
        (
            "grep",
            json!({"query": 404, "-i": true, "-C": 2}),
            json!({"pattern": "404", "ignore_case": true, "context": 2}),
        ),
        (
            "todo",
            json!({"todos": [{"task": "x", "status": "In Progress"}]}),
            json!({"todos": [{"content": "x", "status": "in_progress"}]}),
        ),
        ("apply_patch", json!({"input": "x"}), json!({"patch": "x"})),
    ] {
        assert_eq!(understood(&schema(tool), &said), Ok(meant), "{tool} {said}");
    }
}

#[test]
fn what_could_mean_several_things_is_an_error() {
    let schema = |id: &str| schemas().into_iter().find(|(name, _)| *name == id).unwrap().1;
    for (tool, said, error) in [
        ("read", json!({"path": "a", "file_path": "a"}), "fields `path` and `file_path` both mean `path`"),
        ("bash", json!({"cmd": "rm x", "script": "ls"}), "both mean `command`; give one of them"),
        ("grep", json!({"pattern": "a", "include": "*.rs", "glob_pattern": "*"}), "both mean `glob`"),
        ("bash", json!({"command": "ls", "cwd": "/"}), "field `cwd` is unknown (begin it with `cd DIR &&`)"),
        ("read", json!({"path": "a", "start_line": 3}), "(lines 10 to 20 are `offset` 9, `limit` 11)"),
        (
            "edit",
            json!({"path": "a", "edits": [{"old": "x", "old_str": "y"}]}),
            "`edits[0].old` and `edits[0].old_str`",
        ),
    ] {
        let problem = understood(&schema(tool), &said).unwrap_err();
        assert!(problem.contains(error), "{problem}");
    }
}

#[test]
fn each_alias_means_one_field_of_some_tool_and_no_alias_is_a_field_itself_there() {
    let schemas = schemas();
    for (field, unit, alias) in aliases::all() {
        let holders: Vec<_> = schemas
            .iter()
            .flat_map(|(_, schema)| objects(schema))
            .filter(|fields| fields.contains_key(field) && !fields.contains_key(alias))
            .collect();
        let meant = |fields: &&Map<String, Value>| {
            aliases::meant(alias, fields.keys()).is_some_and(|found| found.0 == field && found.1 == unit)
        };
        assert!(holders.iter().any(meant), "`{alias}` never means `{field}`");
    }
}

/// Arguments that fit a schema.
fn fitting(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return proptest::sample::select(values.clone()).boxed();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().cloned().unwrap_or_default();
            let required = schema["required"].clone();
            let fields: Vec<_> = fields
                .into_iter()
                .map(|(name, field)| {
                    let needed = required.as_array().is_some_and(|all| all.contains(&json!(name)));
                    let present = if needed { Just(true).boxed() } else { any::<bool>().boxed() };
                    (Just(name), present, fitting(&field))
                })
                .collect();
            fields
                .prop_map(|fields| {
                    let present = fields.into_iter().filter(|(_, present, _)| *present);
                    Value::Object(present.map(|(name, _, value)| (name, value)).collect())
                })
                .boxed()
        }
        Some("array") => {
            proptest::collection::vec(fitting(&schema["items"]), 0..3).prop_map(Value::Array).boxed()
        }
        Some("integer") => {
            let most = schema["maximum"].as_u64().unwrap_or(u64::MAX);
            (schema["minimum"].as_u64().unwrap_or(0)..=most).prop_map(Value::from).boxed()
        }
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        _ => prop_oneof!["[ -~]{0,8}", "true|null|12|\\[1\\]|\\{\\}"].prop_map(Value::from).boxed(),
    }
}

fn tool_and_arguments() -> impl Strategy<Value = (Value, Value)> {
    proptest::sample::select(schemas()).prop_flat_map(|(_, schema)| (Just(schema.clone()), fitting(&schema)))
}

/// The same as a careless model writes it: another name for each field that has one, numbers and lists as text.
fn carelessly(schema: &Value, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let known = schema["properties"].as_object().unwrap();
            let rename = |(name, value): (&String, &Value)| {
                let other = aliases::all().find(|(field, unit, alias)| {
                    field == name
                        && *unit == Unit::Same
                        && aliases::meant(alias, known.keys()).is_some_and(|meant| meant.0 == name)
                        && !known.contains_key(*alias)
                });
                let written = match carelessly(&known[name], value) {
                    Value::String(text) => Value::String(text),
                    other => Value::String(other.to_string()),
                };
                (other.map_or_else(|| name.clone(), |other| other.2.to_owned()), written)
            };
            fields.iter().map(rename).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(|item| carelessly(&schema["items"], item)).collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn what_fits_stays_as_it_is((schema, exact) in tool_and_arguments()) {
        prop_assert_eq!(understood(&schema, &exact), Ok(exact.clone()));
        prop_assert_eq!(check(&schema, &exact, ""), Ok(()));
    }

    #[test]
    fn what_is_written_carelessly_means_the_same((schema, exact) in tool_and_arguments()) {
        prop_assert_eq!(understood(&schema, &carelessly(&schema, &exact)), Ok(exact.clone()));
    }

    #[test]
    fn one_field_by_two_names_is_an_error((schema, exact) in tool_and_arguments(), pick in any::<prop::sample::Index>()) {
        let known = schema["properties"].as_object().unwrap();
        let mut said = exact.as_object().unwrap().clone();
        let others: Vec<_> = aliases::all()
            .filter(|(field, _, alias)| {
                said.contains_key(*field)
                    && !known.contains_key(*alias)
                    && aliases::meant(alias, known.keys()).is_some_and(|meant| meant.0 == field)
            })
            .collect();
        prop_assume!(!others.is_empty());
        let (field, _, alias) = others[pick.index(others.len())];
        said.insert(alias.to_owned(), said[field].clone());
        prop_assert!(understood(&schema, &Value::Object(said)).is_err());
    }
}
