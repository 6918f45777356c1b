//! The conversation as the model sees it: passages from rows, and what a session keeps in memory about it. What
//! is sent is up to the turn.

use crate::compaction::CompactionMark;
use crate::conversation::Conversation;
use crate::ids::{MessageId, SessionId};
use crate::journal::replay::parts_of;
use crate::limits::PAGE_BYTES;
use crate::part::{Part, Passage, Role};
use crate::ports::backend::NextHistory;
use crate::ports::store::{MessageRow, RowRange, Store, StoreResult};
use crate::slash_commands;
use crate::turn::TurnEnd;
use crate::turn::left_out::leave_out_result;

/// What a session knows of its stored conversation beside its row.
#[derive(Debug, Default)]
pub(crate) struct ConversationState {
    last_seq: i64,
    /// How the last turn ended here, with its answer: the model is told of an end that was not its own.
    last_end: Option<(MessageId, TurnEnd)>,
    /// Messages were hidden or shown while a command held the conversation.
    is_stale: bool,
}

impl ConversationState {
    /// The place of the next message.
    pub(super) fn next_seq(&self) -> i64 {
        self.last_seq + 1
    }

    pub(super) fn set_last_seq(&mut self, seq: i64) {
        self.last_seq = seq;
    }

    pub(super) fn ended(&mut self, answer: MessageId, end: TurnEnd) {
        self.last_end = Some((answer, end));
    }

    /// How the turn of this answer ended, if it was the last one here.
    pub(super) fn end_of(&self, answer: &MessageId) -> Option<&TurnEnd> {
        self.last_end.as_ref().filter(|(ended, _)| ended == answer).map(|(_, end)| end)
    }

    /// A command holds the conversation as it is now.
    pub(super) fn command_began(&mut self) {
        self.is_stale = false;
    }

    /// Messages were hidden or shown.
    pub(super) fn rows_changed(&mut self) {
        self.is_stale = true;
    }

    /// Whether the next turn can go on with the conversation that the command held.
    pub(super) fn history_after_command(&mut self) -> NextHistory {
        match std::mem::take(&mut self.is_stale) {
            true => NextHistory::Reread,
            false => NextHistory::Unchanged,
        }
    }
}

/// Reads the visible conversation before `before_seq` as it is sent: from the last boundary on, and without
/// prompts that the model refused and slash commands, and their answers.
pub(crate) async fn load(
    store: &dyn Store,
    session: &SessionId,
    before_seq: Option<i64>,
) -> StoreResult<Conversation> {
    let mut conversation = Conversation::default();
    let mut open: Option<(MessageRow, Vec<Part>)> = None;
    let mut after = None;
    loop {
        let range = RowRange { after, before_seq, max_bytes: PAGE_BYTES };
        let page = store.read_rows(session, range).await?;
        for (message, rows) in page.messages {
            let parts = parts_of(&rows)?;
            match &mut open {
                // A message cut by the page border goes on.
                Some((row, gathered)) if row.id == message.id => gathered.extend(parts),
                _ => {
                    if let Some((row, gathered)) = open.replace((message, parts)) {
                        append(&row, gathered, &mut conversation);
                    }
                }
            }
        }
        match page.next {
            Some(cursor) => after = Some(cursor),
            None => break,
        }
    }
    if let Some((row, gathered)) = open {
        append(&row, gathered, &mut conversation);
    }
    Ok(conversation)
}

/// Adds what the model is sent of a message.
pub(crate) fn append(row: &MessageRow, parts: Vec<Part>, conversation: &mut Conversation) {
    let is_command = row.metadata.answers_command() || slash_commands::invocation(&parts).is_some();
    if is_command || row.metadata.is_refused() {
        // No model is shown what was said there; how room was made holds all the same.
        return apply_marks(&row.id, &parts, conversation);
    }
    split(row, parts).into_iter().for_each(|passage| conversation.push_stored(passage));
}

/// Marks behind everything that is there.
fn apply_marks(message_id: &MessageId, parts: &[Part], conversation: &mut Conversation) {
    for mark in parts.iter().filter_map(CompactionMark::of) {
        *conversation = conversation.marked(&mark, conversation.len(), message_id);
    }
}

/// The same for an answer under way: its finished steps, and the marks that the step after them may have set.
pub(crate) fn append_steps(
    row: &MessageRow,
    parts: Vec<Part>,
    steps: usize,
    conversation: &mut Conversation,
) {
    let mut passages = split(row, parts);
    // What hooks said behind a step belongs to it.
    let of_steps = passages.iter().enumerate().filter(|(_, passage)| passage.role == Role::Assistant);
    let unfinished = of_steps.map(|(place, _)| place).nth(steps).unwrap_or(passages.len());
    let under_way = passages.split_off(unfinished);
    passages.into_iter().for_each(|passage| conversation.push_stored(passage));
    under_way.iter().for_each(|passage| apply_marks(&row.id, &passage.parts, conversation));
}

/// One passage per step of an assistant message, and one for what a hook said behind it; a user message is one
/// passage.
fn split(row: &MessageRow, parts: Vec<Part>) -> Vec<Passage> {
    if row.role != Role::Assistant {
        return vec![Passage::new(row.id.clone(), row.role, parts)];
    }
    let mut steps: Vec<Vec<Part>> = Vec::new();
    for part in parts {
        if part == Part::StepStart || steps.is_empty() {
            steps.push(Vec::new());
        }
        if let Some(step) = steps.last_mut() {
            step.push(part);
        }
    }
    let left_out = row.metadata.results_left_out();
    if !left_out.is_empty() {
        let calls = steps.iter_mut().flatten().filter_map(Part::tool_mut);
        calls.filter(|tool| left_out.contains(&tool.call_id.as_str())).for_each(leave_out_result);
    }
    steps.into_iter().flat_map(|parts| Passage::of_step(&row.id, parts)).collect()
}
