//! The tool `session_read`: a page of the messages of a session, by their numbers. Bounded whatever they hold.

use attache_core::calendar::iso_8601;
use attache_core::ids::SessionId;
use attache_core::journal::replay::parts_of;
use attache_core::legible::legible_line;
use attache_core::part::{Part, ToolPart};
use attache_core::ports::StoreError;
use attache_core::ports::store::{MessageRow, PartRow, SessionRecord};
use attache_core::prompt::text_of;
use attache_core::visible::VisibleConversation;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::arguments::{self, ReadArguments};
use crate::limits::{LINE_CHARACTERS, MESSAGE_TEXT_BYTES, MESSAGES, MESSAGES_MOST, PAGE_BYTES, ROWS_BYTES};
use crate::outcome::CallOutcome;
use crate::services::McpServices;

pub(crate) async fn run(services: &McpServices, arguments: Option<&RawValue>) -> CallOutcome {
    match page(services, arguments).await {
        Ok(outcome) => outcome,
        Err(error) => CallOutcome::failed(format!("session_read: {error}")),
    }
}

async fn page(services: &McpServices, arguments: Option<&RawValue>) -> Result<CallOutcome, String> {
    let ReadArguments { session, from, limit } = arguments::read(arguments)?;
    let limit = arguments::within("limit", limit, MESSAGES, MESSAGES_MOST)?;
    let from = from.unwrap_or(1);
    if from < 1 {
        return Err(format!("`from` must be at least 1, not {from}"));
    }
    let id = SessionId::new(session);
    let stored = match id.is_plain() {
        true => services.store.session(&id).await.map_err(|error| error.to_string())?,
        false => None,
    };
    let Some(record) = stored else {
        return Err(format!("there is no session {}", legible_line(id.as_str())));
    };
    let page = read_page(services, &record, from, limit).await.map_err(|error| error.to_string())?;
    Ok(outcome(&record, &page))
}

/// Messages of a page, and where the next one begins.
#[derive(Debug, Default)]
struct SessionPage {
    messages: Vec<ReadMessage>,
    next: Option<i64>,
}

/// A message as it is reported.
#[derive(Debug)]
struct ReadMessage {
    number: i64,
    role: &'static str,
    at: String,
    text: String,
    calls: Vec<Value>,
}

impl ReadMessage {
    fn bytes(&self) -> usize {
        self.text.len() + self.calls.iter().map(|call| call.to_string().len()).sum::<usize>()
    }
}

async fn read_page(
    services: &McpServices,
    record: &SessionRecord,
    from: i64,
    limit: usize,
) -> Result<SessionPage, StoreError> {
    let mut conversation = VisibleConversation::open_at(&*services.store, record, from).await?;
    let mut page = SessionPage::default();
    let mut bytes = 0;
    while let Some(rows) = conversation.next_page(ROWS_BYTES).await? {
        for (message, parts) in rows {
            let Some(number) = message.seq else { continue };
            // A long message comes in several pieces.
            if page.messages.last().is_none_or(|last| last.number != number) {
                if page.messages.len() == limit || bytes >= PAGE_BYTES {
                    page.next = Some(number);
                    return Ok(page);
                }
                page.messages.push(begun(number, &message));
            }
            if let Some(last) = page.messages.last_mut() {
                let before = last.bytes();
                add(last, &parts)?;
                bytes += last.bytes() - before;
            }
        }
    }
    Ok(page)
}

fn begun(number: i64, message: &MessageRow) -> ReadMessage {
    ReadMessage {
        number,
        role: message.role.as_str(),
        at: iso_8601(message.created_at),
        text: String::new(),
        calls: Vec::new(),
    }
}

/// What does not fit is left out, and said.
fn add(message: &mut ReadMessage, rows: &[PartRow]) -> Result<(), StoreError> {
    const CUT: &str = "\n[… left out]";
    for part in parts_of(rows)? {
        if let Some(tool) = part.tool() {
            if message.bytes() < MESSAGE_TEXT_BYTES {
                message.calls.push(call(tool));
            }
            continue;
        }
        // The model's own texts, and what a prompt said or stood for.
        let said = match &part {
            Part::Text { text, .. } => text.clone(),
            other => text_of(std::slice::from_ref(other)),
        };
        if said.is_empty() || message.text.ends_with(CUT) {
            continue;
        }
        if !message.text.is_empty() {
            message.text.push_str("\n\n");
        }
        let kept = said.floor_char_boundary(MESSAGE_TEXT_BYTES.saturating_sub(message.text.len()));
        message.text.push_str(&said[..kept]);
        if kept < said.len() {
            message.text.push_str(CUT);
        }
    }
    Ok(())
}

fn call(tool: &ToolPart) -> Value {
    let shown = tool.tool_metadata.as_ref().and_then(attache_core::metadata::own);
    let title = shown.and_then(|shown| shown.get("title")?.as_str()).unwrap_or(&tool.tool_name);
    let title: String = legible_line(title).chars().take(LINE_CHARACTERS).collect();
    json!({ "tool": tool.tool_name, "title": title, "state": tool.state.as_str() })
}

fn outcome(record: &SessionRecord, page: &SessionPage) -> CallOutcome {
    let row = &record.row;
    let messages: Vec<Value> = page.messages.iter().map(as_json).collect();
    let mut structured = json!({
        "sessionId": row.id,
        "workspace": row.workspace_root.to_string_lossy(),
        "agent": row.metadata.mode().unwrap_or(&row.agent),
        "messages": messages,
        "last": record.last_seq,
    });
    let mut text = format!("session {}", row.id);
    if let Some(title) = row.metadata.title() {
        structured["title"] = title.into();
        text.push_str(&format!(": {}", legible_line(title)));
    }
    for message in &page.messages {
        text.push_str(&format!("\n\n{} {} ({})\n{}", message.number, message.role, message.at, message.text));
        for call in &message.calls {
            let field = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default();
            text.push_str(&format!("\n* {} ({})", field("title"), field("state")));
        }
    }
    if page.messages.is_empty() {
        text.push_str("\n\nThere are no messages from there on.");
    }
    if let Some(next) = page.next {
        structured["next"] = next.into();
        text.push_str(&format!("\n\n[it goes on: from {next} of {}]", record.last_seq));
    }
    CallOutcome::done(text, structured)
}

fn as_json(message: &ReadMessage) -> Value {
    json!({
        "number": message.number,
        "role": message.role,
        "at": message.at,
        "text": message.text,
        "calls": message.calls,
    })
}
