//! Gemini generateContent.

use std::collections::HashSet;

use serde_json::Value;

use super::{Rules, array, text};

const KEYS: [&str; 7] = [
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "safetySettings",
    "cachedContent",
];

/// Exactly one of these says what a part is.
const DATA: [&str; 7] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];

pub(super) fn check(body: &Value, rules: &mut Rules) {
    rules.only_keys(body, &KEYS, "body");
    for (index, part) in array(&body["systemInstruction"], "parts").iter().enumerate() {
        rules.spoken(part.get("text"), &format!("systemInstruction.parts[{index}]"));
    }
    declarations(body, rules);
    let contents = array(body, "contents");
    rules.must(!contents.is_empty(), "contents", "must not be empty");
    let role =
        |content: Option<&Value>| content.map(|content| text(content, "role")).unwrap_or_default().to_owned();
    rules.must(role(contents.first()) == "user", "contents", "must begin with a user");
    rules.must(role(contents.last()) == "user", "contents", "must end with a user");
    for (index, content) in contents.iter().enumerate() {
        let at = format!("contents[{index}]");
        rules.only_keys(content, &["role", "parts"], &at);
        let role = text(content, "role");
        rules.must(matches!(role, "user" | "model"), &at, "the role must be user or model");
        let parts = array(content, "parts");
        rules.must(!parts.is_empty(), &at, "must have parts");
        for (number, one) in parts.iter().enumerate() {
            part(one, role, &format!("{at}.parts[{number}]"), rules);
        }
        pairing(contents, index, &at, rules);
    }
    if body["generationConfig"]["thinkingConfig"].get("thinkingLevel").is_some() {
        signatures(contents, rules);
    }
}

fn part(part: &Value, role: &str, at: &str, rules: &mut Rules) {
    let mut allowed = vec!["thought", "thoughtSignature"];
    allowed.extend(DATA);
    rules.only_keys(part, &allowed, at);
    let kinds: Vec<&str> = DATA.into_iter().filter(|key| part.get(key).is_some()).collect();
    rules.must(kinds.len() == 1, at, &format!("must be one thing, not {}", kinds.len()));
    let signed = !text(part, "thoughtSignature").is_empty();
    match kinds.first().copied().unwrap_or_default() {
        "text" => rules.must(signed || !text(part, "text").is_empty(), at, "text must not be empty"),
        "inlineData" => {
            rules.spoken(part["inlineData"].get("mimeType"), at);
            rules.spoken(part["inlineData"].get("data"), at);
        }
        "functionCall" => {
            rules.must(role == "model", at, "only the model calls");
            rules.name(part["functionCall"].get("name"), 64, at);
            rules.must(part["functionCall"]["args"].is_object(), at, "args must be an object");
        }
        "functionResponse" => {
            rules.must(role == "user", at, "only the user answers a call");
            rules.name(part["functionResponse"].get("name"), 64, at);
            rules.must(part["functionResponse"]["response"].is_object(), at, "response must be an object");
        }
        _ => {}
    }
}

/// Answers follow their calls at once: as many, by the same names, in the same order, and nothing before them.
fn pairing(contents: &[Value], index: usize, at: &str, rules: &mut Rules) {
    let names = |content: &Value, key: &str| -> Vec<String> {
        let parts = array(content, "parts").iter().filter_map(|part| part.get(key));
        parts.map(|call| text(call, "name").to_owned()).collect()
    };
    let calls = names(&contents[index], "functionCall");
    if !calls.is_empty() {
        let answers = contents.get(index + 1).map(|next| names(next, "functionResponse")).unwrap_or_default();
        rules.must(calls == answers, at, &format!("calls {calls:?} are answered by {answers:?}"));
        let before = index.checked_sub(1).map(|before| text(&contents[before], "role"));
        rules.must(before == Some("user"), at, "a call must come right after a user's turn");
    }
    let answers = names(&contents[index], "functionResponse");
    if !answers.is_empty() {
        let before = index.checked_sub(1).map(|before| names(&contents[before], "functionCall"));
        rules.must(before.as_ref() == Some(&answers), at, "answers without their calls right before them");
        let first = array(&contents[index], "parts").first();
        let begins = first.is_some_and(|part| part.get("functionResponse").is_some());
        rules.must(begins, at, "answers must stand before anything else");
    }
}

/// In the turn under way the first call of each step carries its signature.
fn signatures(contents: &[Value], rules: &mut Rules) {
    let is_prompt = |content: &&Value| {
        text(content, "role") == "user"
            && array(content, "parts").iter().any(|part| part.get("functionResponse").is_none())
    };
    let begins = contents.iter().rposition(|content| is_prompt(&content)).unwrap_or_default();
    for (index, content) in contents.iter().enumerate().skip(begins) {
        let first = array(content, "parts").iter().find(|part| part.get("functionCall").is_some());
        let Some(first) = first else { continue };
        let signed = !text(first, "thoughtSignature").is_empty();
        rules.must(
            signed,
            &format!("contents[{index}]"),
            "the first call of a step must carry its signature",
        );
    }
}

fn declarations(body: &Value, rules: &mut Rules) {
    let mut names = HashSet::new();
    let tools = array(body, "tools").iter().flat_map(|tool| array(tool, "functionDeclarations"));
    for (index, declaration) in tools.enumerate() {
        let at = format!("functionDeclarations[{index}]");
        rules.name(declaration.get("name"), 64, &at);
        rules.must(names.insert(text(declaration, "name")), &at, "the name is used twice");
        let both =
            declaration.get("parameters").is_some() && declaration.get("parametersJsonSchema").is_some();
        rules.must(!both, &at, "parameters and parametersJsonSchema exclude each other");
    }
}
