//! Identical calls in a row, whatever came of them: a model that goes round in circles is told so, then
//! stopped.

use serde_json::Value;

use crate::limits::{REPEATS_STOPPED, REPEATS_WARNED};

/// Counts identical calls in a row.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    last: Option<(String, Value)>,
    count: u32,
}

impl Repeats {
    /// How often this very call was made in a row, this time included.
    pub(super) fn count(&mut self, tool_name: &str, input: &Value) -> u32 {
        let same = self.last.as_ref().is_some_and(|(name, before)| name == tool_name && before == input);
        if !same {
            self.last = Some((tool_name.to_owned(), input.clone()));
            self.count = 0;
        }
        self.count += 1;
        self.count
    }
}

/// A word to the model; it rides on the result of the call, or on its error.
pub(super) fn warning(repeated: u32) -> Option<String> {
    (repeated >= REPEATS_WARNED)
        .then(|| format!("You made this same call {repeated} times in a row. Try something else."))
}

/// An error with a word to the model behind it, and how many bytes of it are that word.
pub(super) fn warned(text: &str, warning: Option<String>) -> (String, usize) {
    match warning {
        Some(warning) => {
            let note = format!("\n\n{warning}");
            (format!("{text}{note}"), note.len())
        }
        None => (text.to_owned(), 0),
    }
}

/// Why the turn ends; `None` while it goes on.
pub(super) fn stop(tool_name: &str, repeated: u32) -> Option<String> {
    (repeated >= REPEATS_STOPPED).then(|| {
        format!("the model made the same `{tool_name}` call {repeated} times in a row; the turn was stopped")
    })
}
