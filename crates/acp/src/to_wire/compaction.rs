//! How clients see a compaction: step by step if they asked for that, else in one line at the end.

use agent_client_protocol_schema::v1::{
    CompactionStatus, CompactionSummaryChunk, CompactionUpdate, Meta, SessionUpdate,
};
use attache_core::entry::Entry;
use attache_core::metadata::OWN_KEY;
use serde_json::{Map, Value};

use super::{CompactionUpdates, EncodeResult, WireView, line};
use crate::limits::SURELY_FITS_BYTES;

pub(super) fn write(
    entry: Entry<'_>,
    view: &WireView,
    id: Option<&str>,
    data: &Value,
    out: &mut Vec<u8>,
) -> EncodeResult {
    let status = match text(data, "status") {
        Some("completed") => CompactionStatus::Completed,
        Some("failed") => CompactionStatus::Failed,
        Some("cancelled") => CompactionStatus::Cancelled,
        Some(_) | None => CompactionStatus::InProgress,
    };
    match view.compaction {
        CompactionUpdates::Unwanted => {
            let words = match status {
                CompactionStatus::Completed if text(data, "summary").is_none() => {
                    "Old tool results were shortened to make room.\n"
                }
                CompactionStatus::Completed => "Earlier messages were summarised to make room.\n",
                CompactionStatus::Failed => "Summarising earlier messages failed.\n",
                CompactionStatus::Cancelled => "Summarising earlier messages was cancelled.\n",
                // A load could not repeat these: it knows only the end.
                _ => return Ok(()),
            };
            line::thought(entry, view, words, out)
        }
        CompactionUpdates::Wanted => {
            let id = text(data, "id").or(id).unwrap_or(entry.message_id.as_str()).to_owned();
            update(entry, &id, status, data, out)
        }
    }
}

fn update(
    entry: Entry<'_>,
    id: &str,
    status: CompactionStatus,
    data: &Value,
    out: &mut Vec<u8>,
) -> EncodeResult {
    if status == CompactionStatus::InProgress
        && let Some(more) = text(data, "text")
    {
        return pieces(entry, id, more, out);
    }
    let mut update = CompactionUpdate::new(id.to_owned(), status);
    // A null would erase what we said before.
    if let Some(meta) = meta(data) {
        update = update.meta(meta);
    }
    if let Some(error) = text(data, "error") {
        update = update.error(error.to_owned());
    }
    match text(data, "summary").filter(|summary| !summary.is_empty()) {
        Some(summary) if summary.len() <= SURELY_FITS_BYTES => {
            let update = update.summary(vec![summary.into()]);
            line::update(entry, &SessionUpdate::CompactionUpdate(update), out)
        }
        // The summary is too long for one line: empty it, then fill it piece by piece.
        Some(summary) => {
            line::update(entry, &SessionUpdate::CompactionUpdate(update.summary(Vec::new())), out)?;
            pieces(entry, id, summary, out)
        }
        None => {
            // The compaction reads a new piece of the conversation, so replace the text about the one before.
            let update = if data.get("piece").is_some() { update.summary(Vec::new()) } else { update };
            line::update(entry, &SessionUpdate::CompactionUpdate(update), out)
        }
    }
}

fn pieces(entry: Entry<'_>, id: &str, summary: &str, out: &mut Vec<u8>) -> EncodeResult {
    for piece in line::pieces(summary) {
        let chunk = CompactionSummaryChunk::new(id.to_owned(), piece.into());
        line::update(entry, &SessionUpdate::CompactionSummaryChunk(chunk), out)?;
    }
    Ok(())
}

/// The progress, and what the compaction did beside the summary.
fn meta(data: &Value) -> Option<Meta> {
    let count = |value: Option<&Value>| value.and_then(Value::as_u64);
    let stubs = data.get("stubs").and_then(|stubs| stubs.get("results"));
    let ours: Map<String, Value> = [
        ("piece", count(data.get("piece"))),
        ("of", count(data.get("of"))),
        ("summaryTokens", count(data.get("summary_tokens"))),
        ("shortenedResults", count(stubs)),
    ]
    .into_iter()
    .filter_map(|(name, count)| Some((name.to_owned(), count?.into())))
    .collect();
    (!ours.is_empty()).then(|| Meta::from_iter([(OWN_KEY.to_owned(), Value::Object(ours))]))
}

fn text<'a>(data: &'a Value, key: &str) -> Option<&'a str> {
    data.get(key).and_then(Value::as_str)
}
