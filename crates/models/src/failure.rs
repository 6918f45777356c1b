//! What a refused or broken request means for the turn: try again, tell the user, or make room. Pure.

use std::time::Duration;

use attache_core::ports::ModelError;
use serde_json::Value;

use crate::diagnose::other_dialect;
use crate::endpoint::Endpoint;
use crate::limits::PROVIDER_WORDS;

/// An answer that is no stream: its status, when to try again, and the first bytes of its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpRefusal<'a> {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: &'a [u8],
}

impl HttpRefusal<'_> {
    /// Whether the server may lack the path rather than the model.
    pub(crate) fn may_lack_the_path(&self) -> bool {
        matches!(self.status, 404 | 405) && !ProviderError::in_body(self.body).names_a_model()
    }

    /// `correction`, if given, states the settings under which the same server does answer.
    pub(crate) fn error(
        &self,
        endpoint: &Endpoint,
        provider_id: &str,
        correction: Option<String>,
    ) -> ModelError {
        let said = ProviderError::in_body(self.body);
        let words = endpoint.words(&said.message);
        let about = match words.is_empty() {
            true => format!("{provider_id} answered with status {}", self.status),
            false => format!("{provider_id} answered with status {}: {words}", self.status),
        };
        match self.status {
            401 | 403 => ModelError::Auth(endpoint.with_hint(&about)),
            400 if said.is_about_the_key() => ModelError::Auth(endpoint.with_hint(&about)),
            // A server does not gain a feature within a moment, so a retry cannot help.
            501 | 505 => said.error(about),
            408 | 409 | 425 | 429 | 500..=599 if !said.is_quota() => {
                ModelError::Transient { message: about, retry_after: self.retry_after.or(said.retry_after) }
            }
            404 | 405 => {
                let hint = correction.unwrap_or_else(|| what_is_missing(&said, endpoint, provider_id));
                said.error(format!("{}. {hint}", about.trim_end_matches('.')))
            }
            _ => said.error(about),
        }
    }
}

/// Most often the model is missing; a server that does not say so may lack the path.
fn what_is_missing(said: &ProviderError, endpoint: &Endpoint, provider_id: &str) -> String {
    if said.names_a_model() {
        return format!("`attache models {provider_id}` shows which models there are");
    }
    format!(
        "If the server has no {}, write {} below `[providers.{provider_id}]` in the configuration; `attache models \
         {provider_id}` shows which models there are",
        endpoint.dialect.path("{model}"),
        other_dialect(endpoint),
    )
}

impl Endpoint {
    fn with_hint(&self, about: &str) -> String {
        format!("{}. {}", about.trim_end_matches('.'), self.key_hint)
    }

    /// A provider's own words: short, on one line and without the key.
    pub(crate) fn words(&self, text: &str) -> String {
        let text = match &self.key {
            Some(key) => key.hide_in(text),
            None => text.to_owned(),
        };
        shortened(&text)
    }

    /// Removes the key from an error whose words come from a stream: decoders know no keys.
    pub(crate) fn without_key(&self, error: ModelError) -> ModelError {
        let Some(key) = &self.key else { return error };
        let hide = |text: String| key.hide_in(&text);
        match error {
            ModelError::Transient { message, retry_after } => {
                ModelError::Transient { message: hide(message), retry_after }
            }
            ModelError::Permanent(text) => ModelError::Permanent(hide(text)),
            ModelError::Auth(text) => ModelError::Auth(hide(text)),
            ModelError::Refused(text) => ModelError::Refused(hide(text)),
            ModelError::Overflow(text) => ModelError::Overflow(hide(text)),
            ModelError::AttachmentRejected(text) => ModelError::AttachmentRejected(hide(text)),
            ModelError::Unreadable(text) => ModelError::Unreadable(hide(text)),
        }
    }
}

/// An error as a provider states it, in an answer or within a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProviderError {
    pub(crate) message: String,
    /// `type` and `code`, joined: vendors use either.
    pub(crate) code: String,
    /// Google puts the time to wait into the body.
    pub(crate) retry_after: Option<Duration>,
}

impl ProviderError {
    /// Finds the message in the shapes that providers use; in any other shape the body itself is the message.
    pub(crate) fn in_body(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Array(items)) => items.first().map(Self::in_value).unwrap_or_default(),
            Ok(value) => Self::in_value(&value),
            Err(_) => Self { message: String::from_utf8_lossy(body).into_owned(), ..Self::default() },
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
        Self { message, code: code.join(" "), retry_after: retry_delay(error) }
    }

    /// For an error within a stream, or one whose status does not tell enough.
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
            "exceed context limit",
            "input token count",
            "too many tokens",
            "model_max_prompt_tokens_exceeded",
            "request_too_large",
        ];
        const ATTACHMENT: &[&str] = &["image", "audio", "pdf", "document", "media", "provided url"];
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
            "cannot fetch",
        ];
        /// How providers name a place in the conversation.
        const CONVERSATION: &[&str] = &["messages.", "messages[", "contents[", "'content'", "input["];
        const PASSING: &[&str] = &[
            "overloaded",
            "slow_down",
            "rate_limit",
            "rate limit",
            "server_error",
            "unavailable",
            "internal_error",
            "api_error",
            "timeout_error",
        ];
        if has(OVERFLOW) {
            ModelError::Overflow(about)
        } else if has(ATTACHMENT) && has(BAD) {
            ModelError::AttachmentRejected(about)
        } else if has(CONVERSATION) && has(BAD) {
            ModelError::Unreadable(about)
        } else if has(PASSING) && !self.is_quota() {
            ModelError::Transient { message: about, retry_after: None }
        } else {
            ModelError::Permanent(about)
        }
    }

    fn names_a_model(&self) -> bool {
        self.message.to_lowercase().contains("model")
    }

    /// Google answers a wrong key with "bad request".
    fn is_about_the_key(&self) -> bool {
        let message = self.message.to_lowercase();
        ["api key not valid", "api key expired", "api key not found"]
            .iter()
            .any(|words| message.contains(words))
    }

    /// The account has no money left, so a retry cannot help.
    fn is_quota(&self) -> bool {
        self.code.contains("insufficient_quota") || self.message.contains("credit balance is too low")
    }
}

/// `details: [{"@type": "…RetryInfo", "retryDelay": "34.4s"}]`
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    seconds.is_finite().then(|| Duration::try_from_secs_f64(seconds.min(86_400.0)).ok()).flatten()
}

/// At most `PROVIDER_WORDS` characters, on one line, without invisible ones.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str) -> ProviderError {
        ProviderError::in_body(body.as_bytes())
    }

    #[test]
    fn google_says_in_the_body_when_to_come_back() {
        let body = |delay: &str| {
            format!(
                r#"{{"error":{{"code":429,"message":"slow","details":[{{"a":1}},{{"retryDelay":"{delay}"}}]}}}}"#
            )
        };
        assert_eq!(said(&body("34.5s")).retry_after, Some(Duration::from_millis(34_500)));
        assert_eq!(said(&body("1e99s")).retry_after, Some(Duration::from_secs(86_400)));
        for wrong in ["-1s", "NaNs", "soon", "3"] {
            assert_eq!(said(&body(wrong)).retry_after, None, "{wrong}");
        }
    }

    #[test]
    fn an_address_that_could_not_be_fetched_is_a_rejected_attachment() {
        let said = said(r#"{"error":{"code":400,"message":"Cannot fetch content from the provided URL."}}"#);
        assert!(matches!(said.error("x".into()), ModelError::AttachmentRejected(_)));
    }

    #[test]
    fn a_wrong_key_is_told_from_other_bad_requests() {
        assert!(
            said(r#"{"error":{"message":"API key not valid. Please pass a valid API key."}}"#)
                .is_about_the_key()
        );
        assert!(!said(r#"{"error":{"message":"Invalid JSON payload received."}}"#).is_about_the_key());
    }
}
