//! Which arguments are understood, and which are refused.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use attache_core::arguments::aliases::{self, Unit};
use attache_core::arguments::bounds;
use attache_core::arguments::check::check;
use attache_core::arguments::understood::{Understood, understood};
use attache_core::arguments::unknown::refusal;

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
    assert_eq!(&*spec.description, "Does a thing over two lines.");
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
            .contains("field `pth` (did you mean `path`?) is unknown; allowed are `path`, `limit`, `items`")
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

fn specs() -> Vec<ToolSpec> {
    let mut equipment = Equipment::bare();
    equipment.web_search =
        crate::SearchEndpoint::new(crate::SearchProvider::Searxng, "https://search.example", None).ok();
    let others = [attache_core::task::spec(&["explore"])];
    builtin(equipment).iter().map(|tool| tool.spec().clone()).chain(others).collect()
}

fn schemas() -> Vec<(String, Value)> {
    specs().into_iter().map(|spec| (spec.id.to_string(), (*spec.parameters).clone())).collect()
}

/// The meaning of arguments; an argument without a meaning is an error.
fn meaning(schema: &Value, input: &Value) -> Result<Value, String> {
    let Understood { arguments, unknown } = understood(schema, input)?;
    if unknown.is_empty() { Ok(arguments) } else { Err(refusal(&unknown)) }
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
        ("read", json!({"path": "a", "file_path": "a"}), json!({"path": "a"})),
    ] {
        assert_eq!(meaning(&schema(tool), &said), Ok(meant), "{tool} {said}");
    }
}

/// What models have learned to send to other agents, under those agents' names: the call runs as intended, and
/// the result names what it ran without.
#[test]
fn calls_in_the_terms_of_other_agents_are_understood() {
    let specs = specs();
    for (agent, tool, said, meant, unknown) in other_agents() {
        let spec = &specs.iter().find(|spec| *spec.id == *tool).unwrap();
        let problem = accepted(spec, &said).map_err(|problem| format!("{agent}, {tool}: {problem}"));
        assert_eq!(problem, Ok(meant), "{agent}, {tool} {said}");
        let note = left_out(spec, &said).unwrap_or_default();
        assert_eq!(note.is_empty(), unknown.is_empty(), "{agent}, {tool} {said}: {note}");
        for name in unknown {
            assert!(note.contains(&format!("`{name}`")), "{agent}, {tool}: {note}");
        }
    }
}

type Row = (&'static str, &'static str, Value, Value, &'static [&'static str]);

/// Agent, our tool, the arguments of that agent's tool, their meaning here, and those without a meaning here.
fn other_agents() -> Vec<Row> {
    let lines = json!({"path": "a", "offset": 9, "limit": 11});
    let edit = json!({"path": "a", "old_string": "x", "new_string": "y"});
    vec![
        ("Claude Code", "read", json!({"file_path": "a", "offset": 9, "limit": 11}), lines.clone(), &[]),
        (
            "Claude Code",
            "grep",
            json!({"pattern": "x", "output_mode": "content", "-n": true, "-A": 1, "-B": 3, "head_limit": 20, "type": "py"}),
            json!({"pattern": "x", "context": 3, "limit": 20}),
            &["-n", "output_mode", "type"],
        ),
        (
            "Claude Code",
            "bash",
            json!({"command": "ls", "timeout": 60_000, "description": "Lists", "run_in_background": true}),
            json!({"command": "ls", "timeout_ms": 60_000, "description": "Lists", "background": true}),
            &[],
        ),
        (
            "Claude Code",
            "bash_background",
            json!({"action": "kill", "shell_id": "bg_1"}),
            json!({"action": "stop", "name": "bg_1"}),
            &[],
        ),
        (
            "Claude Code",
            "todo",
            json!({"todos": [{"content": "x", "status": "done", "activeForm": "xing"}, {"content": "y", "status": "todo", "activeForm": "ying"}]}),
            json!({"todos": [{"content": "x", "status": "completed"}, {"content": "y", "status": "pending"}]}),
            &["todos[].activeForm"],
        ),
        (
            "Claude Code",
            "task",
            json!({"description": "Find it", "prompt": "Where is it?", "subagent_type": "Explore", "run_in_background": "true"}),
            json!({"description": "Find it", "prompt": "Where is it?", "subagent_type": "explore", "background": true}),
            &[],
        ),
        (
            "codex",
            "task",
            json!({"agent_type": "explore", "message": "Where is it?", "model": "small"}),
            json!({"subagent_type": "explore", "prompt": "Where is it?"}),
            &["model"],
        ),
        ("Claude Code", "skill", json!({"skill": "deploy"}), json!({"name": "deploy"}), &[]),
        (
            "Claude Code",
            "web_fetch",
            json!({"url": "https://a.org", "prompt": "What is it?"}),
            json!({"url": "https://a.org"}),
            &["prompt"],
        ),
        ("Claude's editor tool", "read", json!({"path": "a", "view_range": [10, 20]}), lines.clone(), &[]),
        (
            "Claude's editor tool",
            "read",
            json!({"path": "a", "view_range": "[10, -1]"}),
            json!({"path": "a", "offset": 9}),
            &[],
        ),
        (
            "Claude's editor tool",
            "edit",
            json!({"path": "a", "old_str": "x", "new_str": "y"}),
            edit.clone(),
            &[],
        ),
        (
            "codex",
            "bash",
            json!({"command": ["bash", "-lc", "ls | wc -l"], "workdir": "a b", "timeout_ms": 5, "justification": "Counts"}),
            json!({"command": "cd 'a b' || exit\nls | wc -l", "timeout_ms": 5, "description": "Counts"}),
            &[],
        ),
        ("codex", "bash", json!({"command": ["ls", "a b"]}), json!({"command": "ls 'a b'"}), &[]),
        ("codex", "bash", json!({"cmd": "ls", "workdir": "/w"}), json!({"command": "cd /w && ls"}), &[]),
        (
            "codex",
            "apply_patch",
            json!({"input": "p", "explanation": "Mends"}),
            json!({"patch": "p"}),
            &["explanation"],
        ),
        (
            "codex",
            "todo",
            json!({"explanation": "Next", "plan": [{"step": "x", "status": "in_progress"}]}),
            json!({"todos": [{"content": "x", "status": "in_progress"}]}),
            &["explanation"],
        ),
        (
            "codex",
            "grep",
            json!({"pattern": "x", "include": "*.rs", "limit": 5}),
            json!({"pattern": "x", "glob": "*.rs", "limit": 5}),
            &[],
        ),
        (
            "codex",
            "view_image",
            json!({"path": "a.png", "detail": "original"}),
            json!({"path": "a.png"}),
            &["detail"],
        ),
        ("opencode", "read", json!({"filePath": "a", "offset": 9, "limit": 11}), lines.clone(), &[]),
        (
            "opencode",
            "edit",
            json!({"filePath": "a", "oldString": "x", "newString": "y", "replaceAll": false}),
            json!({"path": "a", "old_string": "x", "new_string": "y", "replace_all": false}),
            &[],
        ),
        (
            "opencode",
            "todo",
            json!({"todos": [{"id": "1", "content": "x", "status": "pending", "priority": "high"}]}),
            json!({"todos": [{"content": "x", "status": "pending", "priority": "high"}]}),
            &["todos[].id"],
        ),
        (
            "opencode",
            "web_fetch",
            json!({"url": "https://a.org", "format": "markdown"}),
            json!({"url": "https://a.org"}),
            &["format"],
        ),
        (
            "Gemini CLI",
            "read",
            json!({"absolute_path": "a", "start_line": 10, "end_line": 20}),
            lines.clone(),
            &[],
        ),
        (
            "Gemini CLI",
            "edit",
            json!({"file_path": "a", "instruction": "Mend it", "old_string": "x", "new_string": "y"}),
            edit.clone(),
            &["instruction"],
        ),
        (
            "Gemini CLI",
            "bash",
            json!({"command": "ls", "description": "Lists", "dir_path": "a", "is_background": false}),
            json!({"command": "cd a && ls", "description": "Lists", "background": false}),
            &[],
        ),
        (
            "Gemini CLI",
            "grep",
            json!({"pattern": "x", "dir_path": "a", "include": "*.rs", "case_sensitive": false}),
            json!({"pattern": "x", "path": "a", "glob": "*.rs", "ignore_case": true}),
            &[],
        ),
        (
            "Gemini CLI",
            "todo",
            json!({"todos": [{"description": "x", "status": "completed"}]}),
            json!({"todos": [{"content": "x", "status": "completed"}]}),
            &[],
        ),
        ("goose", "edit", json!({"path": "a", "before": "x", "after": "y"}), edit, &[]),
        (
            "goose",
            "bash",
            json!({"command": "ls", "timeout_secs": 3}),
            json!({"command": "ls", "timeout_ms": 3000}),
            &[],
        ),
        ("goose", "write", json!({"path": "a", "file_text": "x"}), json!({"path": "a", "content": "x"}), &[]),
        (
            "Cursor",
            "read",
            json!({"target_file": "a", "start_line_one_indexed": 10, "end_line_one_indexed_inclusive": 20, "explanation": "To see"}),
            lines,
            &["explanation"],
        ),
    ]
}

#[test]
fn calls_that_change_something_are_refused_with_all_that_they_would_go_without() {
    for (tool, said, named) in [
        (
            "write",
            json!({"path": "a", "content": "x", "append": true, "dry_run": true}),
            ["`append`", "`dry_run`"],
        ),
        (
            "edit",
            json!({"path": "a", "old_string": "x", "new_string": "y", "replace_al": true, "x": 1}),
            ["`replace_al` (did you mean `replace_all`?)", "`x`"],
        ),
        (
            "edit",
            json!({"path": "a", "edits": [{"old_string": "x", "new_string": "y", "line": 4}], "y": 1}),
            ["`edits[].line`", "`y`"],
        ),
        (
            "bash",
            json!({"command": "make", "sudo": true, "env": {"A": "1"}}),
            ["`sudo`", "`env` (set variables in the command"],
        ),
        ("apply_patch", json!({"patch": "p", "reverse": true, "strip": 1}), ["`reverse`", "`strip`"]),
    ] {
        let problem = accepted(specs().iter().find(|spec| *spec.id == *tool).unwrap(), &said).unwrap_err();
        assert!(
            problem.starts_with("fields ") && named.iter().all(|name| problem.contains(name)),
            "{problem}"
        );
    }
}

#[test]
fn each_other_word_for_a_value_means_one_value_of_some_tool() {
    let schemas = schemas();
    let lists: Vec<&Value> =
        schemas.iter().flat_map(|(_, schema)| objects(schema)).flat_map(Map::values).collect();
    for (value, other) in aliases::all_values() {
        let holds =
            |schema: &&&Value| schema["enum"].as_array().is_some_and(|values| values.contains(&json!(value)));
        let meant = |schema: &&Value| meaning(schema, &json!(other)) == Ok(json!(value));
        assert!(lists.iter().filter(holds).all(meant), "`{other}` is not always `{value}`");
        assert!(lists.iter().any(|schema| holds(&schema)), "no tool has `{value}`");
    }
}

#[test]
fn what_could_mean_several_things_is_an_error() {
    let schema = |id: &str| schemas().into_iter().find(|(name, _)| *name == id).unwrap().1;
    for (tool, said, error) in [
        ("read", json!({"path": "a", "file_path": "b"}), "fields `path` and `file_path` both mean `path`"),
        (
            "read",
            json!({"path": "a", "start_line": 3, "limit": 9}),
            "`start_line` and `limit` both say which lines",
        ),
        (
            "read",
            json!({"path": "a", "start_line": 9, "end_line": 3}),
            "the last line, 3, lies before the first, 9",
        ),
        ("read", json!({"path": "a", "view_range": 3}), "`view_range` must be two line numbers"),
        ("bash", json!({"cmd": "rm x", "script": "ls"}), "both mean `command`; give one of them"),
        ("grep", json!({"pattern": "a", "include": "*.rs", "glob_pattern": "*"}), "both mean `glob`"),
        ("bash", json!({"command": "ls", "cwd": 1}), "field `cwd` is unknown"),
        (
            "edit",
            json!({"path": "a", "edits": [{"old": "x", "old_str": "y"}]}),
            "`edits[0].old` and `edits[0].old_str`",
        ),
    ] {
        let problem = meaning(&schema(tool), &said).unwrap_err();
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

/// Generates arguments that match a schema.
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

/// The same arguments as a careless model writes them: another name for each field that has one, numbers and
/// lists as text.
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

/// A value of the same type.
fn other_than(value: &Value) -> Value {
    match value {
        Value::Bool(yes) => json!(!yes),
        Value::Number(number) => json!(number.as_u64().unwrap_or(0) / 2 + 7_777),
        Value::Array(items) => items.iter().chain([&Value::Null]).cloned().collect(),
        Value::String(text) => json!(format!("{text} other")),
        Value::Null | Value::Object(_) => json!("other"),
    }
}

/// Paths to every number of a schema that has a maximum, as `limit` or `edits[].limit`.
fn maxima(schema: &Value) -> Vec<(String, u64)> {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let maxima = fields.filter_map(|(name, field)| Some((name.clone(), field["maximum"].as_u64()?)));
    maxima.collect()
}

/// Covers all tools at once: every number above its maximum is lowered to it, and the model learns so.
#[test]
fn a_number_above_its_maximum_becomes_the_maximum() {
    let mut met = 0;
    for spec in specs() {
        for (field, most) in maxima(&spec.parameters) {
            met += 1;
            for given in [json!(most + 1), json!(u64::MAX), json!(1e30), json!((most + 1).to_string())] {
                let said = json!({ field.as_str(): given });
                let Understood { arguments, .. } = understood(&spec.parameters, &said).unwrap();
                assert_eq!(
                    bounds::lowered(&spec.parameters, arguments).0[&field],
                    most,
                    "{} {said}",
                    spec.id
                );
                let note = left_out(&spec, &said).unwrap_or_default();
                let told = format!("`{field}` is {most}, the maximum");
                assert!(note.contains(&told), "{} {said}: {note}", spec.id);
            }
            assert_eq!(left_out(&spec, &json!({ field.as_str(): most })), None);
        }
    }
    assert!(met >= 5, "{met}");
}

proptest! {
    #[test]
    fn what_fits_stays_as_it_is((schema, exact) in tool_and_arguments()) {
        prop_assert_eq!(meaning(&schema, &exact), Ok(exact.clone()));
        prop_assert_eq!(check(&schema, &exact, ""), Ok(()));
    }

    #[test]
    fn what_is_written_carelessly_means_the_same((schema, exact) in tool_and_arguments()) {
        prop_assert_eq!(meaning(&schema, &carelessly(&schema, &exact)), Ok(exact.clone()));
    }

    #[test]
    fn one_field_by_two_names_must_be_the_same((schema, exact) in tool_and_arguments(), pick in any::<prop::sample::Index>()) {
        let known = schema["properties"].as_object().unwrap();
        let mut said = exact.as_object().unwrap().clone();
        let others: Vec<_> = aliases::all()
            .filter(|(field, unit, alias)| {
                *unit != Unit::Opposite
                    && said.contains_key(*field)
                    && !known.contains_key(*alias)
                    && aliases::meant(alias, known.keys()).is_some_and(|meant| meant.0 == field)
            })
            .collect();
        prop_assume!(!others.is_empty());
        let (field, _, alias) = others[pick.index(others.len())];
        said.insert(alias.to_owned(), other_than(&said[field]));
        let is_remark = aliases::is_remark(alias) || aliases::is_remark(field);
        prop_assert!(meaning(&schema, &Value::Object(said)).is_err() || field == "context" || is_remark);
    }
}
