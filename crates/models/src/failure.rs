//! What a refused or broken request means for the turn: try again, tell the user, or make room. Pure.

use std::time::Duration;

use attache_core::ports::ModelError;
use serde_json::Value;

use crate::endpoint::Endpoint;
use crate::limits::PROVIDER_WORDS;

/// An answer that is no stream: its status, when to come back, and the first bytes of its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal<'a> {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: &'a [u8],
}

impl Refusal<'_> {
    pub(crate) fn error(&self, endpoint: &Endpoint, provider_id: &str) -> ModelError {
        let said = Said::in_body(self.body);
        let words = endpoint.words(&said.message);
        let about = match words.is_empty() {
            true => format!("{provider_id} answered with status {}", self.status),
            false => format!("{provider_id} answered with status {}: {words}", self.status),
        };
        match self.status {
            401 | 403 => ModelError::Auth(format!("{about}. {}", endpoint.key_hint)),
            408 | 409 | 425 | 429 | 500..=599 if !said.is_quota() => {
                ModelError::Transient { message: about, retry_after: self.retry_after }
            }
            _ => said.error(about),
        }
    }
}

impl Endpoint {
    /// A provider's own words, short, on one line and without the key.
    pub(crate) fn words(&self, text: &str) -> String {
        let text = match &self.key {
            Some(key) => key.hide_in(text),
            None => text.to_owned(),
        };
        shortened(&text)
    }
}

/// An error as a provider states it, in an answer or within a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) message: String,
    /// `type` and `code`, joined: vendors use either.
    pub(crate) code: String,
}

impl Said {
    /// Finds the message in the shapes providers use; a body of another shape is the message itself.
    pub(crate) fn in_body(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Array(items)) => items.first().map(Self::in_value).unwrap_or_default(),
            Ok(value) => Self::in_value(&value),
            Err(_) => Self { message: String::from_utf8_lossy(body).into_owned(), code: String::new() },
        }
    }

    pub(crate) fn in_value(value: &Value) -> Self {
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let text = |key: &str| match error.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let message = match error {
            Value::String(text) => text.clone(),
            _ => text("message").or_else(|| text("detail")).unwrap_or_else(|| error.to_string()),
        };
        let code = [text("type"), text("code"), text("status")].into_iter().flatten().collect::<Vec<_>>();
        Self { message, code: code.join(" ") }
    }

    /// For an error within a stream, or one whose status says nothing.
    pub(crate) fn error(&self, about: String) -> ModelError {
        let has = |words: &[&str]| {
            let (message, code) = (self.message.to_lowercase(), self.code.to_lowercase());
            words.iter().any(|word| message.contains(word) || code.contains(word))
        };
        const OVERFLOW: &[&str] = &[
            "context_length_exceeded",
            "context length",
            "context window",
            "prompt is too long",
            "exceed_context_size",
            "maximum context",
            "input token count",
            "too many tokens",
            "model_max_prompt_tokens_exceeded",
        ];
        const ATTACHMENT: &[&str] = &["image", "audio", "pdf", "document", "media"];
        const BAD: &[&str] = &[
            "invalid",
            "could not process",
            "unable to process",
            "unsupported",
            "not supported",
            "does not support",
            "too large",
            "exceed",
            "failed to",
            "corrupt",
            "must be",
        ];
        const PASSING: &[&str] = &[
            "overloaded",
            "rate_limit",
            "rate limit",
            "server_error",
            "unavailable",
            "internal_error",
            "api_error",
        ];
        if has(OVERFLOW) {
            ModelError::Overflow(about)
        } else if has(ATTACHMENT) && has(BAD) {
            ModelError::AttachmentRejected(about)
        } else if has(PASSING) && !self.is_quota() {
            ModelError::Transient { message: about, retry_after: None }
        } else {
            ModelError::Permanent(about)
        }
    }

    /// No money left: trying again is no help.
    fn is_quota(&self) -> bool {
        self.code.contains("insufficient_quota") || self.message.contains("credit balance is too low")
    }
}

/// At most `PROVIDER_WORDS` characters, on one line, nothing invisible.
pub(crate) fn shortened(text: &str) -> String {
    let mut short = String::new();
    let mut blank = false;
    for (count, character) in text.trim().chars().enumerate() {
        if count == PROVIDER_WORDS {
            short.push('…');
            break;
        }
        let is_blank = character.is_whitespace() || character.is_control();
        if !is_blank {
            short.push(character);
        } else if !blank {
            short.push(' ');
        }
        blank = is_blank;
    }
    short
}
