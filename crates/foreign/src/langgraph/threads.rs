//! Threads of a LangGraph server: found again, or made anew; and the calls that a thread was left with.

use std::collections::HashSet;

use reqwest::Method;
use serde_json::{Value, json};

use super::LangGraphAgent;
use crate::ForeignError;

/// The thread of a session.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) id: String,
    /// It has no messages yet.
    pub(super) is_new: bool,
    /// Results for calls that were never answered: a model refuses a conversation with open calls.
    pub(super) dangling: Vec<Value>,
}

impl Thread {
    /// The one that is known, if the server still has it with its messages; else a new one.
    pub(super) async fn find(agent: &LangGraphAgent, known: Option<&str>) -> Result<Self, ForeignError> {
        if let Some(known) = known
            && let Some(state) = state(agent, known).await?
            && let Some(messages) = state.pointer("/values/messages").and_then(Value::as_array)
            && !messages.is_empty()
        {
            return Ok(Self { id: known.to_owned(), is_new: false, dangling: dangling(messages) });
        }
        let made = agent.server.json(Method::POST, &agent.url("/threads"), Some(&json!({}))).await?;
        let id = made.as_ref().and_then(|made| made.get("thread_id")?.as_str());
        let none =
            || ForeignError::new("the server made no thread; is `url` the root of a LangGraph server?");
        Ok(Self { id: id.ok_or_else(none)?.to_owned(), is_new: true, dangling: Vec::new() })
    }
}

/// `None`: there is no such thread any more.
pub(super) async fn state(agent: &LangGraphAgent, thread: &str) -> Result<Option<Value>, ForeignError> {
    agent.server.json(Method::GET, &agent.url(&format!("/threads/{thread}/state")), None).await
}

fn dangling(messages: &[Value]) -> Vec<Value> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let answered: HashSet<String> =
        messages.iter().filter_map(|message| text(message, "tool_call_id")).collect();
    let calls = messages.iter().rev().find_map(|message| message.get("tool_calls")?.as_array());
    let open = calls.into_iter().flatten().filter_map(|call| {
        let (id, name) = (text(call, "id")?, text(call, "name")?);
        (!answered.contains(&id)).then(|| {
            json!({ "type": "tool", "tool_call_id": id, "name": name, "status": "error",
                    "content": "not run: the user cancelled the turn" })
        })
    });
    open.collect()
}
