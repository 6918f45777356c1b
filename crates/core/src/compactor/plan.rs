//! Which part of a conversation is summarised, and which stays as it is. Pure.

use std::sync::Arc;

use crate::compaction::is_summary;
use crate::estimate::{self, Size};
use crate::ids::{CallId, MessageId};
use crate::part::{Part, Passage, Role};
use crate::ports::compaction::{CompactionRequest, Occasion};
use crate::prompt::text_of;

/// This many turns before the current one stay unchanged, if there is room.
const KEPT_TURNS: usize = 2;

/// Several kept turns may together take this fraction (one in N) of a request.
const TAIL_SHARE: u64 = 4;

/// One kept turn, or the current turn, may take this fraction (one in N). A larger kept turn is summarised; of
/// a larger current turn, its beginning.
pub(crate) const TURN_SHARE: u64 = 2;

/// Where a conversation is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CompactionPlan {
    /// The place of the first passage that stays.
    pub(super) tail: usize,
    pub(super) tail_start: Option<MessageId>,
    /// The call whose step is the first to stay, if its message does not stay whole.
    pub(super) tail_call: Option<CallId>,
    /// The prompt of the current turn, if it does not stay: the model still has to answer it.
    pub(super) unanswered: Option<String>,
}

impl CompactionPlan {
    /// `None` if nothing precedes the current turn and that turn is short.
    pub(super) fn of(request: &CompactionRequest) -> Option<Self> {
        let passages: &[Arc<Passage>] = &request.conversation;
        let keeps_turns = match request.occasion {
            Occasion::Overflow => true,
            Occasion::Command { .. } => false,
        };
        if !keeps_turns {
            return (!passages.is_empty()).then(|| Self::before(passages, passages.len()));
        }
        let is_prompt = |passage: &Arc<Passage>| passage.message_id == request.prompt;
        let prompt = passages.iter().position(is_prompt).unwrap_or(passages.len());
        let tokens = |from: usize| {
            let sizes = passages[from..].iter().map(|passage| estimate::passage_size(passage));
            sizes.fold(Size::default(), |sum, size| sum + size).tokens()
        };
        let (under_way, room) = (tokens(prompt), room(request));
        if under_way > room / TURN_SHARE {
            return Self::inside_of_the_turn(passages, prompt, room);
        }
        // The summary of an earlier compaction is also a passage of the user, always the first: it never
        // belongs to the tail.
        let starts = (1..prompt).rev().filter(|place| passages[*place].role == Role::User);
        let starts: Vec<usize> = starts.take(KEPT_TURNS).collect();
        let taken = |start: usize| tokens(start) - under_way;
        let several = starts.last().filter(|start| taken(**start) <= room / TAIL_SHARE);
        let one = starts.first().filter(|start| taken(**start) + under_way <= room / TURN_SHARE);
        let tail = several.or(one).copied().unwrap_or(prompt);
        (tail > 0).then(|| Self::before(passages, tail))
    }

    /// The last prompt of the user, if it does not stay.
    pub(super) fn last_prompt(&self, passages: &[Arc<Passage>]) -> Option<String> {
        let place = passages.iter().rposition(|passage| passage.role == Role::User)?;
        let text = text_of(&passages[place].parts);
        // The summary of an earlier compaction is also a passage of the user.
        let is_prompt = !text.trim().is_empty() && !is_summary(&text);
        (place < self.tail && is_prompt).then_some(text)
    }

    fn before(passages: &[Arc<Passage>], tail: usize) -> Self {
        let tail_start = passages.get(tail).map(|passage| passage.message_id.clone());
        Self { tail, tail_start, tail_call: None, unanswered: None }
    }

    /// The turn itself fills the window: it becomes part of the summary, and its prompt is repeated. Its last
    /// step stays if there is room, because the model has not seen its results yet.
    fn inside_of_the_turn(passages: &[Arc<Passage>], prompt: usize, room: u64) -> Option<Self> {
        let has_steps = passages.len() > prompt + 1;
        if !has_steps {
            // A prompt alone can't be made shorter.
            return (prompt > 0).then(|| Self::before(passages, prompt));
        }
        let unanswered = passages.get(prompt).map(|passage| text_of(&passage.parts));
        // What was told behind a step belongs to that step.
        let is_step = |passage: &Arc<Passage>| passage.role != Role::System;
        let last = passages.iter().rposition(is_step).unwrap_or(passages.len() - 1);
        let fits = estimate::passage_size(&passages[last]).tokens() <= room / TURN_SHARE;
        let call = passages[last].parts.iter().find_map(Part::tool).map(|tool| tool.call_id.clone());
        let tail = match &call {
            // Only that step could be summarised: its results are left out instead, and the model learns so.
            Some(_) if last == prompt + 1 => return (prompt > 0).then(|| Self::before(passages, prompt)),
            Some(_) if fits => last,
            Some(_) | None => passages.len(),
        };
        let tail_call = call.filter(|_| tail == last);
        Some(Self { tail_call, unanswered, ..Self::before(passages, tail) })
    }
}

/// How much the conversation may take beside the system prompt and the tools.
pub(crate) fn room(request: &CompactionRequest) -> u64 {
    let conversation = request.conversation.size().tokens();
    let fixed = request.expected_tokens.unwrap_or_default().saturating_sub(conversation);
    let fixed = fixed.max(estimate::tokens(request.system.len() as u64)).min(request.limit_tokens / 2);
    request.limit_tokens - fixed
}
