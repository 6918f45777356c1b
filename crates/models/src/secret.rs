//! A key on its way to a provider. Code can send it and search for it, but not print it.

use std::fmt;
use std::sync::Arc;

/// A text that we never show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// `None` for a key that is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// For the one header that sends it and the one file that keeps it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text without the key, in case a server repeated it.
    pub fn hide_in(&self, text: &str) -> String {
        // Short "keys" of local servers are ordinary words that any text may contain.
        if self.0.len() < 8 { text.to_owned() } else { text.replace(&*self.0, "[key]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
