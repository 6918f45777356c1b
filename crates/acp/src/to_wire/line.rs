//! Writes updates as lines: writes text without copying it, everything else through the schema's types.

use std::fmt;

use agent_client_protocol_schema::v1::{ContentBlock, ContentChunk, SessionUpdate};
use attache_core::entry::Entry;
use attache_core::part::Role;
use attache_rpc::encode_notification;
use serde::{Serialize, Serializer};

use super::{ThoughtUpdates, WireView, fit};
use crate::limits::{ENVELOPE_BYTES, LINE_BYTES, SMALLEST_PIECE_BYTES, SURELY_FITS_BYTES};

pub(super) const UPDATE_METHOD: &str = "session/update";

/// The speaker of a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChunkSpeaker {
    User,
    Agent,
    Thought,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextNotification<'a> {
    session_id: &'a str,
    update: TextUpdate<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextUpdate<'a> {
    session_update: &'static str,
    content: TextBlock<'a>,
    message_id: StepMessageId<'a>,
}

/// The message id that clients see: each model call of a turn gets its own message. The first call's message
/// has the stored id; later ones have that id with their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepMessageId<'a> {
    message_id: &'a str,
    step: u32,
}

impl<'a> StepMessageId<'a> {
    pub(super) fn of(entry: Entry<'a>) -> Self {
        Self { message_id: entry.message_id.as_str(), step: entry.step }
    }
}

impl fmt::Display for StepMessageId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            0 | 1 => f.write_str(self.message_id),
            step => write!(f, "{}-{step}", self.message_id),
        }
    }
}

impl Serialize for StepMessageId<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.step {
            0 | 1 => serializer.serialize_str(self.message_id),
            _ => serializer.collect_str(self),
        }
    }
}

#[derive(Serialize)]
struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdateNotification<'a, U> {
    pub(super) session_id: &'a str,
    pub(super) update: &'a U,
}

/// The hot path: every delta of a model comes through here.
pub(super) fn text(
    entry: Entry<'_>,
    speaker: ChunkSpeaker,
    text: &str,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let session_update = match speaker {
        ChunkSpeaker::User => "user_message_chunk",
        ChunkSpeaker::Agent => "agent_message_chunk",
        ChunkSpeaker::Thought => "agent_thought_chunk",
    };
    for text in pieces(text) {
        let content = TextBlock { r#type: "text", text };
        let update = TextUpdate { session_update, content, message_id: StepMessageId::of(entry) };
        let notification = TextNotification { session_id: entry.session_id.as_str(), update };
        encode_notification(out, UPDATE_METHOD, &notification)?;
    }
    Ok(())
}

pub(super) fn thought(
    entry: Entry<'_>,
    view: &WireView,
    thought: &str,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    match view.thoughts {
        ThoughtUpdates::Show => text(entry, ChunkSpeaker::Thought, thought, out),
        ThoughtUpdates::Drop => Ok(()),
    }
}

/// A content block in the message of its role; the system's messages are not for clients.
pub(super) fn block(
    entry: Entry<'_>,
    block: ContentBlock,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let chunk = ContentChunk::new(block).message_id(StepMessageId::of(entry).to_string().as_str());
    match entry.role {
        Role::User => update(entry, &SessionUpdate::UserMessageChunk(chunk), out),
        Role::Assistant => update(entry, &SessionUpdate::AgentMessageChunk(chunk), out),
        Role::System => Ok(()),
    }
}

/// Any update; splits or cuts one that is too long for a line.
pub(super) fn update<U: Serialize>(
    entry: Entry<'_>,
    update: &U,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    let session_id = entry.session_id.as_str();
    encode_notification(out, UPDATE_METHOD, &UpdateNotification { session_id, update })?;
    if out.len() - start <= LINE_BYTES {
        return Ok(());
    }
    out.truncate(start);
    fit::write(session_id, serde_json::to_value(update)?, out)
}

/// The text in pieces that each fit a line after escaping; no piece for an empty text.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    pieces_beside(text, 0)
}

/// The same if something of this size must fit the line as well.
pub(super) fn pieces_beside(mut text: &str, beside: usize) -> impl Iterator<Item = &str> {
    let room = (LINE_BYTES - ENVELOPE_BYTES).saturating_sub(beside).max(SMALLEST_PIECE_BYTES);
    let fits = SURELY_FITS_BYTES.min(room / 6);
    std::iter::from_fn(move || {
        let end = if text.len() <= fits { text.len() } else { end_of_piece(text, room) };
        let (piece, rest) = text.split_at(end);
        text = rest;
        Some(piece).filter(|piece| !piece.is_empty())
    })
}

fn end_of_piece(text: &str, mut room: usize) -> usize {
    for (index, character) in text.char_indices() {
        let size = match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            _ => character.len_utf8(),
        };
        match room.checked_sub(size) {
            Some(left) => room = left,
            None => return index,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn pieces_join_to_the_text_and_each_fits(seed in "[a\"\\\\\n\u{1}é🙂]{1,40}", times in 1_usize..2000) {
            let text = seed.repeat(times);
            prop_assert_eq!(pieces(&text).collect::<String>(), text.clone());
            for piece in pieces(&text) {
                prop_assert!(serde_json::to_string(piece).unwrap().len() <= LINE_BYTES - ENVELOPE_BYTES + 2);
            }
        }
    }

    #[test]
    fn a_long_text_takes_as_few_pieces_as_it_can() {
        let text = "x".repeat(10 * (LINE_BYTES - ENVELOPE_BYTES));
        assert_eq!(pieces(&text).count(), 10);
        assert_eq!(pieces("").count(), 0);
    }
}
