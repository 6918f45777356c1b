//! One session: what is known of it, how long its messages are, and pages of them from any place on.

use attache_core::ids::MessageId;
use attache_core::journal::replay::parts_of;
use attache_core::ports::figures::OutlineQuery;
use attache_core::ports::store::{MessageRow, Owner, PartRow, RowCursor, RowRange, SessionRecord};
use attache_core::ports::tool::Presentation;
use attache_core::visible::{VisibleConversation, VisibleMessage};
use attache_core::watchdog::Rules;
use axum::extract::{Path, State};
use axum::http::Uri;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::list::card;
use super::parameters::Parameters;
use super::{ApiError, ApiReply, SessionsApi, answer, json_answer};
use crate::limits::{LEAST_PAGE_BYTES, MOST_PAGE_BYTES, OUTLINE_MESSAGES, USUAL_PAGE_BYTES};

pub(super) async fn head(State(api): State<SessionsApi>, Path(id): Path<String>, uri: Uri) -> ApiReply {
    Parameters::of(&uri)?.end()?;
    let record = api.record(&id).await?;
    let row = &record.row;
    let mut head = card(&api, row).await?;
    let rules = Rules::from_json(&row.permissions);
    let rules = rules.iter().map(|rule| json!({ "action": rule.action.as_str(), "rule": rule.to_string() }));
    head["rules"] = rules.collect();
    head["granted_directories"] = paths(&row.metadata.granted_directories());
    head["additional_directories"] = paths(&row.metadata.additional_directories());
    head["queued"] = json!(record.queued.len());
    head["live"] = match &record.live_run {
        Some(live) => json!({ "message_id": live.message_id, "first_seq": live.first_seq }),
        None => Value::Null,
    };
    json_answer(&head)
}

fn paths(paths: &[std::path::PathBuf]) -> Value {
    paths.iter().map(|path| path.to_string_lossy()).collect()
}

pub(super) async fn outline(State(api): State<SessionsApi>, Path(id): Path<String>, uri: Uri) -> ApiReply {
    let mut parameters = Parameters::of(&uri)?;
    let after = parameters.cursor("after", |text| text.parse().ok())?;
    let limit = parameters.number("limit", 1..=OUTLINE_MESSAGES, OUTLINE_MESSAGES)?;
    parameters.end()?;
    let record = api.record(&id).await?;
    let query = OutlineQuery { session: record.row.id.clone(), after, limit };
    let messages = api.figures.outline(query).await?;
    let next = (messages.len() == limit).then(|| messages.last().map(|message| message.seq)).flatten();
    let left = left_behind(&api, &record).await?;
    let messages: Vec<Value> = messages
        .into_iter()
        .map(|message| {
            let whole = left.as_ref().filter(|(row, _)| row.id == message.id);
            let parts = whole.map_or(message.parts, |(_, parts)| parts.len() as u64);
            json!([message.seq, message.role.as_str(), parts, message.id])
        })
        .collect();
    json_answer(&json!({ "messages": messages, "next": next }))
}

/// The answer of a run whose process is gone: its rows may be behind its log, and nobody will say the rest.
async fn left_behind(api: &SessionsApi, record: &SessionRecord) -> Result<Option<VisibleMessage>, ApiError> {
    if record.live_run.is_none() || !matches!(record.owner, Owner::Nobody | Owner::Dead) {
        return Ok(None);
    }
    Ok(VisibleConversation::open(&*api.store, record).await?.unfinished().cloned())
}

#[derive(Serialize)]
struct PageMessage {
    id: MessageId,
    seq: i64,
    role: &'static str,
    created_at: i64,
    updated_at: i64,
    metadata: Value,
    parts: Vec<PagePart>,
}

#[derive(Serialize)]
struct PagePart {
    index: i64,
    part: Box<RawValue>,
    /// Of a call: who decided about it, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
    /// Of a call: how far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

pub(super) async fn turns(State(api): State<SessionsApi>, Path(id): Path<String>, uri: Uri) -> ApiReply {
    let mut parameters = Parameters::of(&uri)?;
    let after = parameters.cursor("after", row_cursor)?;
    let max_bytes = parameters.number("bytes", LEAST_PAGE_BYTES..=MOST_PAGE_BYTES, USUAL_PAGE_BYTES)?;
    parameters.end()?;
    let record = api.record(&id).await?;
    let left = left_behind(&api, &record).await?;
    let range = RowRange { after, before_seq: None, max_bytes };
    let page = api.store.read_rows(&record.row.id, range).await?;
    let mut messages = Vec::new();
    for (row, parts) in page.messages {
        let is_left = left.as_ref().is_some_and(|(left, _)| left.id == row.id);
        let parts = match left.as_ref().filter(|_| is_left) {
            // All of it is given with its first page; what follows has none.
            Some((_, whole)) => {
                let first =
                    after.filter(|after| Some(after.seq) == row.seq).map_or(-1, |after| after.part_index);
                whole.iter().filter(|part| part.index > first).cloned().collect()
            }
            None => parts,
        };
        messages.push(page_message(row, &parts)?);
        if is_left {
            return json_answer(&json!({ "messages": messages, "next": null }));
        }
    }
    let next = page.next.map(|next| format!("{}.{}", next.seq, next.part_index));
    json_answer(&json!({ "messages": messages, "next": next }))
}

fn row_cursor(text: &str) -> Option<RowCursor> {
    let (seq, part_index) = text.split_once('.')?;
    Some(RowCursor { seq: seq.parse().ok()?, part_index: part_index.parse().ok()? })
}

fn page_message(row: MessageRow, rows: &[PartRow]) -> Result<PageMessage, ApiError> {
    let mut parts = Vec::with_capacity(rows.len());
    for (row, part) in rows.iter().zip(parts_of(rows)?) {
        let call = part.tool();
        parts.push(PagePart {
            index: row.index,
            part: RawValue::from_string(row.data_json.clone())
                .map_err(|error| ApiError::Failed(error.to_string()))?,
            decision: call.and_then(|tool| Presentation::of(tool).decision_in_words(tool)),
            state: call.map(|tool| tool.state_in_words()),
        });
    }
    Ok(PageMessage {
        seq: row.seq.unwrap_or_default(),
        role: row.role.as_str(),
        created_at: row.created_at,
        updated_at: row.updated_at,
        metadata: message_facts(&row),
        id: row.id,
        parts,
    })
}

fn message_facts(row: &MessageRow) -> Value {
    let metadata = &row.metadata;
    let usage = metadata.usage().map(|used| {
        json!({
            "input": used.input,
            "output": used.output,
            "reasoning": used.reasoning,
            "cache_read": used.cache_read,
            "cache_write": used.cache_write,
        })
    });
    json!({
        "model": metadata.model(),
        "usage": usage,
        "cost_usd": metadata.cost_usd(),
        "system_prompt_digest": metadata.system_prompt_digest(),
        "tools": metadata.tools(),
        "turn_end": metadata.turn_end_in_words(),
        "refused": metadata.is_refused(),
        "trigger": metadata.trigger(),
    })
}

/// A digest names a text that nobody can guess: who has it has seen an answer that was made with it.
pub(super) async fn system_prompt(
    State(api): State<SessionsApi>,
    Path((id, digest)): Path<(String, String)>,
    uri: Uri,
) -> ApiReply {
    Parameters::of(&uri)?.end()?;
    api.record(&id).await?;
    match api.store.system_prompt(&digest).await? {
        Some(text) => Ok(answer(text, "text/plain; charset=utf-8")),
        None => Err(ApiError::NotThere("the text of this system prompt is not stored")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_two_numbers() {
        assert_eq!(row_cursor("7.-1"), Some(RowCursor { seq: 7, part_index: -1 }));
        for wrong in ["", "7", "7.", ".7", "a.b", "7.1.2"] {
            assert_eq!(row_cursor(wrong), None, "{wrong}");
        }
    }
}
