//! Anthropic Messages.

use std::collections::HashSet;

use serde_json::Value;

use super::{Rules, array, is_web_url, text};

const KEYS: [&str; 12] = [
    "model",
    "max_tokens",
    "system",
    "messages",
    "tools",
    "tool_choice",
    "stream",
    "thinking",
    "output_config",
    "metadata",
    "temperature",
    "stop_sequences",
];

/// Breakpoints of the prompt cache in one request.
const BREAKPOINTS: usize = 4;

pub(super) fn check(body: &Value, rules: &mut Rules) {
    rules.only_keys(body, &KEYS, "body");
    rules.spoken(body.get("model"), "model");
    let max_tokens = body["max_tokens"].as_u64().unwrap_or_default();
    rules.must(max_tokens > 0, "max_tokens", "is required and positive");
    system(body, rules);
    tools(body, rules);
    thinking(body, max_tokens, rules);
    let messages = merged(body, rules);
    rules.must(
        messages.first().is_some_and(|first| first.role == "user"),
        "messages",
        "must begin with a user",
    );
    let last = messages.last();
    rules.must(last.is_some_and(|last| last.role == "user"), "messages", "must end with a user");
    pairing(&messages, rules);
    if body["thinking"]["type"] == "enabled" {
        thinking_first(&messages, rules);
    }
    thinking_last(&messages, rules);
    let marks = count_marks(body);
    rules.must(marks <= BREAKPOINTS, "cache_control", "more than 4 breakpoints");
}

/// A turn: consecutive messages of one role count as one.
struct Turn<'a> {
    role: &'a str,
    blocks: Vec<&'a Value>,
}

fn merged<'a>(body: &'a Value, rules: &mut Rules) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for (index, message) in array(body, "messages").iter().enumerate() {
        let at = format!("messages[{index}]");
        rules.only_keys(message, &["role", "content"], &at);
        let role = text(message, "role");
        rules.must(matches!(role, "user" | "assistant"), &at, "role must be user or assistant");
        let blocks: Vec<&Value> = match &message["content"] {
            Value::String(said) => {
                rules.must(!said.trim().is_empty(), &at, "content must not be blank");
                Vec::new()
            }
            Value::Array(blocks) if !blocks.is_empty() => blocks.iter().collect(),
            _ => {
                rules.broken(&at, "content must not be empty");
                Vec::new()
            }
        };
        for (number, one) in blocks.iter().enumerate() {
            block(one, role, &format!("{at}.content[{number}]"), rules);
        }
        match turns.last_mut() {
            Some(turn) if turn.role == role => turn.blocks.extend(blocks),
            _ => turns.push(Turn { role, blocks }),
        }
    }
    turns
}

fn block(block: &Value, role: &str, at: &str, rules: &mut Rules) {
    let kind = text(block, "type");
    let allowed: &[&str] = match role {
        "assistant" => &["text", "thinking", "redacted_thinking", "tool_use"],
        _ => &["text", "image", "document", "tool_result"],
    };
    rules.must(allowed.contains(&kind), at, &format!("a {role} can't say `{kind}`"));
    match kind {
        "text" => rules.spoken(block.get("text"), at),
        "thinking" => {
            rules.must(block["thinking"].is_string(), at, "thinking must be a text");
            rules.spoken(block.get("signature"), at);
            rules.must(block.get("cache_control").is_none(), at, "thinking can't carry a breakpoint");
        }
        "redacted_thinking" => rules.spoken(block.get("data"), at),
        "tool_use" => {
            rules.name(block.get("id"), 256, &format!("{at}.id"));
            rules.name(block.get("name"), 128, &format!("{at}.name"));
            rules.must(block["input"].is_object(), at, "input must be an object");
        }
        "tool_result" => {
            let content = &block["content"];
            rules.must(content.is_string() || content.is_array() || content.is_null(), at, "bad content");
            let blank = content.as_array().is_some_and(|blocks| {
                blocks.iter().any(|one| one["type"] == "text" && text(one, "text").trim().is_empty())
            });
            rules.must(!blank, at, "a text block must not be blank");
        }
        "image" => {
            source(&block["source"], &["image/jpeg", "image/png", "image/gif", "image/webp"], at, rules)
        }
        "document" => source(&block["source"], &["application/pdf"], at, rules),
        _ => {}
    }
}

fn source(source: &Value, media: &[&str], at: &str, rules: &mut Rules) {
    match text(source, "type") {
        "base64" => {
            rules.must(media.contains(&text(source, "media_type")), at, "this media type is not taken");
            rules.spoken(source.get("data"), at);
        }
        "url" => rules.must(is_web_url(text(source, "url")), at, "only http(s) addresses are fetched"),
        other => rules.broken(at, format!("source can't be `{other}`")),
    }
}

fn pairing(turns: &[Turn<'_>], rules: &mut Rules) {
    let of_kind = |turn: &Turn<'_>, kind: &str, id: &str| -> Vec<String> {
        let blocks = turn.blocks.iter().filter(|block| block["type"] == kind);
        blocks.map(|block| text(block, id).to_owned()).collect()
    };
    let mut seen = HashSet::new();
    for (index, turn) in turns.iter().enumerate() {
        let at = format!("turn {index}");
        let calls = of_kind(turn, "tool_use", "id");
        for call in &calls {
            rules.must(seen.insert(call.clone()), &at, &format!("the id `{call}` is used twice"));
        }
        if turn.role == "assistant" {
            let next = turns.get(index + 1).map(|next| of_kind(next, "tool_result", "tool_use_id"));
            let results = next.unwrap_or_default();
            for call in &calls {
                let answers = results.iter().filter(|result| *result == call).count();
                rules.must(
                    answers == 1,
                    &at,
                    &format!("the call `{call}` has {answers} results right after it"),
                );
            }
            continue;
        }
        let before = index.checked_sub(1).map(|before| of_kind(&turns[before], "tool_use", "id"));
        for result in of_kind(turn, "tool_result", "tool_use_id") {
            let known = before.as_ref().is_some_and(|calls| calls.contains(&result));
            rules.must(known, &at, &format!("the result `{result}` has no call right before it"));
        }
        let first_other = turn.blocks.iter().position(|block| block["type"] != "tool_result");
        let last_result = turn.blocks.iter().rposition(|block| block["type"] == "tool_result");
        let ordered = match (first_other, last_result) {
            (Some(other), Some(result)) => result < other,
            _ => true,
        };
        rules.must(ordered, &at, "results must stand before anything else");
    }
}

/// Calls and their results are one turn of the assistant, however many steps it takes: it begins with what it
/// thought.
fn thinking_first(turns: &[Turn<'_>], rules: &mut Rules) {
    let only_results = |turn: &Turn<'_>| {
        !turn.blocks.is_empty() && turn.blocks.iter().all(|block| block["type"] == "tool_result")
    };
    let spoken = turns.iter().rposition(|turn| turn.role == "user" && !only_results(turn));
    let Some(begun) = spoken.and_then(|spoken| turns.get(spoken + 1)) else { return };
    let begins = begun.blocks.first().is_some_and(|block| text(block, "type").ends_with("thinking"));
    rules.must(begins, "messages", "with thinking on, a turn that calls tools must begin with its thinking");
}

fn thinking_last(turns: &[Turn<'_>], rules: &mut Rules) {
    for (index, turn) in turns.iter().enumerate() {
        let ends = turn.blocks.last().is_some_and(|block| text(block, "type").ends_with("thinking"));
        rules.must(!ends, &format!("turn {index}"), "thinking can't be the last block");
    }
}

fn thinking(body: &Value, max_tokens: u64, rules: &mut Rules) {
    if body["thinking"]["type"] != "enabled" {
        return;
    }
    let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or_default();
    rules.must(budget >= 1024, "thinking", "the budget must be at least 1024");
    rules.must(budget < max_tokens, "thinking", "the budget must be below max_tokens");
}

fn system(body: &Value, rules: &mut Rules) {
    match body.get("system") {
        None => {}
        Some(Value::Array(blocks)) => {
            for (index, block) in blocks.iter().enumerate() {
                rules.spoken(block.get("text"), &format!("system[{index}]"));
            }
        }
        Some(said) => rules.spoken(Some(said), "system"),
    }
}

fn tools(body: &Value, rules: &mut Rules) {
    let mut names = HashSet::new();
    for (index, tool) in array(body, "tools").iter().enumerate() {
        let at = format!("tools[{index}]");
        rules.only_keys(tool, &["name", "description", "input_schema", "cache_control"], &at);
        rules.name(tool.get("name"), 128, &at);
        rules.must(names.insert(text(tool, "name")), &at, "the name is used twice");
        rules.must(tool["input_schema"]["type"] == "object", &at, "the schema must be of an object");
    }
}

fn count_marks(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let own = usize::from(fields.get("cache_control").is_some_and(|mark| !mark.is_null()));
            // Arguments of calls are the model's own data.
            let inner = fields.iter().filter(|(key, _)| !matches!(key.as_str(), "input" | "input_schema"));
            own + inner.map(|(_, value)| count_marks(value)).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(count_marks).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
