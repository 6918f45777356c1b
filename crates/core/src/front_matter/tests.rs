//! What files hold at their top, understood or refused with the line.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn parse(text: &str) -> FrontMatter<'_> {
    FrontMatter::parse(text).unwrap()
}

fn text(value: &str) -> FrontValue {
    FrontValue::Text(value.to_owned())
}

fn list(items: &[&str]) -> FrontValue {
    FrontValue::List(items.iter().map(|item| (*item).to_owned()).collect())
}

#[test]
fn what_people_write_is_understood() {
    let cases = [
        ("name: pdf", text("pdf")),
        ("name: \"a: b\" # why", text("a: b")),
        ("name: 'it''s'", text("it's")),
        ("name: Use when: the user asks", text("Use when: the user asks")),
        ("name: C# and F#  # a comment", text("C# and F#")),
        ("name: \"a \\\"b\\\"\\n\"", text("a \"b\"\n")),
        ("name: true", text("true")),
        ("name:", text("")),
        ("name: # nothing", text("")),
        ("name: begins here\n  and goes on\n  here", text("begins here and goes on here")),
        ("name:\n  below it", text("below it")),
        ("name: |\n  one\n    two\n\n  three\n", text("one\n  two\n\nthree")),
        ("name: >-\n  one\n  two\n\n  three", text("one two\n\nthree")),
        ("name: [read, \"a, b\", 'c']", list(&["read", "a, b", "c"])),
        ("name: [read,\n  write]", list(&["read", "write"])),
        ("name: []", list(&[])),
        ("name: [file] [line]", text("[file] [line]")),
        ("name:\n  - read\n  - \"x: y\" # why", list(&["read", "x: y"])),
        ("name:\n- read\n\n# more\n- write", list(&["read", "write"])),
        ("name:\n  version: 1\n  more: 2", FrontValue::Nested("  version: 1\n  more: 2".to_owned())),
        ("name:\n  \"*\": 1\n  b: 2", FrontValue::Nested("  \"*\": 1\n  b: 2".to_owned())),
        ("name:\n  - a: 1\n    b: 2", FrontValue::Nested("  - a: 1\n    b: 2".to_owned())),
        ("\"name\": quoted", text("quoted")),
    ];
    for (block, expected) in cases {
        let file = format!("---\nother: x\n{block}\nlast: y\n---\nbody\n");
        let parsed = FrontMatter::parse(&file).unwrap_or_else(|error| panic!("{block}: {error}"));
        assert_eq!(parsed.field("name").unwrap().value, expected, "{block}");
        assert_eq!(parsed.field("name").unwrap().line, 3);
        assert_eq!(parsed.text("last").unwrap(), Some("y"), "{block}");
        assert_eq!(parsed.body, "body\n");
    }
}

#[test]
fn a_file_without_a_block_is_all_body() {
    for file in ["", "body", "# Title\n---\nx: y\n---\n", "----\nx: y\n----\n", "\n---\nx: y\n---\n"] {
        assert_eq!(parse(file), FrontMatter { body: file, ..FrontMatter::default() });
    }
    assert_eq!(parse("\u{feff}---\r\nx: y\r\n---\r\nbody").text("x").unwrap(), Some("y"));
    assert_eq!(parse("---\n---").body, "");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let cases = [
        ("---\nname: x\n", 1, "no end"),
        ("---\nname: x\njust words\n---\n", 3, "not a key"),
        ("---\n  name: x\n---\n", 2, "a key is expected"),
        ("---\n- x\n---\n", 2, "a key is expected"),
        ("---\na: 1\n\n# x\na: 2\n---\n", 5, "twice"),
        ("---\na: \"x\n---\n", 2, "quote"),
        ("---\na: 1\nb: [x\n---\n", 3, "`]`"),
    ];
    for (file, line, problem) in cases {
        let error = FrontMatter::parse(file).unwrap_err();
        assert!(error.line == line && error.problem.contains(problem), "{file}: {error}");
    }
    let parsed = parse("---\na: [x]\nb:\n  c: d\ne: x, y ,\n---\n");
    assert_eq!(parsed.text("a").unwrap_err().line, 2);
    assert_eq!(parsed.list("b").unwrap_err().line, 3);
    assert_eq!(parsed.list("e").unwrap(), Some(vec!["x", "y"]));
    assert_eq!((parsed.text("z").unwrap(), parsed.list("z").unwrap()), (None, None));
}

/// The value of `name` as JSON.
fn nested(block: &str) -> Result<Value, FrontMatterError> {
    let file = format!("---\nother: x\n{block}\nlast: y\n---\nbody\n");
    let parsed = FrontMatter::parse(&file)?;
    assert_eq!(parsed.text("last").unwrap(), Some("y"), "{block}");
    Ok(parsed.node("name")?.unwrap().to_json())
}

#[test]
fn values_in_values_are_read_when_they_are_asked_for() {
    let cases = [
        ("name: 7", json!(7)),
        ("name: \"7\"", json!("7")),
        ("name: -1.5", json!(-1.5)),
        ("name: inf", json!("inf")),
        ("name: true # why", json!(true)),
        ("name:", json!(null)),
        (
            "name:\n  a: 1\n  b:\n    c: [x, \"y, z\"]\n  d: |\n    one\n    two",
            json!({ "a": 1, "b": { "c": ["x", "y, z"] }, "d": "one\ntwo" }),
        ),
        ("name:\n- a\n-\n  b: 1", json!(["a", { "b": 1 }])),
        (
            "name:\n  - permission: edit\n    pattern: \"*\" # all\n\n    action: deny\n  # more\n  - {permission: bash, action: ask}",
            json!([
                { "permission": "edit", "pattern": "*", "action": "deny" },
                { "permission": "bash", "action": "ask" },
            ]),
        ),
        ("name:\n  list:\n  - a\n  - b\n  more: 1", json!({ "list": ["a", "b"], "more": 1 })),
        (
            "name: {\"type\": \"object\", \"a\": [1, {\"b\": null}],\n  \"c\": \"\\u00e9\\n\"}",
            json!({ "type": "object", "a": [1, { "b": null }], "c": "é\n" }),
        ),
        ("name: {a: b c, 'd': e} # why", json!({ "a": "b c", "d": "e" })),
        ("name: [a,\n  b]", json!(["a", "b"])),
    ];
    for (block, expected) in cases {
        assert_eq!(nested(block).unwrap_or_else(|error| panic!("{block}: {error}")), expected, "{block}");
    }
}

#[test]
fn what_is_wrong_inside_a_value_is_named_with_its_own_line() {
    let deep = format!("name: {}", "[".repeat(100));
    let cases = [
        ("name:\n  a: 1\n   b: 2", 5, "indented"),
        ("name:\n  a: 1\n b: 2", 5, "a key is expected"),
        ("name:\n  a: 1\n  a: 2", 5, "twice"),
        ("name:\n  - a\n  b: 2", 5, "an item is expected"),
        ("name: {a: 1,\n  b}", 4, "`:`"),
        ("name: {a: 1", 3, "is expected"),
        ("name:\n  - {a: \"x}", 4, "quote"),
        ("name: {a: 1} b", 3, "follows"),
        (&deep, 3, ""),
    ];
    for (block, line, problem) in cases {
        let error = nested(block).unwrap_err();
        assert!(error.line == line && error.problem.contains(problem), "{block}: {error}");
    }
    // Broken YAML in a key that no caller reads does no harm.
    assert!(FrontMatter::parse("---\nname: {a: 1\nx: y\n---\n").is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever a file holds, the reader splits it or names one of its lines in the error.
    #[test]
    fn nothing_panics_and_lines_are_of_the_file(
        file in "(---\n)?([ \t\\-a-c:#'\"|>\\[\\]{},\\\\é\u{feff}\r\n]|: |- |---\n){0,60}(---\n)?.{0,5}"
    ) {
        match FrontMatter::parse(&file) {
            Ok(parsed) => {
                prop_assert!(file.ends_with(parsed.body));
                for field in parsed.fields() {
                    prop_assert!((2..=file.lines().count()).contains(&field.line));
                    drop((parsed.text(&field.key), parsed.list(&field.key)));
                    match parsed.node(&field.key) {
                        Ok(node) => drop(node.map(|node| node.to_json())),
                        Err(error) => prop_assert!((2..=file.lines().count()).contains(&error.line)),
                    }
                }
            }
            Err(error) => prop_assert!((1..=file.lines().count()).contains(&error.line)),
        }
    }

    /// A text in double quotes survives writing and reading.
    #[test]
    fn a_quoted_text_survives(value in "[^\\\\\"\n\r\u{feff}]{0,40}") {
        let file = format!("---\nname: \"{value}\"\n---\n");
        let parsed = parse(&file);
        prop_assert_eq!(parsed.text("name").unwrap().unwrap_or_default(), value);
    }
}
