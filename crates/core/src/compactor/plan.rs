//! Which part of a conversation is summarised, and which stays as it is. Pure.

use std::sync::Arc;

use crate::estimate::{self, Size};
use crate::ids::MessageId;
use crate::part::{Passage, Role};
use crate::ports::compaction::CompactionRequest;
use crate::prompt::text_of;

/// Turns before the one under way that stay as they are, if there is room.
const KEPT_TURNS: usize = 2;

/// The kept turns may take one part in so many of what a request may take.
const TAIL_SHARE: u64 = 4;

/// The turn under way may take one part in so many; beyond it its own beginning is summarised, too.
const TURN_SHARE: u64 = 2;

/// Where a conversation is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CompactionPlan {
    /// The place of the first passage that stays.
    pub(super) tail: usize,
    pub(super) tail_start: Option<MessageId>,
    /// The prompt of the turn under way, where it does not stay: the model still has to answer it.
    pub(super) unanswered: Option<String>,
}

impl CompactionPlan {
    /// `None` where there is nothing before the turn under way, and that is short.
    pub(super) fn of(request: &CompactionRequest) -> Option<Self> {
        let passages: &[Arc<Passage>] = &request.conversation;
        let is_prompt = |passage: &Arc<Passage>| passage.message_id == request.prompt;
        let prompt = passages.iter().position(is_prompt).unwrap_or(passages.len());
        let tokens = |from: usize| {
            let sizes = passages[from..].iter().map(|passage| estimate::passage_size(passage));
            sizes.fold(Size::default(), |sum, size| sum + size).tokens()
        };
        let (under_way, room) = (tokens(prompt), room(request));
        if under_way > room / TURN_SHARE {
            return Self::inside_of_the_turn(passages, prompt);
        }
        // The summary of an earlier compaction is a user's passage as well, and the first: never the tail's.
        let starts = (1..prompt).rev().filter(|place| passages[*place].role == Role::User);
        let fits = |place: &usize| tokens(*place) - under_way <= room / TAIL_SHARE;
        let tail = starts.take(KEPT_TURNS).take_while(fits).last().unwrap_or(prompt);
        let tail_start = passages.get(tail).map(|passage| passage.message_id.clone());
        (tail > 0).then_some(Self { tail, tail_start, unanswered: None })
    }

    /// The turn itself fills the window: all of it becomes part of the summary, and its prompt is repeated.
    fn inside_of_the_turn(passages: &[Arc<Passage>], prompt: usize) -> Option<Self> {
        // A prompt alone can't be made shorter.
        let has_steps = passages.len() > prompt + 1;
        let unanswered = passages.get(prompt).map(|passage| text_of(&passage.parts));
        let tail = if has_steps { passages.len() } else { prompt };
        let tail_start = passages.get(tail).map(|passage| passage.message_id.clone());
        let unanswered = unanswered.filter(|_| has_steps);
        (tail > 0).then_some(Self { tail, tail_start, unanswered })
    }
}

/// What the conversation may take beside the system prompt and the tools.
fn room(request: &CompactionRequest) -> u64 {
    let conversation = request.conversation.size().tokens();
    let fixed = request.expected_tokens.unwrap_or_default().saturating_sub(conversation);
    let fixed = fixed.max(estimate::tokens(request.system.len() as u64)).min(request.limit_tokens / 2);
    request.limit_tokens - fixed
}
