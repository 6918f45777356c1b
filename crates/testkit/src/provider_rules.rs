//! What the four providers refuse, as strict checks of whole request bodies: pairing of calls and results,
//! roles, reasoning items, empty content, marks. Written from their public rules; where two servers of one
//! dialect differ, the stricter counts.

use serde_json::Value;

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;
#[cfg(test)]
mod tests;

/// The dialects by the names they have in the configuration.
pub fn violations(dialect: &str, body: &Value) -> Vec<String> {
    let mut rules = Rules::default();
    match dialect {
        "anthropic" => anthropic::check(body, &mut rules),
        "openai-chat" => openai_chat::check(body, &mut rules),
        "openai-responses" => openai_responses::check(body, &mut rules),
        "gemini" => gemini::check(body, &mut rules),
        other => rules.broken("dialect", format!("there are no rules for {other}")),
    }
    rules.violations
}

/// Collects what was broken, with its place.
#[derive(Debug, Default)]
struct Rules {
    violations: Vec<String>,
}

impl Rules {
    fn broken(&mut self, at: &str, why: impl Into<String>) {
        self.violations.push(format!("{at}: {}", why.into()));
    }

    fn must(&mut self, holds: bool, at: &str, why: &str) {
        if !holds {
            self.broken(at, why);
        }
    }

    fn only_keys(&mut self, value: &Value, allowed: &[&str], at: &str) {
        let Some(fields) = value.as_object() else { return self.broken(at, "must be an object") };
        for key in fields.keys() {
            self.must(allowed.contains(&key.as_str()), at, &format!("unknown key `{key}`"));
        }
    }

    /// A text with something in it besides blanks.
    fn spoken(&mut self, value: Option<&Value>, at: &str) {
        let text = value.and_then(Value::as_str);
        self.must(text.is_some_and(|text| !text.trim().is_empty()), at, "must be a text that is not blank");
    }

    fn name(&mut self, value: Option<&Value>, longest: usize, at: &str) {
        let fits = value.and_then(Value::as_str).is_some_and(|name| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            !name.is_empty() && name.len() <= longest && name.bytes().all(allowed)
        });
        self.must(fits, at, &format!("must be 1 to {longest} of letters, digits, _ and -"));
    }

    fn json_object(&mut self, text: Option<&Value>, at: &str) {
        let parsed = text.and_then(Value::as_str).and_then(|text| serde_json::from_str::<Value>(text).ok());
        self.must(parsed.is_some_and(|value| value.is_object()), at, "must be a JSON object in a string");
    }
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether an address is a data url in base64.
fn is_data_url(url: &str, kind: &str) -> bool {
    url.strip_prefix("data:").is_some_and(|rest| rest.starts_with(kind) && rest.contains(";base64,"))
}

fn is_web_url(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}
