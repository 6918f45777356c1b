//! OpenAI Chat Completions, as the stricter of its servers read it.

use std::collections::HashSet;

use serde_json::Value;

use super::{Rules, array, is_data_url, is_web_url, text};

const KEYS: [&str; 17] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "reasoning",
    "thinking",
    "prompt_cache_key",
    "parallel_tool_calls",
    "temperature",
    "stop",
    "usage",
    "chat_template_kwargs",
];

/// The longest id of a call that every server takes.
const ID: usize = 40;

pub(super) fn check(body: &Value, rules: &mut Rules) {
    rules.only_keys(body, &KEYS, "body");
    rules.spoken(body.get("model"), "model");
    let both = body.get("max_tokens").is_some() && body.get("max_completion_tokens").is_some();
    rules.must(!both, "body", "max_tokens and max_completion_tokens exclude each other");
    tools(body, rules);
    let messages = array(body, "messages");
    rules.must(!messages.is_empty(), "messages", "must not be empty");
    let mut owed: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = text(message, "role");
        if role != "tool" && !owed.is_empty() {
            rules.broken(&at, format!("the calls {} have no result yet", owed.join(", ")));
            owed.clear();
        }
        match role {
            "system" | "developer" => {
                rules.must(index == 0, &at, "only the first message may be the system's");
                match &message["content"] {
                    // OpenRouter's form for a prompt with a mark.
                    Value::Array(parts) => parts.iter().for_each(|part| rules.spoken(part.get("text"), &at)),
                    content => rules.spoken(Some(content), &at),
                }
            }
            "user" => user(message, &at, rules),
            "assistant" => owed = assistant(message, &at, rules),
            "tool" => result(message, &mut owed, &at, rules),
            other => rules.broken(&at, format!("the role can't be `{other}`")),
        }
    }
    rules.must(owed.is_empty(), "messages", &format!("the calls {} have no result", owed.join(", ")));
    let last = messages.last().map(|last| text(last, "role")).unwrap_or_default();
    rules.must(matches!(last, "user" | "tool"), "messages", "must end with a user or a result");
}

fn user(message: &Value, at: &str, rules: &mut Rules) {
    rules.only_keys(message, &["role", "content"], at);
    match &message["content"] {
        Value::String(said) => rules.must(!said.is_empty(), at, "content must not be empty"),
        Value::Array(parts) if !parts.is_empty() => {
            for (index, part) in parts.iter().enumerate() {
                user_part(part, &format!("{at}.content[{index}]"), rules);
            }
        }
        _ => rules.broken(at, "content must not be empty"),
    }
}

fn user_part(part: &Value, at: &str, rules: &mut Rules) {
    match text(part, "type") {
        "text" => rules.must(!text(part, "text").is_empty(), at, "text must not be empty"),
        "image_url" => {
            let url = text(&part["image_url"], "url");
            rules.must(is_data_url(url, "image/") || is_web_url(url), at, "must be a picture or its address");
        }
        "input_audio" => {
            let audio = &part["input_audio"];
            rules.must(matches!(text(audio, "format"), "wav" | "mp3"), at, "format must be wav or mp3");
            rules.spoken(audio.get("data"), at);
        }
        "file" => {
            let data = text(&part["file"], "file_data");
            rules.must(is_data_url(data, "application/pdf"), at, "file_data must be a data url");
            rules.spoken(part["file"].get("filename"), at);
        }
        other => rules.broken(at, format!("a user can't say `{other}`")),
    }
}

/// The ids of the calls it makes.
fn assistant(message: &Value, at: &str, rules: &mut Rules) -> Vec<String> {
    let allowed =
        ["role", "content", "tool_calls", "reasoning_content", "reasoning", "reasoning_details", "refusal"];
    rules.only_keys(message, &allowed, at);
    let calls = array(message, "tool_calls");
    let has_calls = message.get("tool_calls").is_some();
    rules.must(!has_calls || !calls.is_empty(), at, "tool_calls must not be empty");
    match message.get("content") {
        Some(Value::String(said)) => rules.must(!said.is_empty() || has_calls, at, "says nothing"),
        Some(Value::Array(parts)) => rules.must(!parts.is_empty(), at, "content must not be empty"),
        None | Some(Value::Null) => rules.must(has_calls, at, "says nothing and calls nothing"),
        Some(_) => rules.broken(at, "content must be a text"),
    }
    let mut ids = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let at = format!("{at}.tool_calls[{index}]");
        rules.must(call["type"] == "function", &at, "type must be function");
        let id = text(call, "id");
        rules.must(!id.is_empty() && id.len() <= ID, &at, "id must have 1 to 40 characters");
        rules.must(!ids.contains(&id.to_owned()), &at, "the id is used twice");
        rules.name(call["function"].get("name"), 64, &at);
        rules.json_object(call["function"].get("arguments"), &at);
        ids.push(id.to_owned());
    }
    ids
}

fn result(message: &Value, owed: &mut Vec<String>, at: &str, rules: &mut Rules) {
    rules.only_keys(message, &["role", "tool_call_id", "content"], at);
    let id = text(message, "tool_call_id");
    match owed.iter().position(|call| call == id) {
        Some(index) => drop(owed.remove(index)),
        None => rules.broken(at, format!("there is no open call `{id}` right before this result")),
    }
    let content = &message["content"];
    rules.must(content.is_string() || content.is_array(), at, "content must be a text");
}

fn tools(body: &Value, rules: &mut Rules) {
    let mut names = HashSet::new();
    for (index, tool) in array(body, "tools").iter().enumerate() {
        let at = format!("tools[{index}]");
        rules.must(tool["type"] == "function", &at, "type must be function");
        let name = text(&tool["function"], "name");
        rules.name(tool["function"].get("name"), 64, &at);
        rules.must(names.insert(name), &at, "the name is used twice");
        rules.must(
            tool["function"]["parameters"]["type"] == "object",
            &at,
            "the schema must be of an object",
        );
    }
}
