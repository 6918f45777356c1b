//! What files hold at their top, understood or refused with the line.

use proptest::prelude::*;

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
        assert_eq!(parse(file), FrontMatter { fields: Vec::new(), body: file });
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
        ("---\na: {x: 1}\n---\n", 2, "`{…}`"),
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever a file holds, it is taken apart or refused with one of its own lines.
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
                }
            }
            Err(error) => prop_assert!((1..=file.lines().count()).contains(&error.line)),
        }
    }

    /// A text in double quotes comes back as it was.
    #[test]
    fn a_quoted_text_survives(value in "[^\\\\\"\n\r\u{feff}]{0,40}") {
        let file = format!("---\nname: \"{value}\"\n---\n");
        let parsed = parse(&file);
        prop_assert_eq!(parsed.text("name").unwrap().unwrap_or_default(), value);
    }
}
