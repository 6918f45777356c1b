//! Puts the conversation together from its passages: makes the roles alternate, sets cache breakpoints, adds
//! the turn's own context. Only copies bytes that were encoded before.

use std::ops::Range;
use std::sync::Arc;

use attache_core::part::{Part, Passage, Role};
use attache_core::ports::ModelRequest;

use super::blocks::ContentBlock;
use super::last_user;
use super::passages::is_ours;
use crate::anthropic::prefix::ThoughtReplay;
use crate::compose::runtime_context;
use crate::written::{EncodedPassage, write_json};

pub(super) const OPEN_USER: &[u8] = br#"{"role":"user","content":["#;
pub(super) const OPEN_ASSISTANT: &[u8] = br#"{"role":"assistant","content":["#;
pub(super) const CLOSE: &[u8] = b"]}";

/// Breakpoints in the conversation: one at its end, and one where the request before ended, so that the cache
/// finds what it kept then.
const BREAKPOINTS: usize = 2;

/// Put in as the user's words where the conversation would begin or end with the model: the API refuses both.
const GO_ON: &str = "Go on.";

/// A breakpoint within a block, written before the brace that closes it.
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

pub(super) fn write(
    request: &ModelRequest,
    encoded: &[Arc<EncodedPassage>],
    thoughts: &[ThoughtReplay],
    json: &mut Vec<u8>,
) {
    let marked = marked(request, encoded);
    let context_at = last_user(request);
    let mut conversation = MessageWriter { json, last: None };
    for (index, (passage, encoded)) in request.passages.iter().zip(encoded).enumerate() {
        if !encoded.json.is_empty() {
            let mark_at = encoded.mark_at.filter(|_| marked.contains(&index));
            conversation.passage(passage, encoded, thoughts[index], mark_at);
        }
        if context_at == Some(index)
            && let Some(context) = runtime_context(&request.runtime_context)
        {
            conversation.user_text(&context);
        }
    }
    if conversation.last != Some(OPEN_USER) {
        conversation.user_text(GO_ON);
    }
}

/// The last passages that end with the user: every request ends there.
fn marked(request: &ModelRequest, encoded: &[Arc<EncodedPassage>]) -> Vec<usize> {
    let passages = request.passages.iter().zip(encoded).enumerate().rev();
    let said = passages.filter(|(_, (_, encoded))| !encoded.json.is_empty());
    let ending = said.filter(|(_, (passage, _))| last_opening(passage) == OPEN_USER);
    ending.map(|(index, _)| index).take(BREAKPOINTS).collect()
}

/// Whether this passage begins with a thought that we send.
pub(super) fn begins_with_thoughts(encoded: &EncodedPassage, thoughts: ThoughtReplay) -> bool {
    let first = encoded.optional.first().is_some_and(|thought| thought.start == OPEN_ASSISTANT.len());
    first && thoughts == ThoughtReplay::Sent
}

/// The parts of an encoded passage that we send.
pub(in crate::anthropic) fn pieces(
    encoded: &EncodedPassage,
    thoughts: ThoughtReplay,
) -> impl Iterator<Item = &[u8]> {
    let left_out = left_out(encoded, thoughts);
    let starts = std::iter::once(0).chain(left_out.iter().map(|range| range.end));
    let ends = left_out.iter().map(|range| range.start).chain([encoded.json.len()]);
    starts.zip(ends).map(|(start, end)| &encoded.json[start..end])
}

fn left_out(encoded: &EncodedPassage, thoughts: ThoughtReplay) -> &[Range<usize>] {
    match thoughts {
        ThoughtReplay::Sent => &[],
        ThoughtReplay::LeftOut => &encoded.optional,
    }
}

/// How the first message of a passage opens, if the passage says anything.
fn first_opening(passage: &Passage) -> &'static [u8] {
    match passage.role {
        Role::User | Role::System => OPEN_USER,
        Role::Assistant => OPEN_ASSISTANT,
    }
}

/// How the last message of a passage opens: results make a message of the user.
fn last_opening(passage: &Passage) -> &'static [u8] {
    match passage.parts.iter().filter_map(Part::tool).any(is_ours) {
        true => OPEN_USER,
        false => first_opening(passage),
    }
}

struct MessageWriter<'a> {
    json: &'a mut Vec<u8>,
    /// How the last message opened.
    last: Option<&'static [u8]>,
}

impl MessageWriter<'_> {
    fn passage(
        &mut self,
        passage: &Passage,
        encoded: &EncodedPassage,
        thoughts: ThoughtReplay,
        mark_at: Option<usize>,
    ) {
        let opening = first_opening(passage);
        if self.last.is_none() && opening != OPEN_USER {
            self.user_text(GO_ON);
        }
        self.open(opening);
        let mut at = opening.len();
        for range in left_out(encoded, thoughts) {
            self.json.extend_from_slice(&encoded.json[at..range.start]);
            at = range.end;
        }
        // The mark belongs into the last block, which comes after all thoughts.
        if let Some(mark_at) = mark_at {
            self.json.extend_from_slice(&encoded.json[at..mark_at]);
            self.json.extend_from_slice(MARK);
            at = mark_at;
        }
        self.json.extend_from_slice(&encoded.json[at..]);
        self.last = Some(last_opening(passage));
    }

    fn user_text(&mut self, text: &str) {
        self.open(OPEN_USER);
        write_json(self.json, &ContentBlock::Text { text });
        self.json.extend_from_slice(CLOSE);
    }

    /// Begins a message, or continues the last one if it has the same role: some gateways require alternating
    /// roles.
    fn open(&mut self, opening: &'static [u8]) {
        if self.last == Some(opening) {
            self.json.truncate(self.json.len() - CLOSE.len());
            self.json.push(b',');
        } else {
            if self.last.is_some() {
                self.json.push(b',');
            }
            self.json.extend_from_slice(opening);
        }
        self.last = Some(opening);
    }
}
