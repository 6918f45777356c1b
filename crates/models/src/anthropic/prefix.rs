//! A fingerprint of everything a request says before the answer. Newer models refuse their own thoughts after
//! different words (another mode, a new tool, a turn's context that is gone). So each thought remembers its
//! fingerprint and goes back only behind the same one.

use std::fmt;
use std::sync::Arc;

use attache_core::part::{Part, Passage};
use attache_core::ports::ModelRequest;
use serde_json::Value;

use super::encode;
use super::thinking::ThinkingRules;
use crate::compose::{BlobBytes, is_in_blob_store, runtime_context};
use crate::written::{EncodedPassage, write_json};

/// Stored with the conversation, so every build must compute the same. Guards against mistakes, not against
/// attackers.
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
        // Multiplication carries bits only upwards; the final mix spreads the high ones.
        write!(f, "{:016x}", (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9))
    }
}

/// Which thoughts of one passage we send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThoughtReplay {
    Sent,
    LeftOut,
}

/// The fingerprint of a request, to store beside the thoughts of its answer.
pub(super) fn of(request: &ModelRequest) -> Prefix {
    // Attachments from the blob store count by their ids, because this function does not have their bytes.
    let blobs = BlobBytes::new();
    let encoded = encode::encoded(request, &blobs);
    along(request, &encoded).1
}

/// Walks through the conversation as we send it: decides which thoughts go along, and computes the fingerprint
/// of the whole.
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

/// Whether the thoughts of this step came behind exactly this prefix.
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
