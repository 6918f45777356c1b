//! How long an answer a request asks for. A server refuses a request whose prompt and answer together could
//! exceed the context, so the conversation gets most of it. Pure; knows no model.

use crate::limits::{LONGEST_ANSWER, SHARE_OF_CONTEXT, UNLIMITED_OUTPUT};

/// The part of a context that an answer may take.
pub fn answer_share(context: u64) -> u64 {
    (context / SHARE_OF_CONTEXT).max(1)
}

/// For a limit that a server or a catalogue states. A limit of half the context or more says nothing about the
/// answer; it only says where the context ends.
pub(crate) fn longest_answer(context: u64, limit: u64) -> u64 {
    let limit = if limit > context / 2 { UNLIMITED_OUTPUT } else { limit };
    limit.min(answer_share(context)).min(LONGEST_ANSWER)
}
