//! One hit of a search, cut to what is worth a model's attention.

use serde_json::Value;
use url::Url;

use crate::limits::{SEARCH_SNIPPET_CHARACTERS, SEARCH_TITLE_CHARACTERS, SEARCH_URL_BYTES};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchHit {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) snippet: String,
}

/// The results of a service; each service has its own name for the snippet. `None` if the value is no list of
/// results.
pub(super) fn hits(results: &Value, snippet: &str) -> Option<Vec<SearchHit>> {
    let text = |found: &Value, field: &str| match &found[field] {
        Value::Null => Some(String::new()),
        value => value.as_str().map(str::to_owned),
    };
    let hit = |found: &Value| {
        let url = found["url"].as_str()?.to_owned();
        Some(SearchHit { title: text(found, "title")?, url, snippet: text(found, snippet)? })
    };
    results.as_array()?.iter().map(hit).collect()
}

impl SearchHit {
    /// The hit within its limits, each part on one line. `None` if `web_fetch` could not open its address.
    pub(super) fn readable(self, cleared: impl Fn(&str) -> String) -> Option<Self> {
        let url = Url::parse(cleared(&self.url).trim()).ok()?;
        super::super::check(&url).ok()?;
        let url = String::from(url);
        if url.len() > SEARCH_URL_BYTES {
            return None;
        }
        let title = one_line(&cleared(&self.title), SEARCH_TITLE_CHARACTERS);
        let snippet = one_line(&cleared(&self.snippet), SEARCH_SNIPPET_CHARACTERS);
        Some(Self { title: if title.is_empty() { "(no title)".to_owned() } else { title }, url, snippet })
    }
}

/// Turns each run of blanks and line ends into one blank; a text of more than `most` characters ends in `…`,
/// which is included in `most`.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // More bytes than this are certainly more characters than `most`.
        if line.len() > most * 4 {
            break;
        }
    }
    match line.char_indices().nth(most) {
        None => line,
        Some(_) => line.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}
