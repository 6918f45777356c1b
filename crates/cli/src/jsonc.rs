//! JSON as editors write it: with comments, and a comma after the last entry. Reads it, and inserts entries
//! into objects without changing any other byte.

use std::ops::Range;

use serde_json::Value;

/// Why we leave a text alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsoncError {
    #[error("line {line}: {what}")]
    Invalid { line: usize, what: String },
    #[error("`{0}` is not an object in this file")]
    NoObject(String),
}

/// The same text as plain JSON: replaces comments and trailing commas by blanks, so that every byte keeps its
/// position.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = text.as_bytes().to_vec();
    let (mut at, mut in_string, mut comma) = (0, false, None);
    while at < plain.len() {
        let rest = &plain[at..];
        match plain[at] {
            b'\\' if in_string => at += 1,
            b'"' => {
                in_string = !in_string;
                comma = None;
            }
            _ if in_string => {}
            b'/' if rest.starts_with(b"//") || rest.starts_with(b"/*") => {
                let end: &[u8] = if rest[1] == b'/' { b"\n" } else { b"*/" };
                let found = rest[2..].windows(end.len()).position(|window| window == end);
                let length =
                    found.map_or(rest.len(), |found| found + 2 + if rest[1] == b'/' { 0 } else { 2 });
                for byte in plain[at..at + length].iter_mut().filter(|byte| **byte != b'\n') {
                    *byte = b' ';
                }
                at += length.saturating_sub(1);
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    plain[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The entry below these names, if there is one.
pub(crate) fn get(text: &str, path: &[&str]) -> Result<Option<Value>, JsoncError> {
    let plain = checked(text)?;
    let value: Value = serde_json::from_str(&plain).map_err(|error| invalid(&error))?;
    Ok(path.iter().try_fold(&value, |value, name| value.get(name)).cloned())
}

/// Inserts an entry into the object that `path` leads to, and creates missing objects on the way. Keeps all
/// other text byte for byte. An empty text counts as an empty object. The name must not exist there yet.
pub(crate) fn insert(text: &str, path: &[&str], name: &str, value: &Value) -> Result<String, JsoncError> {
    let text = if text.trim().is_empty() { "{\n}\n" } else { text };
    let plain = checked(text)?;
    let mut object = JsoncObject::read(&plain, first_value(&plain))?;
    for (depth, step) in path.iter().enumerate() {
        let Some(member) = object.members.iter().find(|member| member.name == *step) else {
            let inner =
                path[depth + 1..].iter().rev().fold(entry(name, value), |inner, step| entry(step, &inner));
            return Ok(object.with(text, step, &inner));
        };
        if plain.as_bytes().get(member.value.start) != Some(&b'{') {
            return Err(JsoncError::NoObject((*step).to_owned()));
        }
        object = JsoncObject::read(&plain, member.value.start)?;
    }
    Ok(object.with(text, name, value))
}

fn entry(name: &str, value: &Value) -> Value {
    Value::Object([(name.to_owned(), value.clone())].into_iter().collect())
}

/// Plain JSON that parses and whose outermost value is an object.
fn checked(text: &str) -> Result<String, JsoncError> {
    let plain = plain(text);
    let value: Value = serde_json::from_str(&plain).map_err(|error| invalid(&error))?;
    match value {
        Value::Object(_) => Ok(plain),
        _ => Err(JsoncError::Invalid { line: 1, what: "the settings are no object".to_owned() }),
    }
}

fn invalid(error: &serde_json::Error) -> JsoncError {
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or_default().to_owned();
    JsoncError::Invalid { line: error.line(), what }
}

fn first_value(plain: &str) -> usize {
    plain.len() - plain.trim_start().len()
}

/// The positions of an object and its entries in the text.
#[derive(Debug)]
struct JsoncObject {
    open: usize,
    close: usize,
    members: Vec<JsoncMember>,
}

#[derive(Debug)]
struct JsoncMember {
    name: String,
    key: Range<usize>,
    value: Range<usize>,
}

impl JsoncObject {
    /// `plain` is valid JSON, so we need to tell apart only brackets and strings.
    fn read(plain: &str, open: usize) -> Result<Self, JsoncError> {
        let bytes = plain.as_bytes();
        let mut members = Vec::new();
        let mut at = skip_blanks(bytes, open + 1);
        while bytes.get(at) == Some(&b'"') {
            let key = at..string_end(bytes, at);
            let start = skip_blanks(bytes, skip_blanks(bytes, key.end) + 1);
            let value = start..value_end(bytes, start);
            at = skip_blanks(bytes, value.end);
            if bytes.get(at) == Some(&b',') {
                at = skip_blanks(bytes, at + 1);
            }
            let name = serde_json::from_str(&plain[key.clone()]).map_err(|error| invalid(&error))?;
            members.push(JsoncMember { name, key, value });
        }
        Ok(Self { open, close: at, members })
    }

    /// The text with one more entry, after all others.
    fn with(&self, text: &str, name: &str, value: &Value) -> String {
        let outer = indentation(text, self.open);
        let inner = match self.members.last() {
            Some(last) if starts_line(text, last.key.start) => indentation(text, last.key.start).to_owned(),
            _ => format!("{outer}  "),
        };
        let written = serde_json::to_string_pretty(value).unwrap_or_default();
        let written = written.replace('\n', &format!("\n{inner}"));
        let new = format!("\n{inner}{}: {written}", Value::from(name));
        // Insert after everything else: a comment may follow the last entry.
        let end = text[..self.close].trim_end().len();
        let comma = self.members.last().map(|last| last.value.end).filter(|at| !has_comma(text, *at..end));
        let closing = if text[end..self.close].contains('\n') { String::new() } else { format!("\n{outer}") };
        match comma {
            Some(at) => [&text[..at], ",", &text[at..end], &new, &closing, &text[end..]].concat(),
            None => [&text[..end], &new, &closing, &text[end..]].concat(),
        }
    }
}

/// Whether there is a comma outside of comments.
fn has_comma(text: &str, range: Range<usize>) -> bool {
    // A comma before nothing would count as a trailing one, so add a value; then only comments become blanks.
    plain(&format!("{} 0", &text[range])).contains(',')
}

fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    from + bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn value_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut open) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                if open == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => open += 1,
            b'}' | b']' if open <= 1 => return if open == 0 { at } else { at + 1 },
            b'}' | b']' => open -= 1,
            b',' if open == 0 => return at,
            byte if open == 0 && byte.is_ascii_whitespace() => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The blanks at the beginning of the line with this position.
fn indentation(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..at];
    &line[..line.len() - line.trim_start().len()]
}

fn starts_line(text: &str, at: usize) -> bool {
    text[..at].rsplit('\n').next().is_some_and(|before| before.trim().is_empty()) && text[..at].contains('\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn added(text: &str) -> String {
        insert(text, &["agent_servers"], "attache", &json!({"command": "attache"})).unwrap()
    }

    #[test]
    fn comments_commas_and_order_stay() {
        let before = "// mine\n{\n    \"theme\": \"One\", // nice, really\n    /* a */ \"agent_servers\": {\n        \"goose\": { \"command\": \"goose\" } // keep\n    },\n}\n";
        assert_eq!(
            added(before),
            "// mine\n{\n    \"theme\": \"One\", // nice, really\n    /* a */ \"agent_servers\": {\n        \"goose\": { \"command\": \"goose\" }, // keep\n        \"attache\": {\n          \"command\": \"attache\"\n        }\n    },\n}\n"
        );
    }

    #[test]
    fn what_is_missing_is_made() {
        assert_eq!(
            added(""),
            "{\n  \"agent_servers\": {\n    \"attache\": {\n      \"command\": \"attache\"\n    }\n  }\n}\n"
        );
        for text in [
            "{}",
            " {\n}",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{ // x\n}",
            "{\"agent_servers\":{}}",
            "{\"a\": [1, {\"b\": \"}\"}], // ,\n}",
        ] {
            let text = added(text);
            assert_eq!(
                get(&text, &["agent_servers", "attache", "command"]).unwrap(),
                Some(json!("attache")),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_object_or_no_json_is_left_alone() {
        let name = "agent_servers";
        assert_eq!(
            insert("{\"agent_servers\": []}", &[name], "a", &json!(1)),
            Err(JsoncError::NoObject(name.to_owned()))
        );
        assert!(matches!(insert("[]", &[name], "a", &json!(1)), Err(JsoncError::Invalid { line: 1, .. })));
        assert!(matches!(
            insert("{\n\"a\" 1}", &[name], "a", &json!(1)),
            Err(JsoncError::Invalid { line: 2, .. })
        ));
    }

    /// An object as text, with blanks and comments in all possible places.
    fn document() -> impl Strategy<Value = String> {
        let blank = prop::sample::select(vec!["", " ", "\n", "\n\t", "// a, \"}\n", "/* { , */"]);
        let leaf = prop::sample::select(vec!["1", "true", "\"a\\\"},{\"", "null", "[]", "{}", "\"//\""])
            .prop_map(str::to_owned);
        let value = leaf.prop_recursive(3, 24, 4, move |inner| {
            let item = (blank.clone(), inner, blank.clone())
                .prop_map(|(one, inner, two)| format!("{one}{inner}{two}"));
            let names = prop::sample::subsequence(vec!["a", "agent_servers", "b\\n", "é"], 0..4);
            (names, prop::collection::vec(item.clone(), 4), blank.clone(), any::<bool>()).prop_map(
                |(names, items, end, last)| {
                    let members: Vec<_> = names
                        .iter()
                        .zip(&items)
                        .map(|(name, item)| format!("{end}\"{name}\"{end}:{item}"))
                        .collect();
                    let comma = if last && !members.is_empty() { "," } else { "" };
                    format!("{{{}{comma}{end}}}", members.join(","))
                },
            )
        });
        value.prop_filter("objects only", |text| text.starts_with('{'))
    }

    proptest! {
        #[test]
        fn an_entry_is_added_and_nothing_else_changes(text in document()) {
            let before: Value = serde_json::from_str(&plain(&text)).unwrap();
            match insert(&text, &["agent_servers"], "attache", &json!([1])) {
                Ok(after) => {
                    let mut read: Value = serde_json::from_str(&plain(&after)).unwrap();
                    prop_assert_eq!(read["agent_servers"].as_object_mut().unwrap().remove("attache"), Some(json!([1])));
                    if before.get("agent_servers").is_none() {
                        read.as_object_mut().unwrap().remove("agent_servers");
                    }
                    prop_assert_eq!(read, before);
                    let mut rest = after.chars();
                    prop_assert!(text.chars().all(|wanted| rest.any(|found| found == wanted)), "{} {}", text, after);
                }
                Err(error) => prop_assert!(!before["agent_servers"].is_object(), "{error}: {}", text),
            }
        }
    }
}
