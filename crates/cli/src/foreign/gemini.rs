//! Sessions of Gemini CLI: one file each below `chats`. The newer files are JSONL, where an entry replaces an
//! earlier one with the same id; the older files are one object.

use std::path::{Path, PathBuf};

use attache_core::ports::model::Usage;
use serde_json::Value;

use super::files::{self, HowMuch};
use super::talk::{CallEnd, Talk, TalkError, count, texts_of, time_of, title_of};
use super::{ForeignFindings, ForeignName, ForeignPlace, ForeignSession};

pub(super) fn find(place: &Path) -> ForeignFindings {
    let is_session = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("session-") && (name.ends_with(".jsonl") || name.ends_with(".json"))
    };
    let mut found = ForeignFindings::default();
    for path in files::below(place, &is_session) {
        found.add(&path, head(&path));
    }
    found
}

fn head(path: &Path) -> Result<Option<ForeignSession>, TalkError> {
    let (id, messages) = messages(path)?;
    let prompt = messages.iter().filter(|message| message["type"] == "user").find_map(prompt_of);
    let Some(prompt) = prompt else { return Ok(None) };
    Ok(Some(ForeignSession {
        agent: ForeignName::Gemini,
        id,
        title: title_of(&prompt),
        directory: directory_of(path),
        updated_at: files::changed_at(path),
        place: ForeignPlace::File(path.to_owned()),
    }))
}

/// A file beside the folder of the chats names the directory; older versions kept only a digest of it.
fn directory_of(path: &Path) -> Option<PathBuf> {
    let project = path.parent()?.parent()?;
    let named = std::fs::read_to_string(project.join(".project_root")).ok()?;
    Some(PathBuf::from(named.trim())).filter(|directory| directory.is_absolute())
}

/// The id of the session, and the final state of its messages.
fn messages(path: &Path) -> Result<(String, Vec<Value>), TalkError> {
    let is_lines = path.extension().is_some_and(|ending| ending == "jsonl");
    let entries = if is_lines { files::objects(path, HowMuch::All)? } else { vec![files::object(path)?] };
    let (mut id, mut messages) = (None, Vec::<Value>::new());
    for entry in entries {
        id = id.or_else(|| entry["sessionId"].as_str().map(str::to_owned));
        let set = entry.get("$set").unwrap_or(&entry);
        if let Some(all) = set["messages"].as_array() {
            messages.clone_from(all);
        } else if let Some(back) = entry["$rewindTo"].as_str() {
            let place = messages.iter().position(|message| message["id"] == back);
            messages.truncate(place.unwrap_or(messages.len()));
        } else if entry["id"].is_string() && entry["type"].is_string() {
            match messages.iter().position(|message| message["id"] == entry["id"]) {
                Some(place) => messages[place] = entry,
                None => messages.push(entry),
            }
        }
    }
    match id {
        Some(id) => Ok((id, messages)),
        None => Err(TalkError::Form("it is no session: it has no sessionId".to_owned())),
    }
}

/// `None` for text that Gemini CLI writes in the user's name, and for results.
fn prompt_of(message: &Value) -> Option<String> {
    let text = texts_of(&message["content"]);
    (!text.trim().is_empty() && !text.trim_start().starts_with("<session_context>")).then_some(text)
}

pub(super) fn read(session: &ForeignSession) -> Result<Talk, TalkError> {
    let (_, messages) = messages(session.path())?;
    let mut talk = Talk::of(session);
    for message in &messages {
        let at = time_of(&message["timestamp"]).unwrap_or(session.updated_at);
        match message["type"].as_str().unwrap_or_default() {
            "user" => user(&mut talk, at, message),
            "gemini" => answer(&mut talk, at, message),
            other => talk.leave_out(&format!("messages of the kind {other:?}")),
        }
    }
    talk.finish()
}

fn user(talk: &mut Talk, at: i64, message: &Value) {
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    // The calls contain the results as well.
    let is_result = blocks.iter().any(|block| block.get("functionResponse").is_some());
    match prompt_of(message) {
        Some(text) => talk.prompt(at, &text),
        None if !is_result => talk.leave_out("notes of the program"),
        None => {}
    }
    for inline in blocks.iter().filter_map(|block| block.get("inlineData")) {
        let text = |key: &str| inline[key].as_str().unwrap_or_default();
        talk.picture(at, text("mimeType"), text("data"));
    }
}

fn answer(talk: &mut Talk, at: i64, message: &Value) {
    talk.step(at, message["model"].as_str());
    for thought in message["thoughts"].as_array().into_iter().flatten() {
        let text = |key: &str| thought[key].as_str().unwrap_or_default();
        talk.thought(at, format!("**{}**\n{}", text("subject"), text("description")).trim());
    }
    talk.text(at, &texts_of(&message["content"]));
    for call in message["toolCalls"].as_array().into_iter().flatten() {
        let text = |key: &str| call[key].as_str().unwrap_or_default();
        let id = text("id");
        talk.call(at, id, text("name"), call["args"].clone());
        let went = match text("status") {
            "success" => CallEnd::Well,
            "error" | "cancelled" => CallEnd::Badly,
            _ => continue,
        };
        talk.result(id, &result_of(call), went);
    }
    let tokens = &message["tokens"];
    if !tokens.is_null() {
        let cached = count(tokens, "cached");
        let usage = Usage {
            input: count(tokens, "input").saturating_sub(cached) + count(tokens, "tool"),
            output: count(tokens, "output"),
            reasoning: count(tokens, "thoughts"),
            cache_read: cached,
            cache_write: 0,
        };
        talk.used(at, usage, None);
    }
}

/// The result that the model got, else the text that people saw.
fn result_of(call: &Value) -> String {
    let responses = call["result"].as_array().into_iter().flatten();
    let told: Vec<String> = responses
        .filter_map(|part| {
            let response = &part["functionResponse"]["response"];
            let text = response["output"].as_str().or_else(|| response["error"].as_str())?;
            Some(text.to_owned())
        })
        .collect();
    match (told.is_empty(), &call["resultDisplay"]) {
        (false, _) => told.join("\n"),
        (true, Value::String(shown)) => shown.clone(),
        (true, shown) => shown["summary"].as_str().unwrap_or_default().to_owned(),
    }
}
