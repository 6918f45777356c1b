//! What a LangGraph run streams, as chunks: messages in pieces, updates of its state, events of its own. A
//! message is told once, whether it came in pieces or whole.

use std::collections::{HashMap, HashSet};

use attache_core::chunk::{Chunk, Rest, StreamId, ToolMarks};
use attache_core::ids::CallId;
use serde_json::{Value, json};

use super::calls::StreamedCall;
use super::interrupts::{GraphCall, Interrupts};
use super::streams::{MessageStream, StreamPhase};
use crate::agent::{ForeignUsage, RunEvent};
use crate::limits::NESTED_CHARACTERS;

#[derive(Debug, Default)]
pub(super) struct GraphDecoder {
    pub(super) said: Vec<RunEvent>,
    pub(super) interrupts: Interrupts,
    /// Messages of the model that were told, by their ids.
    pub(super) messages: HashMap<String, ToldMessage>,
    /// Those that an earlier process told.
    earlier: HashSet<String>,
    /// Of the last message that made any, in order.
    pub(super) calls: Vec<GraphCall>,
    /// Calls without a result.
    pub(super) open: HashSet<CallId>,
    /// Below which call a subgraph is, by the root of its name.
    nested: HashMap<String, NestedGraph>,
}

/// How much of a message was told.
#[derive(Debug, Default)]
pub(super) struct ToldMessage {
    pub(super) text: StreamPhase,
    pub(super) reasoning: StreamPhase,
    pub(super) calls: Vec<StreamedCall>,
    pub(super) is_over: bool,
}

#[derive(Debug)]
struct NestedGraph {
    call: CallId,
    lines: String,
}

impl GraphDecoder {
    /// Goes on where an earlier process was: these calls were told, and all messages of this state.
    pub(super) fn taken_up(calls: Vec<GraphCall>, state: &Value) -> Self {
        let open = calls.iter().map(|call| call.id.clone()).collect();
        let messages = state.pointer("/values/messages").and_then(Value::as_array);
        let earlier = messages.into_iter().flatten().map(id_of).collect();
        Self { calls, open, earlier, ..Self::default() }
    }

    /// One event; `name` may be that of a subgraph: `messages|node:id`.
    pub(super) fn take(&mut self, name: &str, data: &Value) {
        let (kind, place) = name.split_once('|').unwrap_or((name, ""));
        let nested = self.nested_call(place);
        match (kind, nested) {
            ("messages", None) => self.message(data.get(0).unwrap_or(data)),
            ("updates", None) => self.updates(data),
            ("updates", Some(root)) => self.nested_updates(&root, data),
            ("custom", _) => self.custom(data),
            // Pieces of a message within a call: it is told as progress once it is whole.
            _ => {}
        }
    }

    /// The call that a subgraph works for; `None`: it is a part of the agent itself.
    fn nested_call(&mut self, place: &str) -> Option<String> {
        let root = place.split('|').next().filter(|root| !root.is_empty())?.to_owned();
        if self.nested.contains_key(&root) {
            return Some(root);
        }
        let taken: Vec<&CallId> = self.nested.values().map(|nested| &nested.call).collect();
        let call =
            self.calls.iter().find(|call| self.open.contains(&call.id) && !taken.contains(&&call.id))?;
        let call = call.id.clone();
        self.nested.insert(root.clone(), NestedGraph { call, lines: String::new() });
        Some(root)
    }

    fn nested_updates(&mut self, root: &str, data: &Value) {
        let mut lines = Vec::new();
        for (_, update) in data.as_object().into_iter().flatten() {
            for message in messages_in(update) {
                let text = text_in(message.get("content").unwrap_or(&Value::Null));
                let named = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
                lines.extend(named.filter_map(|call| Some(format!("{}()", call.get("name")?.as_str()?))));
                lines.extend((!text.is_empty() && !is_human(&message)).then_some(text));
            }
        }
        if let Some(interrupts) = data.get("__interrupt__") {
            self.interrupts.add(interrupts);
        }
        let Some(nested) = self.nested.get_mut(root).filter(|_| !lines.is_empty()) else { return };
        for line in lines {
            nested.lines.push_str(&line);
            nested.lines.push('\n');
        }
        let skipped = nested.lines.chars().count().saturating_sub(NESTED_CHARACTERS);
        let shown: String = nested.lines.chars().skip(skipped).collect();
        let (call_id, output) = (nested.call.clone(), json!(shown.trim_end()));
        if self.open.contains(&call_id) {
            let (marks, rest) = (ToolMarks::default(), Rest::none());
            let preliminary = Some(true);
            self.say(Chunk::ToolOutputAvailable { call_id, output, preliminary, marks, rest });
        }
    }

    fn updates(&mut self, data: &Value) {
        for (node, update) in data.as_object().into_iter().flatten() {
            if node == "__interrupt__" {
                self.interrupts.add(update);
                continue;
            }
            for message in messages_in(update) {
                self.whole(&message);
            }
            for state in update.as_array().map_or(std::slice::from_ref(update), Vec::as_slice) {
                if let Some(todos) = state.get("todos").and_then(Value::as_array) {
                    self.plan(todos);
                }
                if let Some(output) = state.get("structured_response").filter(|output| !output.is_null()) {
                    self.text_part("structured", &output.to_string());
                }
            }
        }
    }

    /// A piece of a message, or a message of a model that does not stream.
    fn message(&mut self, message: &Value) {
        if self.earlier.contains(&id_of(message)) {
            return;
        }
        match message.get("type").and_then(Value::as_str).unwrap_or_default() {
            "AIMessageChunk" => self.piece(message),
            _ => self.whole(message),
        }
    }

    fn piece(&mut self, message: &Value) {
        let id = id_of(message);
        self.begin(&id);
        self.content(&id, message);
        let calls = message.get("tool_call_chunks").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.call_piece(&id, call);
        }
        self.usage(message);
        if message.get("chunk_position").and_then(Value::as_str) == Some("last") {
            self.finish(&id);
        }
    }

    /// A whole message: what of it was not told yet.
    fn whole(&mut self, message: &Value) {
        match message.get("type").and_then(Value::as_str).unwrap_or_default() {
            "ai" | "AIMessage" if self.earlier.contains(&id_of(message)) => {}
            "ai" | "AIMessage" => {
                let id = id_of(message);
                if !self.messages.contains_key(&id) {
                    self.begin(&id);
                    self.content(&id, message);
                    self.usage(message);
                }
                self.whole_calls(&id, message);
                self.finish(&id);
            }
            "tool" | "ToolMessage" => self.result(message),
            _ => {}
        }
    }

    /// A model speaks again: that is another step, unless calls are still open.
    fn begin(&mut self, id: &str) {
        if self.messages.contains_key(id) {
            return;
        }
        let before: Vec<String> = self.messages.keys().cloned().collect();
        before.iter().for_each(|before| self.finish(before));
        if self.open.is_empty() {
            if !self.messages.is_empty() {
                self.say(Chunk::FinishStep { rest: Rest::none() });
                self.say(Chunk::StartStep { rest: Rest::none() });
            }
            self.calls.clear();
        }
        self.messages.insert(id.to_owned(), ToldMessage::default());
    }

    fn content(&mut self, id: &str, message: &Value) {
        let thought = message.pointer("/additional_kwargs/reasoning_content").and_then(Value::as_str);
        if let Some(thought) = thought {
            self.delta(id, MessageStream::Reasoning, thought);
        }
        match message.get("content") {
            Some(Value::String(text)) => self.delta(id, MessageStream::Text, text),
            Some(Value::Array(items)) => {
                for item in items {
                    let text = |key: &str| item.get(key).and_then(Value::as_str);
                    let thought = text("thinking").or(text("reasoning"));
                    match (text("text").or(item.as_str()), thought) {
                        (_, Some(thought)) => self.delta(id, MessageStream::Reasoning, thought),
                        (Some(said), None) => self.delta(id, MessageStream::Text, said),
                        (None, None) => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn delta(&mut self, id: &str, stream: MessageStream, text: &str) {
        if text.is_empty() {
            return;
        }
        let Some(told) = self.messages.get_mut(id) else { return };
        let phase = stream.phase(told);
        let begins = *phase == StreamPhase::Unsaid;
        if *phase == StreamPhase::Closed {
            return;
        }
        *phase = StreamPhase::Open;
        let name = stream.id(id);
        if begins {
            self.say(stream.start(name.clone()));
        }
        self.say(stream.more(&name, text));
    }

    fn plan(&mut self, todos: &[Value]) {
        let entry = |todo: &Value| {
            let content = todo.get("content").and_then(Value::as_str)?;
            let status = todo.get("status").and_then(Value::as_str);
            let status = status.filter(|status| ["pending", "in_progress", "completed"].contains(status));
            let status = status.unwrap_or("pending");
            Some(json!({ "content": content, "priority": "medium", "status": status }))
        };
        let entries: Vec<Value> = todos.iter().filter_map(entry).collect();
        let (name, id) = ("plan".to_owned(), Some("plan".to_owned()));
        let data = json!({ "entries": entries });
        self.say(Chunk::Data { name, id, data, transient: None, rest: Rest::none() });
    }

    /// An event of the graph's own, by the name that it gives itself.
    fn custom(&mut self, data: &Value) {
        let named = ["type", "name", "event"].into_iter().find_map(|key| data.get(key)?.as_str());
        let plain = |name: &&str| {
            name.len() <= 40 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        };
        let name = named.filter(plain).filter(|name| !name.is_empty()).unwrap_or("custom").to_owned();
        self.say(Chunk::Data { name, id: None, data: data.clone(), transient: None, rest: Rest::none() });
    }

    fn text_part(&mut self, name: &str, text: &str) {
        let id: StreamId = name.into();
        self.say(MessageStream::Text.start(id.clone()));
        self.say(Chunk::text_delta(&id, text));
        self.say(MessageStream::Text.end(id));
    }

    fn usage(&mut self, message: &Value) {
        let Some(counted) = message.get("usage_metadata").filter(|counted| counted.is_object()) else {
            return;
        };
        let count = |path: &str| counted.pointer(path).and_then(Value::as_u64).unwrap_or_default();
        let mut usage = ForeignUsage::default();
        usage.tokens.cache_read = count("/input_token_details/cache_read");
        usage.tokens.cache_write = count("/input_token_details/cache_creation");
        let cached = usage.tokens.cache_read + usage.tokens.cache_write;
        usage.tokens.input = count("/input_tokens").saturating_sub(cached);
        usage.tokens.reasoning = count("/output_token_details/reasoning");
        usage.tokens.output = count("/output_tokens").saturating_sub(usage.tokens.reasoning);
        if usage.tokens.total() > 0 {
            self.said.push(RunEvent::Usage(usage));
        }
    }

    pub(super) fn say(&mut self, chunk: Chunk) {
        self.said.push(RunEvent::Chunk(chunk));
    }
}

fn id_of(message: &Value) -> String {
    message.get("id").and_then(Value::as_str).unwrap_or("message").to_owned()
}

fn is_human(message: &Value) -> bool {
    message.get("type").and_then(Value::as_str) == Some("human")
}

/// The messages of an update: of a node, or of several of its tasks.
fn messages_in(update: &Value) -> Vec<Value> {
    match update {
        Value::Array(several) => several.iter().flat_map(messages_in).collect(),
        Value::Object(state) => match state.get("messages") {
            Some(Value::Array(messages)) => messages.clone(),
            Some(single @ Value::Object(fields)) if fields.contains_key("type") => vec![single.clone()],
            Some(Value::Object(fields)) => match fields.get("value") {
                Some(Value::Array(messages)) => messages.clone(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

pub(super) fn text_in(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let text = |item: &Value| item.as_str().or_else(|| item.get("text")?.as_str()).map(str::to_owned);
            items.iter().filter_map(text).collect()
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
