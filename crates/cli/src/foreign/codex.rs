//! Sessions of Codex: rollouts, one JSONL file each, in a directory per day. Items hold what the model got and
//! answered. Events repeat them for the screen, so we read only their token counts.

use std::path::Path;

use attache_core::ports::model::Usage;
use serde_json::Value;

use super::files::{self, HowMuch};
use super::talk::{CallEnd, Talk, TalkError, count, texts_of, time_of, title_of};
use super::{ForeignFindings, ForeignName, ForeignPlace, ForeignSession};

/// How messages begin that Codex writes in the user's name.
const OWN_WORDS: [&str; 6] = [
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<skill>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
];

pub(super) fn find(place: &Path) -> ForeignFindings {
    let is_rollout = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("rollout-") && name.ends_with(".jsonl")
    };
    let mut found = ForeignFindings::default();
    for path in files::below(place, &is_rollout) {
        found.add(&path, head(&path));
    }
    found
}

fn head(path: &Path) -> Result<Option<ForeignSession>, TalkError> {
    let lines = files::objects(path, HowMuch::Head)?;
    let Some(first) = lines.first() else { return Ok(None) };
    let meta = if first["type"] == "session_meta" { &first["payload"] } else { first };
    let Some(id) = meta["id"].as_str() else {
        return Err(TalkError::Line { line: 1, what: "it is no head of a rollout: it has no id".to_owned() });
    };
    let Some(prompt) = lines.iter().map(item).find_map(prompt_of) else { return Ok(None) };
    Ok(Some(ForeignSession {
        agent: ForeignName::Codex,
        id: id.to_owned(),
        title: title_of(&prompt),
        directory: meta["cwd"].as_str().map(Into::into),
        updated_at: files::changed_at(path),
        place: ForeignPlace::File(path.to_owned()),
    }))
}

/// In older rollouts each line is the item itself.
fn item(line: &Value) -> &Value {
    if line.get("payload").is_some() { &line["payload"] } else { line }
}

fn prompt_of(item: &Value) -> Option<String> {
    let text = texts_of(&item["content"]);
    let is_prompt = item["type"] == "message" && item["role"] == "user" && !is_own(&text);
    (is_prompt && !text.trim().is_empty()).then_some(text)
}

fn is_own(text: &str) -> bool {
    OWN_WORDS.iter().any(|words| text.trim_start().starts_with(words))
}

pub(super) fn read(session: &ForeignSession) -> Result<Talk, TalkError> {
    let lines = files::objects(session.path(), HowMuch::All)?;
    let mut talk = Talk::of(session);
    let (mut model, mut counted, mut is_answering) = (None, Value::Null, false);
    for line in &lines {
        let at = time_of(&line["timestamp"]).unwrap_or(session.updated_at);
        let inner = item(line);
        match line["type"].as_str().unwrap_or_default() {
            "session_meta" => talk.works_in(inner["cwd"].as_str().unwrap_or_default()),
            "turn_context" => {
                talk.works_in(inner["cwd"].as_str().unwrap_or_default());
                model = inner["model"].as_str().map(str::to_owned).or(model);
            }
            "event_msg" if inner["type"] == "token_count" => {
                let info = &inner["info"];
                // Codex repeats the same counts with news of limits.
                if !info["last_token_usage"].is_null() && info["total_token_usage"] != counted {
                    counted = info["total_token_usage"].clone();
                    talk.used(at, usage(&info["last_token_usage"]), None);
                    is_answering = false;
                }
            }
            "compacted" => talk.leave_out("summaries of the conversation"),
            "response_item" => response_item(&mut talk, at, inner, model.as_deref(), &mut is_answering),
            // An item of an older rollout.
            "message"
            | "reasoning"
            | "function_call"
            | "function_call_output"
            | "local_shell_call"
            | "custom_tool_call"
            | "custom_tool_call_output" => {
                response_item(&mut talk, at, inner, model.as_deref(), &mut is_answering);
            }
            _ => {}
        }
    }
    talk.finish()
}

fn response_item(talk: &mut Talk, at: i64, item: &Value, model: Option<&str>, is_answering: &mut bool) {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    let kind = text("type");
    let is_of_the_model =
        matches!(kind, "reasoning" | "function_call" | "local_shell_call" | "custom_tool_call")
            || kind == "message" && text("role") == "assistant";
    if is_of_the_model && !std::mem::replace(is_answering, true) {
        talk.step(at, model);
    }
    match kind {
        "message" => message(talk, at, item, is_answering),
        "reasoning" => {
            let thought = [texts_of(&item["summary"]), texts_of(&item["content"])].join("\n");
            match thought.trim() {
                "" => talk.leave_out("encrypted thoughts"),
                thought => talk.thought(at, thought),
            }
        }
        "function_call" => {
            let arguments = text("arguments");
            let input =
                serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.to_owned()));
            talk.call(at, text("call_id"), text("name"), input);
        }
        "custom_tool_call" => talk.call(at, text("call_id"), text("name"), item["input"].clone()),
        "local_shell_call" => talk.call(at, text("call_id"), "shell", item["action"].clone()),
        "function_call_output" | "custom_tool_call_output" => {
            let (output, went) = output(&item["output"]);
            talk.result(text("call_id"), &output, went);
            *is_answering = false;
        }
        other => talk.leave_out(&format!("items of the kind {other:?}")),
    }
}

fn message(talk: &mut Talk, at: i64, item: &Value, is_answering: &mut bool) {
    let text = texts_of(&item["content"]);
    match item["role"].as_str().unwrap_or_default() {
        "assistant" => talk.text(at, &text),
        "user" if is_own(&text) => talk.leave_out("notes of the program"),
        "user" => {
            *is_answering = false;
            talk.prompt(at, &text);
            for block in item["content"].as_array().into_iter().flatten() {
                if let Some(url) = block["image_url"].as_str() {
                    picture(talk, at, url);
                }
            }
        }
        _ => talk.leave_out("instructions"),
    }
}

fn picture(talk: &mut Talk, at: i64, url: &str) {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match data {
        Some((mime, data)) => talk.picture(at, mime, data),
        None => talk.leave_out("pictures that are links"),
    }
}

/// Text, or an object with the text and the outcome; the object may also come as JSON in a string.
fn output(value: &Value) -> (String, CallEnd) {
    let went = |well: bool| if well { CallEnd::Well } else { CallEnd::Badly };
    let inner = match value {
        Value::String(text) => {
            serde_json::from_str::<Value>(text).ok().filter(|inner| inner.get("output").is_some())
        }
        other => Some(other.clone()),
    };
    let Some(inner) = inner else {
        let text = texts_of(value);
        let code = text
            .split_once("exited with code ")
            .and_then(|(_, rest)| rest.lines().next()?.trim().parse().ok());
        return (text, went(code.is_none_or(|code: i32| code == 0)));
    };
    if let Some(output) = inner["output"].as_str() {
        return (
            output.to_owned(),
            went(inner["metadata"]["exit_code"].as_i64().is_none_or(|code| code == 0)),
        );
    }
    if let Some(content) = inner.get("content") {
        return (texts_of(content), went(inner["success"] != false));
    }
    (texts_of(&inner), CallEnd::Well)
}

/// Codex includes cached and reasoning tokens in its other counts; our counts are disjoint.
fn usage(usage: &Value) -> Usage {
    let (cached, thought) = (count(usage, "cached_input_tokens"), count(usage, "reasoning_output_tokens"));
    let written = count(usage, "cache_write_input_tokens");
    Usage {
        input: count(usage, "input_tokens").saturating_sub(cached + written),
        output: count(usage, "output_tokens").saturating_sub(thought),
        reasoning: thought,
        cache_read: cached,
        cache_write: written,
    }
}
