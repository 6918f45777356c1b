//! The conversation as the model sees it: passages from rows. Reading only; what is sent is the turn's business.

use std::sync::Arc;

use crate::conversation::Conversation;
use crate::ids::SessionId;
use crate::journal::replay::parts_of;
use crate::limits::PAGE_BYTES;
use crate::part::{Part, Passage, Role};
use crate::ports::store::{MessageRow, RowRange, Store, StoreResult};

/// Reads the visible conversation before `before_seq`. A prompt the model refused is left out, with its answer.
pub(crate) async fn load(
    store: &dyn Store,
    session: &SessionId,
    before_seq: Option<i64>,
) -> StoreResult<Conversation> {
    let mut passages = Vec::new();
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
                        append(&row, gathered, &mut passages);
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
        append(&row, gathered, &mut passages);
    }
    Ok(passages.into())
}

fn append(row: &MessageRow, parts: Vec<Part>, passages: &mut Vec<Arc<Passage>>) {
    if row.metadata.is_refused() {
        return;
    }
    passages.extend(split(row, parts).into_iter().map(Arc::new));
}

/// One passage per step of an assistant message; a user message is one passage.
pub(crate) fn split(row: &MessageRow, parts: Vec<Part>) -> Vec<Passage> {
    let passage = |parts| Passage::new(row.id.clone(), row.role, parts);
    if row.role != Role::Assistant {
        return vec![passage(parts)];
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
    if let Some(step) = row.metadata.results_left_out().and_then(|step| steps.get_mut(step)) {
        step.iter_mut().for_each(leave_out_result);
    }
    steps.into_iter().map(passage).collect()
}

/// The row keeps what the call gave; the model is told that it was too much.
fn leave_out_result(part: &mut Part) {
    if let Some(tool) = part.tool_mut().filter(|tool| tool.output.is_some()) {
        tool.output = Some("(left out: it did not fit the model's context; ask for less of it)".into());
    }
}
