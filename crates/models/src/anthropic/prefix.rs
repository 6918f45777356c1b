//! A fingerprint of everything a request says before the answer. Newer models refuse thoughts that come back
//! behind other words (another mode, a new tool, a turn's own context that is gone), so thoughts remember it
//! and go back only behind the same.

use std::fmt;
use std::sync::Arc;

use attache_core::part::{Part, Passage};
use attache_core::ports::ModelRequest;
use serde_json::Value;

use super::encode;
use super::thinking::ThinkingRules;
use crate::compose::{BlobBytes, is_in_blob_store, runtime_context};
use crate::written::{EncodedPassage, write_json};

/// Stored with the conversation, so it must be the same in every build. Guards against mistakes, not against
/// people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix(u64);

impl Prefix {
    pub(super) fn fold(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last));
        self.mix(bytes.len() as u64);
    }

    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The product carries low bits up only: a last turn spreads the high ones.
        write!(f, "{:016x}", (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9))
    }
}

/// What becomes of the thoughts within one passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThoughtReplay {
    Sent,
    LeftOut,
}

/// The fingerprint of a request, as its answer's thoughts remember it.
pub(super) fn of(request: &ModelRequest) -> Prefix {
    // Attachments from the blob store are known by their ids here: their bytes are not at hand.
    let blobs = BlobBytes::new();
    let encoded = encode::encoded(request, &blobs);
    along(request, &encoded).1
}

/// Walks along the conversation as it is sent: which thoughts may go, and the fingerprint of the whole.
pub(super) fn along(request: &ModelRequest, encoded: &[Arc<EncodedPassage>]) -> (Vec<ThoughtReplay>, Prefix) {
    let bound = ThinkingRules::of(&request.model().model_id).bound;
    let mut prefix = Prefix::default();
    if bound {
        prefix.fold(request.system.as_bytes());
        prefix.fold(&encode::tools_json(request));
    }
    let context = runtime_context(&request.runtime_context);
    let context_at = encode::last_user(request);
    let mut thoughts = Vec::with_capacity(encoded.len());
    for (index, (passage, encoded)) in request.passages.iter().zip(encoded).enumerate() {
        if !bound {
            thoughts.push(ThoughtReplay::Sent);
            continue;
        }
        let fate = match encoded.optional.is_empty() || remembers(passage, prefix) {
            true => ThoughtReplay::Sent,
            false => ThoughtReplay::LeftOut,
        };
        thoughts.push(fate);
        if is_in_blob_store(passage) {
            let mut json = Vec::new();
            write_json(&mut json, &passage.parts);
            prefix.fold(&json);
        } else {
            encode::pieces(encoded, fate).for_each(|piece| prefix.fold(piece));
        }
        if let Some(context) = context.as_ref().filter(|_| context_at == Some(index)) {
            prefix.fold(context.as_bytes());
        }
    }
    (thoughts, prefix)
}

/// Whether the thoughts of a step were thought behind exactly this.
fn remembers(passage: &Passage, prefix: Prefix) -> bool {
    let prefix = prefix.to_string();
    let mut marks = passage.parts.iter().filter_map(|part| match part {
        Part::Reasoning { provider_metadata, .. } => provider_metadata.as_ref()?.get("anthropic"),
        Part::StepStart
        | Part::Text { .. }
        | Part::Tool(_)
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. }
        | Part::File { .. }
        | Part::Data { .. } => None,
    });
    marks.all(|mark| mark.get("prefix").and_then(Value::as_str) == Some(&prefix))
}
