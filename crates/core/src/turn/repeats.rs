//! Identical calls in a row with the same result: a model that repeats itself is told so, then stopped. A model
//! that waits for something may repeat a call, because its result changes.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::limits::{REPEATS_STOPPED, REPEATS_WARNED};
use crate::ports::tool::ToolOutcome;

/// Counts identical calls in a row.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    last: Option<(String, Value)>,
    count: u32,
    /// The result of the last of them; `None` if none has run.
    result: Option<ResultDigest>,
}

/// How often a call was made in a row, as far as this is known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repetition {
    times: u32,
    /// The result of the previous one.
    before: Option<ResultDigest>,
}

/// The digest of a call's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultDigest(u64);

impl ResultDigest {
    pub(super) fn of(outcome: &ToolOutcome) -> Self {
        let mut hasher = DefaultHasher::new();
        match outcome {
            ToolOutcome::Output { data, .. } => data.hash(&mut hasher),
            ToolOutcome::Picture { found, .. } => found.bytes.hash(&mut hasher),
            ToolOutcome::Error { text, .. } => text.hash(&mut hasher),
        }
        Self(hasher.finish())
    }
}

impl Repetition {
    /// A call about which nothing is known.
    pub(super) const FIRST: Self = Self { times: 1, before: None };

    /// How often exactly this call was made in a row without a new result, this time included.
    pub(super) fn times(self, result: Option<ResultDigest>) -> u32 {
        match (self.before, result) {
            (Some(before), Some(result)) if before != result => 1,
            _ => self.times,
        }
    }
}

impl Repeats {
    /// Counts a call of the model.
    pub(super) fn count(&mut self, tool_name: &str, input: &Value) -> Repetition {
        if !self.is_last(tool_name, input) {
            self.last = Some((tool_name.to_owned(), input.clone()));
            self.count = 0;
            self.result = None;
        }
        self.count += 1;
        Repetition { times: self.count, before: self.result }
    }

    /// Records the result of a call that ran. A call that did not run leaves the count unchanged.
    pub(super) fn came_to(&mut self, tool_name: &str, input: &Value, result: ResultDigest) {
        if !self.is_last(tool_name, input) {
            return;
        }
        if self.result.is_some_and(|before| before != result) {
            self.count = 1;
        }
        self.result = Some(result);
    }

    fn is_last(&self, tool_name: &str, input: &Value) -> bool {
        self.last.as_ref().is_some_and(|(name, before)| name == tool_name && before == input)
    }
}

/// The warning to the model, appended to the call's result or error.
pub(super) fn warning(times: u32) -> Option<String> {
    (times >= REPEATS_WARNED)
        .then(|| format!("You made this same call {times} times in a row. Try something else."))
}

/// An error followed by a warning to the model, and how many bytes the warning has.
pub(super) fn warned(text: &str, warning: Option<String>) -> (String, usize) {
    match warning {
        Some(warning) => {
            let note = format!("\n\n{warning}");
            (format!("{text}{note}"), note.len())
        }
        None => (text.to_owned(), 0),
    }
}

/// Why the turn ends; `None` while it continues.
pub(super) fn stop(tool_name: &str, times: u32) -> Option<String> {
    (times >= REPEATS_STOPPED).then(|| {
        format!(
            "the model made the same `{tool_name}` call {times} times in a row with the same result; the turn was stopped"
        )
    })
}
