//! The conversation as the model sees it: makes passages of rows, and knows what a session keeps of it in
//! memory. The turn decides what is sent.

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

/// What a session knows about its stored conversation beside its row.
#[derive(Debug, Default)]
pub(crate) struct ConversationState {
    last_seq: i64,
    /// How the last turn here ended, with its answer: the model is told if it did not end the turn itself.
    last_end: Option<(MessageId, TurnEnd)>,
    /// A rewind or its undo changed the visible messages while a command held the conversation.
    is_stale: bool,
}

impl ConversationState {
    /// The seq of the next message.
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

    /// A command now holds the conversation.
    pub(super) fn command_began(&mut self) {
        self.is_stale = false;
    }

    /// Messages were hidden or shown.
    pub(super) fn rows_changed(&mut self) {
        self.is_stale = true;
    }

    /// Whether the next turn can use the conversation that the command held.
    pub(super) fn history_after_command(&mut self) -> NextHistory {
        match std::mem::take(&mut self.is_stale) {
            true => NextHistory::Reread,
            false => NextHistory::Unchanged,
        }
    }
}

/// Reads the visible conversation before `before_seq` in the form that is sent: from the last boundary on,
/// without prompts that the model refused, without slash commands, and without the answers to both.
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
                // Continues a message that was cut at the end of a page.
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

/// Adds the part of a message that the model gets.
pub(crate) fn append(row: &MessageRow, parts: Vec<Part>, conversation: &mut Conversation) {
    let is_command = row.metadata.answers_command() || slash_commands::invocation(&parts).is_some();
    if is_command || row.metadata.is_refused() {
        // No model sees such a message, but the marks of a compaction in it apply.
        return apply_marks(&row.id, &parts, conversation);
    }
    split(row, parts).into_iter().for_each(|passage| conversation.push_stored(passage));
}

/// Applies marks after everything that is there.
fn apply_marks(message_id: &MessageId, parts: &[Part], conversation: &mut Conversation) {
    for mark in parts.iter().filter_map(CompactionMark::of) {
        *conversation = conversation.marked(&mark, conversation.len(), message_id);
    }
}

/// The same for an unfinished answer: its finished steps, and marks that the following step may have set.
pub(crate) fn append_steps(
    row: &MessageRow,
    parts: Vec<Part>,
    steps: usize,
    conversation: &mut Conversation,
) {
    let mut passages = split(row, parts);
    // What hooks said after a step belongs to it.
    let of_steps = passages.iter().enumerate().filter(|(_, passage)| passage.role == Role::Assistant);
    let unfinished = of_steps.map(|(place, _)| place).nth(steps).unwrap_or(passages.len());
    let under_way = passages.split_off(unfinished);
    passages.into_iter().for_each(|passage| conversation.push_stored(passage));
    under_way.iter().for_each(|passage| apply_marks(&row.id, &passage.parts, conversation));
}

/// One passage per step of an assistant message, plus one for what a hook said after it; one passage for a user
/// message.
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
