//! What a child leaves: its last message, the JSON in it, and its transcript if no session keeps it.

use serde_json::Value;

use crate::export::{self, ExportSources, ExportStyle, Format};
use crate::hub::{Hub, HubError};
use crate::ids::SessionId;
use crate::journal::replay::parts_of;
use crate::limits::{NESTED_TRANSCRIPT_BYTES, PAGE_BYTES, TASK_RESULT_BYTES};
use crate::part::{Part, Role};
use crate::ports::store::{RowCursor, RowRange};
use crate::session::history;
use crate::work_state::ChangesMark;

/// The text of the last step that said anything.
#[derive(Debug, Default)]
pub(super) struct LastMessage {
    pub(super) text: String,
}

/// Reads the child's last stored answer page by page, because of a long one only the end counts.
pub(super) async fn last_message(hub: &Hub, child: &SessionId) -> Result<LastMessage, HubError> {
    let store = &hub.ports().store;
    let Some(record) = store.session(child).await? else { return Ok(LastMessage::default()) };
    let mut last = LastMessage::default();
    let mut step_ended = true;
    let mut after = Some(RowCursor { seq: record.last_seq - 1, part_index: i64::MAX });
    while after.is_some() {
        let page =
            store.read_rows(child, RowRange { after, before_seq: None, max_bytes: PAGE_BYTES }).await?;
        for (_, rows) in page.messages.iter().filter(|(message, _)| message.role == Role::Assistant) {
            for part in parts_of(rows)? {
                match part {
                    Part::StepStart => step_ended = true,
                    Part::Text { text, .. } => {
                        if std::mem::take(&mut step_ended) {
                            last.text.clear();
                        }
                        last.text.push_str(&text);
                    }
                    Part::Reasoning { .. }
                    | Part::Tool(_)
                    | Part::File { .. }
                    | Part::SourceUrl { .. }
                    | Part::SourceDocument { .. }
                    | Part::Data { .. } => {}
                }
            }
        }
        after = page.next;
    }
    last.text = last.text.trim().to_owned();
    Ok(last)
}

/// What the child changed. If the store fails, the list is missing, but not the result.
pub(super) async fn changes(hub: &Hub, child: &SessionId) -> ChangesMark {
    match history::load(&*hub.ports().store, child, None).await {
        Ok(conversation) => conversation.work().changes(),
        Err(error) => {
            tracing::warn!(%error, session = %child, "what a task changed is not known");
            ChangesMark { files: Vec::new(), uncovered: vec![format!("the subagent of session {child}")] }
        }
    }
}

/// The JSON value in a message, fenced or not.
pub(super) fn json_in(said: &str) -> Result<Value, String> {
    let bare = said.trim();
    let fenced = bare.strip_prefix("```").and_then(|rest| {
        let (language, rest) = rest.split_once('\n')?;
        let body = rest.trim_end().strip_suffix("```")?;
        matches!(language.trim(), "" | "json" | "JSON").then_some(body)
    });
    serde_json::from_str(fenced.unwrap_or(bare).trim()).map_err(|error| format!("it is not JSON ({error})"))
}

/// The conversation of a nested child in the form that clients of its parent get.
pub(super) async fn transcript(hub: &Hub, child: &SessionId) -> Option<String> {
    let ports = hub.ports();
    let sources = ExportSources { store: &*ports.store, blobs: &*ports.blobs };
    let mut text = Vec::new();
    let exported = export::export(sources, child, &ExportStyle::from(Format::Markdown), &mut text).await;
    if let Err(error) = exported {
        tracing::warn!(%error, session = %child, "the transcript of a task is lost");
        return None;
    }
    let text = String::from_utf8_lossy(&text);
    // Skips what an export says about the session itself.
    let said = text.find("\n## ").map_or("", |at| &text[at + 1..]);
    Some(cut(said.trim_end(), NESTED_TRANSCRIPT_BYTES, ""))
}

/// The result, cut to the room in the parent's context; the child's session has all of it.
pub(super) fn bounded(text: &str, room: usize, child: &SessionId) -> String {
    cut(text, room.min(TASK_RESULT_BYTES), &format!("; all of it is in session {child}"))
}

/// Keeps the beginning and the end.
fn cut(text: &str, limit: usize, where_it_is: &str) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let note = |bytes: usize| format!("\n[… {bytes} bytes left out{where_it_is} …]\n");
    let room = limit.saturating_sub(note(text.len()).len());
    let head = text.floor_char_boundary(room - room / 2);
    let tail = text.ceil_char_boundary(text.len() - room / 2);
    format!("{}{}{}", &text[..head], note(tail - head), &text[tail..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_found_bare_and_fenced() {
        for said in ["{\"a\":1}", " \n{\"a\":1}\n", "```json\n{\"a\":1}\n```", "```\n{\"a\":1}\n```\n"] {
            assert_eq!(json_in(said), Ok(json!({ "a": 1 })), "{said}");
        }
        for said in ["", "here it is: {\"a\":1}", "```rust\n1\n```", "```json\n{\"a\":1}"] {
            assert!(json_in(said).is_err(), "{said}");
        }
    }

    #[test]
    fn a_long_result_keeps_its_ends_and_says_where_the_rest_is() {
        let text = "ä".repeat(TASK_RESULT_BYTES);
        let kept = bounded(&text, usize::MAX, &SessionId::new("ses_1"));
        assert!(kept.len() <= TASK_RESULT_BYTES && kept.contains("all of it is in session ses_1"));
        assert!(kept.starts_with('ä') && kept.ends_with('ä'));
        assert_eq!(bounded("short", 100, &SessionId::new("ses_1")), "short");
    }
}
