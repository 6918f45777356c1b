//! Finds the JSON in what a model says: alone, within a fence, or between its words.

use serde_json::Value;

/// The value that the text is about. Whole text first, then the last fence that holds JSON, then the first
/// object or array in it.
pub(super) fn json_in(text: &str) -> Option<Value> {
    let text = text.trim();
    serde_json::from_str(text).ok().or_else(|| in_fence(text)).or_else(|| in_between(text))
}

fn in_fence(text: &str) -> Option<Value> {
    let mut found = None;
    let mut inside: Option<String> = None;
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        match (&mut inside, is_fence) {
            (None, true) => inside = Some(String::new()),
            (Some(block), true) => {
                found = serde_json::from_str(block.trim()).ok().or(found);
                inside = None;
            }
            (Some(block), false) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, false) => {}
        }
    }
    found
}

/// Only objects and arrays: a number between words is no answer.
fn in_between(text: &str) -> Option<Value> {
    let mut rest = text;
    // Each try reads on from a brace; a text of nothing but braces must not take for ever.
    for _ in 0..crate::limits::JSON_TRIES {
        let start = rest.find(['{', '['])?;
        let mut values = serde_json::Deserializer::from_str(&rest[start..]).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            return Some(value);
        }
        rest = &rest[start + 1..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn json_is_found_alone_fenced_and_between_words() {
        for (text, value) in [
            (" {\"a\": 1}\n", Some(json!({ "a": 1 }))),
            ("42", Some(json!(42))),
            ("Here it is:\n```json\n{\"a\": [1]}\n```\nAnything else?", Some(json!({ "a": [1] }))),
            ("```\nnot json\n```\n```json\n[2]\n```", Some(json!([2]))),
            ("The answer is {\"a\": {\"b\": 2}}, as asked.", Some(json!({ "a": { "b": 2 } }))),
            ("[see] {\"a\": 1}", Some(json!({ "a": 1 }))),
            ("I count 3 files.", None),
            ("```json\n{\"a\": 1", Some(json!(null)).filter(|_| false)),
            ("", None),
        ] {
            assert_eq!(json_in(text), value, "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_stands_around_an_object_it_is_found(words in "[a-z ,.\n]{0,40}", more in "[a-z ,.\n]{0,40}", number in any::<i64>()) {
            let value = json!({ "n": number, "text": "a } b" });
            prop_assert_eq!(json_in(&format!("{words}{value}{more}")), Some(value.clone()));
            prop_assert_eq!(json_in(&format!("{words}\n```json\n{value}\n```\n{more}")), Some(value));
        }

        #[test]
        fn no_text_is_too_odd(text in "[{}\\[\\]`\"a\n]{0,200}") {
            drop(json_in(&text));
        }
    }
}
