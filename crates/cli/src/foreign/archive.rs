//! A foreign session as the lines of an export, which an import then reads and checks like any other. The ids
//! derive from the foreign session's id, so that importing it again finds it.

use std::path::Path;

use attache_core::export::lines::VERSION;
use attache_core::ids::SessionId;
use attache_core::part::Role;
use attache_core::ports::model::Usage;
use attache_core::prompt::digest;
use serde_json::{Value, json};

use super::ForeignSession;
use super::talk::{Talk, TalkMessage};

/// Hexadecimal digits of the digest in an id: enough to keep all sessions apart.
const DIGITS: usize = 24;

pub(super) fn session_id(session: &ForeignSession) -> SessionId {
    SessionId::new(format!("ses_{}_{}", session.agent.word(), mark(session)))
}

fn mark(session: &ForeignSession) -> String {
    let whole = digest(format!("{} {}", session.agent.word(), session.id).as_bytes());
    whole.chars().take(DIGITS).collect()
}

pub(super) fn lines(session: &ForeignSession, talk: &Talk, directory: &Path) -> String {
    let (id, mark) = (session_id(session), mark(session));
    let first = talk.messages.first().map_or(session.updated_at, |message| message.at);
    let last = talk.messages.last().map_or(session.updated_at, |message| message.at);
    let mut text = String::new();
    let mut line = |value: Value| {
        text.push_str(&value.to_string());
        text.push('\n');
    };
    line(session_line(session, talk, &id, directory, (first, last.max(session.updated_at))));
    let mut parts = 0;
    for (index, message) in talk.messages.iter().enumerate() {
        let message_id = format!("msg_{mark}_{index}");
        line(json!({"type": "message", "data": {
            "id": message_id, "session_id": id, "seq": index + 1, "role": message.role.as_str(),
            "metadata": metadata(message), "created_at": message.at, "updated_at": message.at,
        }}));
        for (place, part) in message.parts.iter().enumerate() {
            let (call, state) =
                (part.tool().map(|tool| &tool.call_id), part.tool().map(|tool| tool.state.as_str()));
            line(json!({"type": "part", "data": {
                "id": format!("prt_{mark}_{index}_{place}"), "message_id": message_id, "session_id": id,
                "index": place, "type": part.kind(), "data": part, "tool_call_id": call, "tool_state": state,
                "created_at": message.at, "updated_at": message.at,
            }}));
            parts += 1;
        }
    }
    line(json!({"type": "end", "data": {"messages": talk.messages.len(), "parts": parts, "blobs": 0}}));
    text
}

fn session_line(
    session: &ForeignSession,
    talk: &Talk,
    id: &SessionId,
    directory: &Path,
    (first, last): (i64, i64),
) -> Value {
    let mut sum = Usage::default();
    for usage in talk.messages.iter().filter_map(|message| message.usage) {
        sum.input += usage.input;
        sum.output += usage.output;
        sum.reasoning += usage.reasoning;
        sum.cache_read += usage.cache_read;
        sum.cache_write += usage.cache_write;
    }
    let costs: Vec<f64> = talk.messages.iter().filter_map(|message| message.cost).collect();
    let title = session.title.as_ref().or(talk.title.as_ref());
    json!({"type": "session", "version": VERSION, "data": {
        "id": id, "agent": "build", "workspace_root": directory, "model": null, "parent_id": null,
        "parent_message_id": null, "permissions": [], "metadata": {"title": title},
        "prompt_tokens": sum.input, "completion_tokens": sum.output, "reasoning_tokens": sum.reasoning,
        "cache_read": sum.cache_read, "cache_write": sum.cache_write,
        "cost_usd": (!costs.is_empty()).then(|| costs.iter().sum::<f64>()),
        "created_at": first, "updated_at": last, "archived_at": null,
    }})
}

fn metadata(message: &TalkMessage) -> Value {
    match message.role {
        Role::User | Role::System => {
            json!({"schema_version": 1, "turn_end": {"kind": "finished", "reason": "stop"}})
        }
        Role::Assistant => {
            let mut metadata = json!({});
            if let Some(model) = &message.model {
                metadata["model"] = json!(model);
            }
            if let Some(Usage { input, output, reasoning, cache_read, cache_write }) = message.usage {
                metadata["usage"] = json!({
                    "input": input, "output": output, "reasoning": reasoning,
                    "cache_read": cache_read, "cache_write": cache_write,
                });
            }
            if let Some(cost) = message.cost {
                metadata["cost_usd"] = json!(cost);
            }
            metadata
        }
    }
}
