//! Answers that end in an error: the provider's own words, and whether a retry makes sense.

use std::time::Duration;

use attache_core::ports::ModelError;
use serde_json::Value;

use super::ResponsesDecoder;
use crate::failure::{ProviderError, shortened};

impl ResponsesDecoder {
    /// An error event, or a response that failed.
    pub(super) fn failed(&self, data: &[u8]) -> ModelError {
        let event = serde_json::from_slice::<Value>(data).unwrap_or_default();
        let holder = event.get("response").unwrap_or(&event);
        let told = |key: &str| holder.get(key).is_some_and(|value| !value.is_null());
        if !told("error") && !told("message") {
            return ModelError::Permanent(format!("{} gave up without a reason", self.provider_id));
        }
        let said = ProviderError::in_value(holder);
        let about = format!("{} reported an error: {}", self.provider_id, shortened(&said.message));
        if said.code.contains("invalid_prompt") && said.message.contains("policy") {
            return ModelError::Refused(about);
        }
        match said.error(about) {
            ModelError::Transient { message, retry_after: None } => {
                ModelError::Transient { message, retry_after: wait_in(&said.message) }
            }
            other => other,
        }
    }

    /// Data between events that is no event.
    pub(super) fn garbage(&self, data: &[u8]) -> ModelError {
        let said = ProviderError::in_body(data);
        said.error(format!("{} sent no event of its kind: {}", self.provider_id, shortened(&said.message)))
    }
}

/// Finds the wait in `Please try again in 11.054s`: within a stream no header can say it.
fn wait_in(message: &str) -> Option<Duration> {
    let message = message.to_lowercase();
    let (_, rest) = message.split_once("try again in ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = rest[..end].parse().ok()?;
    let unit = rest[end..].trim_start();
    let seconds = if unit.starts_with("ms") {
        number / 1000.0
    } else if unit.starts_with('s') {
        number
    } else {
        return None;
    };
    // Users do not wait longer than a day, and a larger number may not fit a `Duration`.
    Duration::try_from_secs_f64(seconds.min(86_400.0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_read_from_the_words() {
        let wait = |text: &str| wait_in(text);
        assert_eq!(
            wait("Rate limit reached. Please try again in 11.054s. Visit"),
            Some(Duration::from_millis(11_054))
        );
        assert_eq!(wait("Try again in 28ms."), Some(Duration::from_millis(28)));
        assert_eq!(wait("try again in 35 seconds."), Some(Duration::from_secs(35)));
        for none in ["try again in 2 hours", "try again in", "try again in s", "try again in 1.2.3s", "later"]
        {
            assert_eq!(wait(none), None, "{none}");
        }
    }
}
