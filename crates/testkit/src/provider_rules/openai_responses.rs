//! OpenAI Responses, without storage on the server's side.

use std::collections::HashSet;

use serde_json::Value;

use super::{Rules, array, is_data_url, is_web_url, text};

const KEYS: [&str; 15] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "stream",
    "store",
    "include",
    "reasoning",
    "max_output_tokens",
    "prompt_cache_key",
    "parallel_tool_calls",
    "text",
    "truncation",
    "temperature",
];

pub(super) fn check(body: &Value, rules: &mut Rules) {
    rules.only_keys(body, &KEYS, "body");
    rules.spoken(body.get("model"), "model");
    rules.must(body["store"] == false, "store", "must be false: nothing may stay with the provider");
    tools(body, rules);
    let items = array(body, "input");
    rules.must(!items.is_empty(), "input", "must not be empty");
    let mut calls = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let at = format!("input[{index}]");
        match kind(item) {
            "message" => {
                message(item, &at, rules);
                let waiting = text(item, "role") != "assistant" && !open.is_empty();
                rules.must(!waiting, &at, "calls before it have no output yet");
            }
            "function_call" => {
                call(item, before(items, index), &at, rules);
                let id = text(item, "call_id");
                rules.must(calls.insert(id), &at, &format!("the call `{id}` stands twice"));
                open.push(id);
            }
            "function_call_output" => {
                rules.must(item["output"].is_string() || item["output"].is_array(), &at, "bad output");
                let id = text(item, "call_id");
                match open.iter().position(|call| *call == id) {
                    Some(index) => drop(open.remove(index)),
                    None => rules.broken(&at, format!("there is no open call `{id}` before it")),
                }
            }
            "reasoning" => reasoning(item, items.get(index + 1), &at, rules),
            other => rules.broken(&at, format!("an item can't be `{other}`")),
        }
    }
    rules.must(open.is_empty(), "input", &format!("the calls {} have no output", open.join(", ")));
    let last = items.last().map(|last| (kind(last), text(last, "role"))).unwrap_or_default();
    let ends = matches!(last, ("function_call_output", _) | ("message", "user"));
    rules.must(ends, "input", "must end with a user or an output");
}

/// A message may leave its type out.
fn kind(item: &Value) -> &str {
    match item.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if item.get("role").is_some() => "message",
        None => "",
    }
}

fn before(items: &[Value], index: usize) -> impl Iterator<Item = &Value> {
    items[..index].iter().rev()
}

fn message(item: &Value, at: &str, rules: &mut Rules) {
    rules.only_keys(item, &["type", "role", "content", "id", "status", "phase"], at);
    let role = text(item, "role");
    let allowed: &[&str] = match role {
        "user" => &["input_text", "input_image", "input_file"],
        "assistant" => &["output_text", "refusal"],
        "system" | "developer" => &["input_text"],
        other => return rules.broken(at, format!("the role can't be `{other}`")),
    };
    match &item["content"] {
        Value::String(said) => rules.must(!said.is_empty(), at, "content must not be empty"),
        Value::Array(parts) if !parts.is_empty() => {
            for (index, part) in parts.iter().enumerate() {
                let at = format!("{at}.content[{index}]");
                let kind = text(part, "type");
                rules.must(allowed.contains(&kind), &at, &format!("a {role} can't say `{kind}`"));
                content(part, kind, &at, rules);
            }
        }
        _ => rules.broken(at, "content must not be empty"),
    }
}

fn content(part: &Value, kind: &str, at: &str, rules: &mut Rules) {
    match kind {
        "input_text" | "output_text" => {
            rules.must(!text(part, "text").is_empty(), at, "text must not be empty");
        }
        "input_image" => {
            let url = text(part, "image_url");
            rules.must(is_data_url(url, "image/") || is_web_url(url), at, "must be a picture or its address");
        }
        "input_file" => {
            let data = text(part, "file_data");
            let inline = is_data_url(data, "application/pdf") && !text(part, "filename").is_empty();
            rules.must(
                inline || is_web_url(text(part, "file_url")),
                at,
                "must be a named file or its address",
            );
        }
        _ => {}
    }
}

fn call<'a>(item: &Value, mut before: impl Iterator<Item = &'a Value>, at: &str, rules: &mut Rules) {
    rules.only_keys(item, &["type", "id", "call_id", "name", "arguments", "status"], at);
    let id = text(item, "call_id");
    rules.must(!id.is_empty() && id.len() <= 64, at, "call_id must have 1 to 64 characters");
    rules.name(item.get("name"), 64, at);
    rules.json_object(item.get("arguments"), at);
    // An id says "this is the item you made": then what it thought before must be there too.
    if item.get("id").is_some() {
        let maker = before.find(|item| kind(item) != "function_call");
        let fits = maker.is_some_and(|item| kind(item) == "reasoning" || text(item, "role") == "assistant");
        rules.must(fits, at, "has an item id, but the reasoning it followed is missing");
    }
}

fn reasoning(item: &Value, next: Option<&Value>, at: &str, rules: &mut Rules) {
    rules.only_keys(item, &["type", "id", "summary", "encrypted_content", "content", "status"], at);
    rules.must(text(item, "id").starts_with("rs_"), at, "id must be the item's own");
    rules.must(item["summary"].is_array(), at, "summary is required");
    rules.spoken(item.get("encrypted_content"), at);
    let followed = next.is_some_and(|next| {
        matches!(kind(next), "function_call" | "reasoning")
            || (kind(next) == "message" && text(next, "role") == "assistant")
    });
    rules.must(followed, at, "the item that followed this reasoning is missing");
}

fn tools(body: &Value, rules: &mut Rules) {
    let mut names = HashSet::new();
    for (index, tool) in array(body, "tools").iter().enumerate() {
        let at = format!("tools[{index}]");
        rules.only_keys(tool, &["type", "name", "description", "parameters", "strict"], &at);
        rules.must(tool["type"] == "function", &at, "type must be function");
        rules.name(tool.get("name"), 64, &at);
        rules.must(names.insert(text(tool, "name")), &at, "the name is used twice");
        rules.must(tool["parameters"]["type"] == "object", &at, "the schema must be of an object");
    }
}
