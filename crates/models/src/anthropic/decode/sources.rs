//! Citations as sources. Reports each source once per answer, however often the answer cites it.

use std::collections::HashSet;

use attache_core::chunk::Chunk;
use attache_core::ports::StepEvent;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::blocks::{metadata, say};

#[derive(Debug, Default)]
pub(super) struct CitedSources {
    /// Makes the ids differ between the steps of a message.
    message_id: String,
    told: HashSet<String>,
}

impl CitedSources {
    pub(super) fn name_after(&mut self, message_id: String) {
        self.message_id = message_id;
    }

    pub(super) fn cite(&mut self, raw: &RawValue, out: &mut Vec<StepEvent>) {
        let Ok(citation) = serde_json::from_str::<Value>(raw.get()) else { return };
        let text = |key: &str| citation.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let title = text("title").or(text("document_title")).map(str::to_owned);
        let kind = text("type").unwrap_or_default();
        let address = text("url").or(text("source")).filter(|address| is_web(address));
        if let Some(url) = address {
            let Some(source_id) = self.new_id(url) else { return };
            let rest = metadata(json!({ "citation": citation }));
            return say(out, Chunk::SourceUrl { source_id, url: url.to_owned(), title, rest });
        }
        let media_type = match kind {
            "page_location" => "application/pdf",
            "char_location" | "content_block_location" | "search_result_location" => "text/plain",
            _ => return tracing::debug!(kind, "passed over: a citation of an unknown type"),
        };
        let number = citation.get("document_index").or(citation.get("search_result_index"));
        let number = number.and_then(Value::as_u64).unwrap_or(0);
        let Some(source_id) = self.new_id(&format!("{kind} {number}")) else { return };
        let named = title.or(text("source").map(str::to_owned));
        let title = named.unwrap_or_else(|| format!("document {}", number + 1));
        let rest = metadata(json!({ "citation": citation }));
        let media_type = media_type.to_owned();
        say(out, Chunk::SourceDocument { source_id, media_type, title, filename: None, rest });
    }

    /// `None` for a source that was reported before.
    fn new_id(&mut self, key: &str) -> Option<String> {
        if !self.told.insert(key.to_owned()) {
            return None;
        }
        let number = self.told.len();
        Some(match self.message_id.as_str() {
            "" => format!("source-{number}"),
            message_id => format!("{message_id}-{number}"),
        })
    }
}

fn is_web(address: &str) -> bool {
    address.starts_with("https://") || address.starts_with("http://")
}
