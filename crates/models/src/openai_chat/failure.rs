//! Errors within a stream: the provider's own words, and what they mean for the turn.

use attache_core::ports::ModelError;
use serde_json::Value;

use crate::failure::{ProviderError, shortened};

/// An error object, or the words themselves.
pub(super) fn in_answer(provider_id: &str, error: &str) -> ModelError {
    let Ok(error) = serde_json::from_str::<Value>(error) else {
        return in_body(provider_id, error.as_bytes());
    };
    let mut said = ProviderError::in_value(&error);
    // A gateway wraps the words of the provider behind it.
    let raw = error.get("metadata").and_then(|metadata| metadata.get("raw"));
    match raw {
        Some(Value::String(raw)) => said.message = format!("{}: {raw}", said.message),
        Some(raw @ (Value::Object(_) | Value::Array(_))) => said.message = format!("{}: {raw}", said.message),
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => {}
    }
    failed(provider_id, &said)
}

/// Bytes that are no chunk.
pub(super) fn in_body(provider_id: &str, body: &[u8]) -> ModelError {
    failed(provider_id, &ProviderError::in_body(body))
}

/// The answer ended with an error and no message.
pub(super) fn ended(provider_id: &str, reason: &str) -> ModelError {
    let message = format!("{provider_id} broke off its answer: {}", shortened(reason));
    ModelError::Transient { message, retry_after: None }
}

fn failed(provider_id: &str, said: &ProviderError) -> ModelError {
    let about = format!("{provider_id} reported an error: {}", shortened(&said.message));
    match said.error(about) {
        // Gateways put the status into the code.
        ModelError::Permanent(message) if is_passing(said) => {
            ModelError::Transient { message, retry_after: None }
        }
        error => error,
    }
}

fn is_passing(said: &ProviderError) -> bool {
    let mut codes = said.code.split(' ').filter_map(|code| code.parse::<u16>().ok());
    let passing = codes.any(|code| matches!(code, 408 | 409 | 425 | 429 | 500..=599));
    passing && !said.code.contains("insufficient_quota")
}
