//! What we store with the parts of an answer so that the next request can send it back: reasoning details,
//! signatures, authorship.

use std::borrow::Cow;

use attache_core::chunk::{Rest, RestFields};
use attache_core::part::Part;
use serde_json::{Map, Value, json};

use crate::dialect::Dialect;

/// The key of details in the metadata, as OpenRouter's own clients keep them.
const OPENROUTER: &str = "openrouter";
/// The key of everything else of this dialect.
const CHAT: &str = Dialect::OpenAiChat.as_str();
const DETAILS: &str = "reasoning_details";
const EXTRA: &str = "extra_content";
const BY: &str = "by";

/// The reasoning details of an answer that no part has yet; pieces of one block are joined.
#[derive(Debug, Default)]
pub(super) struct Details {
    blocks: Vec<Map<String, Value>>,
}

impl Details {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Takes a piece; returns the text that people may read.
    pub(super) fn add(&mut self, piece: Map<String, Value>) -> Option<String> {
        let text = ["text", "summary"].into_iter().find_map(|key| piece.get(key)?.as_str());
        let text = text.filter(|text| !text.is_empty()).map(str::to_owned);
        match self.blocks.last_mut() {
            Some(last) if continues(last, &piece) => grow(last, piece),
            _ => self.blocks.push(piece),
        }
        text
    }

    /// The metadata for the end of a reasoning part.
    pub(super) fn marks(&mut self, author: &str) -> Rest {
        let blocks = std::mem::take(&mut self.blocks);
        let metadata = match blocks.is_empty() {
            true => json!({ CHAT: { BY: author } }),
            false => json!({ OPENROUTER: { DETAILS: blocks, BY: author } }),
        };
        with(metadata)
    }
}

/// The metadata of a call that carries more than its arguments.
pub(super) fn call_marks(extra: Value, author: &str) -> Rest {
    match extra {
        Value::Null => Rest::none(),
        extra => with(json!({ CHAT: { EXTRA: extra, BY: author } })),
    }
}

fn with(metadata: Value) -> Rest {
    Rest(Some(Box::new(RestFields { provider_metadata: Some(metadata), ..RestFields::default() })))
}

/// Text and summaries come in pieces until a signature closes them. Encrypted blocks come whole.
fn continues(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let kind = last.get("type");
    let grows = matches!(kind.and_then(Value::as_str), Some("reasoning.text" | "reasoning.summary"));
    let same = |key: &str| match (given(last, key), given(piece, key)) {
        (Some(one), Some(other)) => one == other,
        (None, _) | (_, None) => true,
    };
    grows && kind == piece.get("type") && same("index") && same("id") && given(last, "signature").is_none()
}

fn given<'a>(block: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    block.get(key).filter(|value| !value.is_null())
}

fn grow(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (key, value) in piece {
        match (last.get_mut(&key), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) if key == "text" || key == "summary" => {
                text.push_str(&more);
            }
            (_, value) => drop(last.insert(key, value)),
        }
    }
}

/// The reasoning of one step, if this author wrote it: no other model understands or accepts it.
#[derive(Debug, Default)]
pub(super) struct Own<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) details: Vec<&'a Value>,
}

impl<'a> Own<'a> {
    /// A step has one author. The store splits long reasoning into several parts and marks only the last.
    pub(super) fn of(parts: &'a [Part], author: &str) -> Self {
        let mut own = Self::default();
        let mut marked = false;
        for part in parts {
            let Part::Reasoning { text, provider_metadata, .. } = part else { continue };
            match (own.text.is_empty(), text.is_empty()) {
                (_, true) => {}
                (true, false) => own.text = Cow::Borrowed(text),
                (false, false) => own.text.to_mut().push_str(text),
            }
            for key in [CHAT, OPENROUTER] {
                let Some(marks) = provider_metadata.as_ref().and_then(|metadata| metadata.get(key)) else {
                    continue;
                };
                if is_by(marks, author) {
                    marked = true;
                    own.details.extend(marks.get(DETAILS).and_then(Value::as_array).into_iter().flatten());
                }
            }
        }
        if marked { own } else { Self::default() }
    }
}

/// What a call of this author carried beside its arguments.
pub(super) fn extra_content<'a>(metadata: Option<&'a Value>, author: &str) -> Option<&'a Value> {
    let marks = metadata?.get(CHAT)?;
    is_by(marks, author).then(|| marks.get(EXTRA)).flatten()
}

fn is_by(marks: &Value, author: &str) -> bool {
    marks.get(BY).and_then(Value::as_str) == Some(author)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(pieces: &[Value]) -> Value {
        let mut details = Details::default();
        for piece in pieces {
            details.add(piece.as_object().unwrap().clone());
        }
        Value::Array(details.blocks.into_iter().map(Value::Object).collect())
    }

    #[test]
    fn pieces_of_one_block_are_put_together_and_blocks_stay_apart() {
        let text =
            |text: &str| json!({ "type": "reasoning.text", "text": text, "signature": null, "index": 0 });
        assert_eq!(
            added(&[
                text("a"),
                text("b"),
                json!({ "type": "reasoning.text", "signature": "s1", "index": 0 }),
                text("c"),
                json!({ "type": "reasoning.encrypted", "data": "x", "index": 1 }),
                json!({ "type": "reasoning.encrypted", "data": "y", "index": 1 }),
                json!({ "type": "reasoning.summary", "summary": "d", "index": 2 }),
                json!({ "type": "reasoning.summary", "summary": "e", "index": 3 }),
                json!({ "type": "reasoning.summary", "summary": "f" }),
                json!({ "type": "reasoning.new", "text": "g" }),
                json!({ "type": "reasoning.new", "text": "h" }),
            ]),
            json!([
                { "type": "reasoning.text", "text": "ab", "signature": "s1", "index": 0 },
                { "type": "reasoning.text", "text": "c", "signature": null, "index": 0 },
                { "type": "reasoning.encrypted", "data": "x", "index": 1 },
                { "type": "reasoning.encrypted", "data": "y", "index": 1 },
                { "type": "reasoning.summary", "summary": "d", "index": 2 },
                { "type": "reasoning.summary", "summary": "ef", "index": 3 },
                { "type": "reasoning.new", "text": "g" },
                { "type": "reasoning.new", "text": "h" },
            ])
        );
    }
}
