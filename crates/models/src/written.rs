//! Passages as JSON, encoded once and cached on the passage: each step sends its history without encoding it
//! again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use attache_core::part::Passage;

use crate::compose::is_in_blob_store;
use crate::dialect::{Dialect, Outgoing, author};

/// A passage in one dialect: JSON values separated by commas, without brackets. Empty if the passage says
/// nothing.
#[derive(Debug, Default)]
pub(crate) struct EncodedPassage {
    key: u64,
    pub(crate) json: Vec<u8>,
    /// Where a mark (a cache breakpoint) fits into the last block, for dialects that have such marks.
    pub(crate) mark_at: Option<usize>,
    /// The ranges that a request may leave out (thoughts that the API would refuse), each with the comma after
    /// it, in order.
    pub(crate) optional: Vec<Range<usize>>,
}

/// The request's passages as JSON, in order; reuses those that were encoded for this model before.
pub(crate) fn encoded(
    dialect: Dialect,
    outgoing: &Outgoing<'_>,
    write: impl Fn(&Passage, &mut EncodedPassage),
) -> Vec<Arc<EncodedPassage>> {
    let key = key(dialect, outgoing);
    let passages = outgoing.request.passages.iter();
    passages
        .map(|passage| {
            if let Some(kept) = passage.written.get::<EncodedPassage>(|kept| kept.key == key) {
                return kept;
            }
            let mut encoded = EncodedPassage { key, ..EncodedPassage::default() };
            write(passage, &mut encoded);
            let encoded = Arc::new(encoded);
            // Attachments from the blob store take megabytes, so we do not cache them between two steps.
            if !is_in_blob_store(passage) {
                passage.written.keep(encoded.clone());
            }
            encoded
        })
        .collect()
}

/// Everything that decides how we encode a passage.
fn key(dialect: Dialect, outgoing: &Outgoing<'_>) -> u64 {
    let info = &outgoing.request.info;
    let mut hasher = DefaultHasher::new();
    (dialect.as_str(), author(outgoing.request), info.images, info.audio, info.pdf).hash(&mut hasher);
    outgoing.compatibility.hash(&mut hasher);
    hasher.finish()
}

/// Appends an encoded passage to a JSON array in progress, with a comma if one is needed.
pub(crate) fn append(json: &mut Vec<u8>, encoded: &[u8]) {
    if encoded.is_empty() {
        return;
    }
    if !matches!(json.last(), Some(b'[')) {
        json.push(b',');
    }
    json.extend_from_slice(encoded);
}

/// Appends a value as JSON.
pub(crate) fn write_json(json: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    // Writing our own values with string keys into memory cannot fail.
    if let Err(error) = serde_json::to_writer(&mut *json, value) {
        tracing::error!(%error, "a request could not be written");
    }
}
