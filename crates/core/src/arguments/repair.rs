//! Repairs arguments that are nearly JSON, where they can mean only one thing. Pure.

use serde_json::Value;

/// The object that a text plainly means; `None` if it may mean several things or is cut off.
pub fn repaired(text: &str) -> Option<Value> {
    let text = without_fence(text.trim());
    let value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => serde_json::from_str(&JsonRepair::default().run(text)?).ok()?,
    };
    match value {
        Value::Object(_) => Some(value),
        // The model encoded it twice.
        Value::String(inner) => serde_json::from_str(inner.trim()).ok().filter(Value::is_object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

fn without_fence(text: &str) -> &str {
    let fenced = text.strip_prefix("```").and_then(|rest| {
        let (language, rest) = rest.split_once('\n')?;
        let body = rest.trim_end().strip_suffix("```")?;
        matches!(language.trim(), "" | "json" | "JSON").then_some(body.trim())
    });
    fenced.unwrap_or(text)
}

/// Words of other languages for values of JSON.
const WORDS: [(&str, &str); 3] = [("True", "true"), ("False", "false"), ("None", "null")];

#[derive(Default)]
struct JsonRepair {
    written: String,
    /// Whether the current string has a backslash that is no escape of JSON, and one that is.
    has_foreign: bool,
    has_own: bool,
}

impl JsonRepair {
    fn run(mut self, text: &str) -> Option<String> {
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            rest = match letter {
                '"' => self.string(&rest[1..])?,
                // A trailing comma.
                ',' if rest[1..].trim_start().starts_with(['}', ']']) => &rest[1..],
                _ => match WORDS.iter().find(|(word, _)| is_word(rest, word)) {
                    Some((word, meant)) => {
                        self.written.push_str(meant);
                        &rest[word.len()..]
                    }
                    // Takes a whole word: `isTrue` does not contain the word `True`.
                    None if letter.is_alphanumeric() => {
                        let end = rest.find(|letter: char| !letter.is_alphanumeric());
                        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
                        self.written.push_str(word);
                        behind
                    }
                    None => {
                        self.written.push(letter);
                        &rest[letter.len_utf8()..]
                    }
                },
            };
        }
        Some(self.written)
    }

    /// The string that begins before `text`; gives what is behind it.
    fn string<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        self.written.push('"');
        (self.has_foreign, self.has_own) = (false, false);
        let mut letters = text.char_indices();
        while let Some((place, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.written.push('"');
                    // `\new\dir`: nothing tells whether the first is a line end or part of a name.
                    let is_ambiguous = self.has_foreign && self.has_own;
                    return (!is_ambiguous).then(|| &text[place + 1..]);
                }
                '\\' => {
                    let behind = &text[place + 1..];
                    if is_escape(behind) {
                        let (_, escaped) = letters.next()?;
                        self.has_own |= !matches!(escaped, '"' | '\\' | '/');
                        self.written.extend(['\\', escaped]);
                    } else {
                        self.has_foreign = true;
                        self.written.push_str("\\\\");
                    }
                }
                '\n' => self.written.push_str("\\n"),
                '\r' => self.written.push_str("\\r"),
                '\t' => self.written.push_str("\\t"),
                control if control < ' ' => return None,
                letter => self.written.push(letter),
            }
        }
        None
    }
}

fn is_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric()))
}

/// Whether an escape of JSON follows the backslash.
fn is_escape(behind: &str) -> bool {
    match behind.chars().next() {
        Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => true,
        Some('u') => {
            let digits = behind.as_bytes().get(1..5);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        }
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_can_mean_one_thing_only_is_taken_for_it() {
        for (text, meant) in [
            ("{\"a\":\"one\ntwo\tthree\"}", json!({ "a": "one\ntwo\tthree" })),
            (r#"{"a":"\d+\s"}"#, json!({ "a": r"\d+\s" })),
            (r#"{"a":"say \"\d\""}"#, json!({ "a": r#"say "\d""# })),
            (r#"{"a":1,"b":[1,2,],}"#, json!({ "a": 1, "b": [1, 2] })),
            ("```json\n{\"a\":1}\n```", json!({ "a": 1 })),
            ("```\n{\"a\":1,}\n```", json!({ "a": 1 })),
            (r#"{"a":True,"b":False,"c":None}"#, json!({ "a": true, "b": false, "c": null })),
            (r#""{\"a\":\"b\"}""#, json!({ "a": "b" })),
            (r#"{"True":"None, True"}"#, json!({ "True": "None, True" })),
            (r#"{"a":"é\é"}"#, json!({ "a": r"é\é" })),
        ] {
            assert_eq!(repaired(text), Some(meant), "{text}");
        }
    }

    #[test]
    fn what_is_cut_off_or_may_mean_several_things_is_not_guessed() {
        for text in [
            "",
            "text",
            "[1]",
            r#""text""#,
            r#"{"a":"#,
            r#"{"a":"b"#,
            r#"{"a":"C:\new\dir"}"#,
            r#"{"a":"b" "c":1}"#,
            r#"{"a":isTrue}"#,
            "{\"a\":\"\u{1}\"}",
            "{\"a\":\"\\",
        ] {
            assert_eq!(repaired(text), None, "{text}");
        }
    }
}
