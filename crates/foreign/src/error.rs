//! Why an agent that lives elsewhere gave no answer, or not all of it.

use attache_core::redact::Redactor;
use thiserror::Error;

use crate::limits::{DETAILS_FIRST, DETAILS_LAST};

/// What happened, for the user; and what only who repairs it wants to read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct ForeignError {
    /// In words, with what to do where that is known.
    pub message: String,
    /// A traceback, a body of an answer: goes to the log and with the failed prompt, never into the
    /// conversation.
    pub details: Option<String>,
    /// Whose fault it is.
    pub blame: Blame,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The agent's, or the way to it.
    Agent,
    /// Credentials are missing or wrong.
    Credentials,
}

impl ForeignError {
    /// The agent's fault.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), details: None, blame: Blame::Agent }
    }

    /// With what only who repairs it wants to read.
    #[must_use]
    pub fn with_details(self, details: impl Into<String>) -> Self {
        Self { details: Some(details.into()), ..self }
    }

    /// Everything, for whoever has to repair it, without what looks like a secret.
    pub(crate) fn in_full(&self) -> String {
        let details = self.details.as_deref().unwrap_or_default();
        let text =
            if details.is_empty() { self.message.clone() } else { format!("{}\n\n{details}", self.message) };
        Redactor::new(None).text(&text)
    }

    /// The message as it is told: its words may be the agent's own, or those of its server.
    pub(crate) fn shown_message(&self) -> String {
        Redactor::new(None).text(&self.message)
    }

    /// The details as they are told: without what looks like a secret, their beginning and their end.
    pub(crate) fn shown_details(&self) -> Option<String> {
        let details = self.details.as_deref().filter(|details| !details.trim().is_empty())?;
        let text = Redactor::new(None).text(details);
        let (first, last) =
            (text.floor_char_boundary(DETAILS_FIRST), text.len().saturating_sub(DETAILS_LAST));
        let last = text.ceil_char_boundary(last);
        Some(match first < last {
            true => format!("{}\n…\n{}", &text[..first], &text[last..]),
            false => text,
        })
    }

    /// Credentials are missing or wrong.
    pub fn of_credentials(message: impl Into<String>) -> Self {
        Self { message: message.into(), details: None, blame: Blame::Credentials }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_told_of_a_failure_looks_like_a_secret() {
        let error =
            ForeignError::new("it said 500: SECRET_KEY=abcd1234 boom").with_details("password=hunter22");
        for told in [error.shown_message(), error.in_full(), error.shown_details().unwrap()] {
            assert!(!told.contains("abcd1234") && !told.contains("hunter22"), "{told}");
        }
        assert!(error.shown_message().contains("it said 500") && error.shown_message().ends_with("boom"));
    }
}
