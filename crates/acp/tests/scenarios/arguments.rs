//! What follows the method of a client's line: JSON, words, a session, a label. And what every request of a
//! kind needs.

use serde_json::Value;

/// `JSON? word* (in ses_N)? (id=LABEL)?`
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) json: Option<Value>,
    words: Vec<String>,
    session: Option<String>,
    pub(crate) label: Option<String>,
}

impl Arguments {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut rest = text;
        if text.starts_with(['{', '[', '"']) {
            let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
            let value = values.next().ok_or("no value")?.map_err(|error| format!("{text}: {error}"))?;
            arguments.json = Some(value);
            rest = &text[values.byte_offset()..];
        }
        let mut words = rest.split_whitespace();
        while let Some(word) = words.next() {
            if word == "in" {
                arguments.session = Some(words.next().ok_or("`in` needs a session")?.to_owned());
            } else if let Some(label) = word.strip_prefix("id=") {
                arguments.label = Some(label.to_owned());
            } else {
                arguments.words.push(word.to_owned());
            }
        }
        Ok(arguments)
    }

    /// `… 51 times` at the end.
    pub(crate) fn take_times(&mut self) -> Result<usize, String> {
        let end = self.words.iter().position(|word| word == "times");
        let Some(count) = end.and_then(|end| end.checked_sub(1)) else { return Ok(1) };
        let number = self.words.drain(count..).next().unwrap_or_default();
        number.parse().map_err(|_| format!("`{number}` is no number"))
    }

    /// The params of a request: as written, with what every request of its kind needs.
    pub(crate) fn params(self, method: &str) -> Result<Value, String> {
        let mut params = match self.json {
            None => serde_json::Map::new(),
            Some(Value::Object(params)) => params,
            Some(other) => return Err(format!("the parameters of {method} are an object, not {other}")),
        };
        let mut put = |key: &str, value: Value| {
            params.entry(key).or_insert(value);
        };
        let mut words = self.words.into_iter();
        match method {
            "session/set_mode" => put("modeId", words.next().into()),
            "session/set_config_option" => {
                put("configId", words.next().into());
                put("value", words.next().into());
            }
            _ => {}
        }
        if let Some(word) = words.next() {
            return Err(format!("{method} does not know what to do with `{word}`"));
        }
        let of_a_session = (method.starts_with("session/") || method.starts_with("_attache/"))
            && !matches!(method, "session/new" | "session/list");
        if of_a_session {
            put("sessionId", self.session.unwrap_or_else(|| "ses_1".to_owned()).into());
        }
        if matches!(method, "session/new" | "session/load" | "session/resume" | "session/fork") {
            put("cwd", "$ROOT".into());
            put("mcpServers", Value::Array(Vec::new()));
        }
        params.retain(|_, value| value != "$ABSENT");
        Ok(Value::Object(params))
    }
}
