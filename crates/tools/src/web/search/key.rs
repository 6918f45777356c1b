//! A key for a search service. It can be sent and searched for, but not printed.

use std::fmt;
use std::sync::Arc;

use reqwest::header::HeaderValue;

use super::SearchError;

/// A key that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SearchKey(Arc<str>);

impl SearchKey {
    /// `None` if the key is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// The value of its header, after the scheme; marked so that it is not logged.
    pub(super) fn header(&self, scheme: &str) -> Result<HeaderValue, SearchError> {
        let value = HeaderValue::from_str(&format!("{scheme}{}", self.0));
        let mut value = value.map_err(|_| SearchError::BadKey)?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// The text without the key, in case a service repeated it.
    pub(super) fn hide_in(&self, text: &str) -> String {
        // Short "keys" of gateways are words that may occur in any text.
        if self.0.len() < 8 { text.to_owned() } else { text.replace(&*self.0, "[key]") }
    }
}

impl fmt::Debug for SearchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SearchKey")
    }
}
