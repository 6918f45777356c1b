//! The conversation as the model sees it: passages from rows. Reading only; what is sent is the turn's business.

use std::sync::Arc;

use serde_json::Value;

use crate::ids::SessionId;
use crate::journal::replay::parts_of;
use crate::limits::{HISTORY_BYTES, PAGE_BYTES};
use crate::part::{Part, Passage, Role};
use crate::ports::store::{MessageRow, RowRange, Store, StoreResult};

/// Reads the visible conversation before `before_seq`. A prompt the model refused is left out, with its answer.
pub(crate) async fn load(
    store: &dyn Store,
    session: &SessionId,
    before_seq: Option<i64>,
) -> StoreResult<Vec<Arc<Passage>>> {
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
    Ok(passages)
}

fn append(row: &MessageRow, parts: Vec<Part>, passages: &mut Vec<Arc<Passage>>) {
    if row.metadata.get("refused").and_then(Value::as_bool) == Some(true) {
        return;
    }
    passages.extend(split(row, parts));
}

/// One passage per step of an assistant message; a user message is one passage.
pub(crate) fn split(row: &MessageRow, parts: Vec<Part>) -> Vec<Arc<Passage>> {
    let passage = |parts| Arc::new(Passage::new(row.id.clone(), row.role, parts));
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
    steps.into_iter().map(passage).collect()
}

/// Whether a history is small enough to be kept between turns.
pub(crate) fn worth_keeping(passages: &[Arc<Passage>]) -> bool {
    let mut bytes = 0;
    for passage in passages {
        bytes += passage.parts.iter().map(weight).sum::<usize>();
        if bytes > HISTORY_BYTES {
            return false;
        }
    }
    true
}

fn weight(part: &Part) -> usize {
    match part {
        Part::Text { text, .. } | Part::Reasoning { text, .. } => 96 + text.len(),
        Part::File { url, .. } => 96 + url.len(),
        Part::Tool(tool) => {
            let shown =
                tool.output.as_ref().map_or(0, approximate) + tool.input.as_ref().map_or(0, approximate);
            512 + shown + tool.tool_metadata.as_ref().map_or(0, approximate)
        }
        Part::StepStart | Part::SourceUrl { .. } | Part::SourceDocument { .. } => 96,
        Part::Data { data, .. } => 96 + approximate(data),
    }
}

fn approximate(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
        Value::String(text) => 24 + text.len(),
        Value::Array(items) => 24 + items.iter().map(approximate).sum::<usize>(),
        Value::Object(fields) => {
            24 + fields.iter().map(|(key, value)| key.len() + approximate(value)).sum::<usize>()
        }
    }
}
