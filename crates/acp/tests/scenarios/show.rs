//! What a client received, as the short items of a transcript. Knows messages, not their meaning.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::grammar::quoted;
use crate::limits::SHOWN_TEXT;
use crate::names::Names;

/// A request of the client, for telling its answer.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) label: Option<String>,
}

/// Which details a scenario is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Details<'a> {
    pub(crate) shown: &'a [String],
    pub(crate) live: Live,
}

/// Views of a running call come as fast as the clock allows; they can be waited for, but not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Live {
    Shown,
    LeftOut,
}

impl Details<'_> {
    fn has(self, name: &str) -> bool {
        self.shown.iter().any(|shown| shown == name)
    }
}

pub(crate) struct Teller<'a> {
    pub(crate) asked: &'a HashMap<u64, Asked>,
    pub(crate) names: &'a mut Names,
    pub(crate) details: Details<'a>,
}

/// Text that may still grow.
struct Open {
    speaker: &'static str,
    session: String,
    message: Value,
    text: String,
}

impl Teller<'_> {
    pub(crate) fn items(&mut self, messages: &[Value]) -> Vec<String> {
        let mut items = Vec::new();
        let mut open: Option<Open> = None;
        for message in in_order_of_calls(messages) {
            let text = text_of(message);
            if let (Some(text), Some(open)) = (&text, &mut open)
                && (text.speaker, &text.session, &text.message)
                    == (open.speaker, &open.session, &open.message)
            {
                open.text.push_str(&text.text);
                continue;
            }
            items.extend(open.take().map(|open| self.said(&open)));
            match text {
                Some(text) => open = Some(text),
                None => items.extend(self.item(message)),
            }
        }
        items.extend(open.map(|open| self.said(&open)));
        counted(settled(items))
    }

    fn said(&mut self, open: &Open) -> String {
        let id = match self.details.has("ids") {
            true => format!(" {}", self.names.shorten(open.message.as_str().unwrap_or("-"))),
            false => String::new(),
        };
        let of = self.of(&open.session);
        format!("{of}{}{id} {}", open.speaker, self.text(&open.text))
    }

    /// Said in front of what belongs to another session than the first.
    fn of(&mut self, session: &str) -> String {
        match self.names.shorten(session).as_str() {
            "ses_1" => String::new(),
            other => format!("{other} "),
        }
    }

    fn item(&mut self, message: &Value) -> Option<String> {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("session/update") => {
                let of = self.of(params["sessionId"].as_str().unwrap_or_default());
                self.update(&params["update"]).map(|item| of + &item)
            }
            Some("session/request_permission") => Some(self.question(params)),
            Some("$/cancel_request") => Some("withdrawn".to_owned()),
            Some(borrowed) if is_borrowed(borrowed) => Some(self.borrowed(borrowed, params)),
            Some(other) => Some(format!("{other} {}", self.json(params))),
            None => Some(self.answer(message)),
        }
    }

    fn update(&mut self, update: &Value) -> Option<String> {
        let item = match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => format!("agent_message {}", self.json(&update["content"])),
            "agent_thought_chunk" => format!("agent_thought {}", self.json(&update["content"])),
            "user_message_chunk" => format!("user_message {}", self.json(&update["content"])),
            "tool_call" => {
                let (status, kind) = (word(&update["status"]), word(&update["kind"]));
                format!("tool_call {status} {kind} {}", self.value_text(&update["title"]))
                    + &self.call(update)
            }
            "tool_call_update" => return self.call_update(update),
            "plan" => {
                let entries = update["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
                let entry = |entry: &Value| {
                    let (status, priority) = (word(&entry["status"]), word(&entry["priority"]));
                    format!("{status} {priority} {}", quoted(entry["content"].as_str().unwrap_or_default()))
                };
                format!("plan [{}]", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
            "current_mode_update" => format!("mode {}", word(&update["currentModeId"])),
            "config_option_update" => format!("config {}", options(&update["configOptions"])),
            "session_info_update" if !self.details.has("titles") => return None,
            "session_info_update" => format!("title {}", self.value_text(&update["title"])),
            "available_commands_update" if !self.details.has("commands") => return None,
            "available_commands_update" => {
                let commands = update["availableCommands"].as_array().into_iter().flatten();
                let command = |command: &Value| match command["input"]["hint"].as_str() {
                    Some(hint) => format!("{} {}", word(&command["name"]), hint.to_uppercase()),
                    None => word(&command["name"]).to_owned(),
                };
                format!("commands [{}]", commands.map(command).collect::<Vec<_>>().join(", "))
            }
            "usage_update" if !self.details.has("usage") => return None,
            "usage_update" => {
                let ours = &update["_meta"]["attache"];
                let about = if ours["estimated"] == true { "about " } else { "" };
                let step = self.json(&ours["stepTokens"]);
                let cost = match update["cost"].is_null() {
                    true => String::new(),
                    false => format!(" {} {}", update["cost"]["amount"], word(&update["cost"]["currency"])),
                };
                format!("usage {about}{}/{} {step}{cost}", update["used"], update["size"])
            }
            "compaction_update" => {
                let summary = match update["summary"].as_array() {
                    Some(blocks) => format!(" {}", self.json(&Value::Array(blocks.clone()))),
                    None => String::new(),
                };
                let meta = &update["_meta"];
                let meta = if meta.is_null() { String::new() } else { format!(" {}", self.json(meta)) };
                format!("compaction {}{summary}{meta}", word(&update["status"]))
            }
            "compaction_summary_chunk" => {
                format!("compaction text {}", self.value_text(&update["content"]["text"]))
            }
            "notice" => {
                let title = self.value_text(&update["title"]);
                let description = match update["description"].is_null() {
                    true => String::new(),
                    false => format!(" {}", self.value_text(&update["description"])),
                };
                format!("notice {} {title}{description}", word(&update["severity"]))
            }
            _ => self.json(update),
        };
        Some(item)
    }

    fn call_update(&mut self, update: &Value) -> Option<String> {
        let status = word(&update["status"]);
        if is_live_view(update) && self.details.live == Live::LeftOut {
            return None;
        }
        // The title is told when it is new: with the arguments.
        let title = match status {
            "pending" => format!(" {}", self.value_text(&update["title"])),
            _ => String::new(),
        };
        Some(format!("tool_call_update {status}{title}{}", self.call(update)))
    }

    /// What a call shows of itself: places, then content, then data if the scenario is about them.
    fn call(&mut self, call: &Value) -> String {
        let mut told = String::new();
        if self.details.has("ids") {
            told += &format!(" {}", word(&call["toolCallId"]));
        }
        let status = word(&call["status"]);
        for location in call["locations"].as_array().into_iter().flatten().filter(|_| status != "in_progress")
        {
            let path = self.names.shorten(location["path"].as_str().unwrap_or_default());
            let line = location["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
            told += &format!(" @{path}{line}");
        }
        for block in call["content"].as_array().into_iter().flatten() {
            told += &match block["type"].as_str() {
                Some("diff") => {
                    let path = self.names.shorten(block["path"].as_str().unwrap_or_default());
                    let old = match &block["oldText"] {
                        Value::Null => "null".to_owned(),
                        old => self.value_text(old),
                    };
                    format!(" diff {path} {old} -> {}", self.value_text(&block["newText"]))
                }
                Some("content") if block["content"]["type"] == "text" => {
                    format!(" {}", self.value_text(&block["content"]["text"]))
                }
                _ => format!(" {}", self.json(block)),
            };
        }
        let details = self.details;
        for key in ["rawInput", "rawOutput"].into_iter().filter(|_| details.has("raw")) {
            if let Some(raw) = call.get(key) {
                told += &format!(" {key} {}", self.json(raw));
            }
        }
        told
    }

    /// A request for what the editor does itself, without what differs from machine to machine.
    fn borrowed(&mut self, method: &str, params: &Value) -> String {
        let path = self.names.shorten(params["path"].as_str().unwrap_or_default());
        match method {
            "fs/read_text_file" => format!("{method} {path}"),
            "fs/write_text_file" => format!("{method} {path} {}", self.value_text(&params["content"])),
            "terminal/create" => {
                let command = params["args"].as_array().and_then(|words| words.last()).cloned();
                format!("{method} {}", self.value_text(&command.unwrap_or_default()))
            }
            _ => method.to_owned(),
        }
    }

    fn question(&mut self, params: &Value) -> String {
        let call = &params["toolCall"];
        let of = self.of(params["sessionId"].as_str().unwrap_or_default());
        let title = self.value_text(&call["title"]);
        let mut told = format!("{of}permission? {} {title}", word(&call["name"]));
        if self.details.has("options") {
            told += &self.call(call);
            let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
            let names: Vec<String> = options.iter().map(|option| self.value_text(&option["name"])).collect();
            told += &format!(" [{}]", names.join(", "));
        }
        told
    }

    fn answer(&mut self, message: &Value) -> String {
        let asked = message["id"].as_u64().and_then(|id| self.asked.get(&id)).cloned();
        // Requests that were sent as lines are told by the id they were sent under.
        let label = match &asked {
            Some(asked) => asked.label.clone(),
            None => message["id"].as_str().map(str::to_owned),
        };
        let label = label.map(|label| format!(" {label}")).unwrap_or_default();
        if let Some(error) = message.get("error") {
            // What says the same again is only counted.
            let data = match &error["data"] {
                Value::Null => String::new(),
                data if *data == json!({ "details": error["message"] }) => " +details".to_owned(),
                data => format!(" {}", self.json(data)),
            };
            return format!("error{label} {} {}{data}", error["code"], self.value_text(&error["message"]));
        }
        let (result, method) = (&message["result"], asked.map(|asked| asked.method).unwrap_or_default());
        match method.as_str() {
            _ if result["stopReason"].is_string() => {
                let id = match self.details.has("ids") {
                    true => format!(" {}", self.json(&result["_meta"]["attache/messageId"])),
                    false => String::new(),
                };
                format!("{}{label}{id}", word(&result["stopReason"]))
            }
            "session/new" | "session/fork" => {
                let id = self.names.shorten(result["sessionId"].as_str().unwrap_or_default());
                format!("ok {method} {id}{}", self.chosen(result))
            }
            "session/load" | "session/resume" => format!("ok {method}{}", self.chosen(result)),
            "session/set_config_option" => format!("ok {method} {}", options(&result["configOptions"])),
            "session/list" => self.list(result),
            _ if result.as_object().is_some_and(serde_json::Map::is_empty) => format!("ok {method}"),
            _ => format!("ok {method} {}", self.json(result)),
        }
    }

    fn chosen(&self, result: &Value) -> String {
        match self.details.has("options") {
            true => {
                format!(
                    " mode={} {}",
                    word(&result["modes"]["currentModeId"]),
                    options(&result["configOptions"])
                )
            }
            false => String::new(),
        }
    }

    fn list(&mut self, result: &Value) -> String {
        let sessions = result["sessions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let told: Vec<String> = sessions
            .iter()
            .map(|session| {
                let id = self.names.shorten(session["sessionId"].as_str().unwrap_or_default());
                format!("{id} {}", self.value_text(&session["title"]))
            })
            .collect();
        let told = match told.len() {
            0..=4 => told.join(", "),
            count => format!("{count} sessions"),
        };
        let more = match result["nextCursor"].as_str() {
            Some(cursor) => {
                self.names.remember_cursor(cursor);
                " and more"
            }
            None => "",
        };
        format!("ok session/list [{told}]{more}")
    }

    fn value_text(&mut self, value: &Value) -> String {
        match value.as_str() {
            Some(text) => self.text(text),
            None => value.to_string(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        quoted(&abridged(&self.names.shorten(text)))
    }

    fn json(&mut self, value: &Value) -> String {
        fn abridge(value: &mut Value) {
            match value {
                Value::String(text) => *text = abridged(text),
                Value::Array(items) => items.iter_mut().for_each(abridge),
                Value::Object(fields) => fields.values_mut().for_each(abridge),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        let mut value = self.names.shorten_json(value);
        abridge(&mut value);
        value.to_string()
    }
}

/// What a call that runs shows of itself.
fn is_live_view(update: &Value) -> bool {
    word(&update["status"]) == "in_progress" && !update["content"].is_null()
}

/// Calls that run side by side end in any order: their results are told in the order in which the calls were
/// made. What is shown of running ones in between comes by chance, and before all of them.
fn in_order_of_calls(messages: &[Value]) -> Vec<&Value> {
    let call = |message: &Value| message["params"]["update"]["toolCallId"].clone();
    let is_live = |message: &Value| is_live_view(&message["params"]["update"]);
    let is_result = |message: &Value| {
        ["completed", "failed"].contains(&message["params"]["update"]["status"].as_str().unwrap_or_default())
    };
    let place = |message: &&Value| messages.iter().position(|other| call(other) == call(message));
    let mut ordered: Vec<&Value> = messages.iter().collect();
    let may_move = |message: &Value| is_result(message) || is_live(message);
    for results in ordered.chunk_by_mut(|a, b| may_move(a) && may_move(b)) {
        results.sort_by_key(|message| is_result(message).then(|| place(message)));
    }
    ordered
}

/// The answer to a choice and the update that tells everybody of it are under way at the same time: told in one
/// order. So are the answers to taking a message back and to that message, and the answer to a rewind and the
/// result of a task that it ends.
fn settled(mut items: Vec<String>) -> Vec<String> {
    const CHOICES: [&str; 3] = ["ok session/set_", "ok _attache/queue/cancel", "ok _attache/session/rewind"];
    const NEWS: [&str; 4] = ["mode ", "config ", "cancelled ", "agent_message \"Background task"];
    let is_choice = |item: &str| CHOICES.iter().any(|start| item.starts_with(start));
    let is_news = |item: &str| NEWS.iter().any(|start| item.starts_with(start));
    for last in 1..items.len() {
        let mut index = last;
        while index > 0 && is_news(&items[index]) && is_choice(&items[index - 1]) {
            items.swap(index - 1, index);
            index -= 1;
        }
    }
    // Updates, requests of tools and withdrawn questions take different ways out.
    items.sort_by_key(|item| is_borrowed(item) || item == "withdrawn");
    items
}

/// Whether a request is for what the editor does itself.
pub(crate) fn is_borrowed(method: &str) -> bool {
    method.starts_with("fs/") || method.starts_with("terminal/")
}

/// Many answers to the same request are one item.
fn counted(items: Vec<String>) -> Vec<String> {
    const MANY: usize = 5;
    let plain = |item: &String| item.split_once(" ses_").map_or(item.as_str(), |(plain, _)| plain).to_owned();
    let mut told: Vec<String> = Vec::with_capacity(items.len());
    for run in items.chunk_by(|one, next| plain(one) == plain(next)) {
        match run.len() >= MANY && run[0].starts_with("ok ") {
            true => told.push(format!("{} ({} times)", plain(&run[0]), run.len())),
            false => told.extend_from_slice(run),
        }
    }
    told
}

/// Text of a message, which adjacent pieces are joined to.
fn text_of(message: &Value) -> Option<Open> {
    let update = &message["params"]["update"];
    let speaker = match update["sessionUpdate"].as_str()? {
        "agent_message_chunk" => "agent_message",
        "agent_thought_chunk" => "agent_thought",
        "user_message_chunk" => "user_message",
        _ => return None,
    };
    let text = update["content"]["text"].as_str().filter(|_| update["content"]["type"] == "text")?.to_owned();
    let session = message["params"]["sessionId"].as_str()?.to_owned();
    Some(Open { speaker, session, message: update["messageId"].clone(), text })
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn options(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let told: Vec<String> = options
        .iter()
        .map(|option| format!("{}={}", word(&option["id"]), word(&option["currentValue"])))
        .collect();
    told.join(" ")
}

pub(crate) fn abridged(text: &str) -> String {
    if text.len() <= SHOWN_TEXT {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(SHOWN_TEXT / 4);
    let tail = text.ceil_char_boundary(text.len() - SHOWN_TEXT / 4);
    format!("{}…{}…{}", &text[..head], text.len() - head - (text.len() - tail), &text[tail..])
}
