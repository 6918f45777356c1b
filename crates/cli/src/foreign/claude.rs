//! Sessions of Claude Code: one JSONL file each below `projects`. A file is a tree of entries; the last entry
//! names the current branch.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use attache_core::ports::model::Usage;
use serde_json::Value;

use super::files::{self, HowMuch};
use super::talk::{CallEnd, Talk, TalkError, count, texts_of, time_of, title_of};
use super::{ForeignFindings, ForeignName, ForeignPlace, ForeignSession};

pub(super) fn find(place: &Path) -> ForeignFindings {
    let is_session = |path: &Path| path.extension().is_some_and(|ending| ending == "jsonl");
    let mut found = ForeignFindings::default();
    for path in files::below(place, &is_session) {
        // Sessions of subagents belong to the session that started them.
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("agent-") {
            found.add(&path, head(&path, name));
        }
    }
    found
}

/// `None` for a file without any message: Claude Code writes such files, too.
fn head(path: &Path, id: String) -> Result<Option<ForeignSession>, TalkError> {
    let entries = files::objects(path, HowMuch::Head)?;
    let is_said = |entry: &&Value| is_prompt(entry) || entry["type"] == "assistant";
    let Some(first) = entries.iter().find(is_said) else { return Ok(None) };
    let named = entries.iter().rev().find_map(named_title);
    let title = named.or_else(|| entries.iter().find(|entry| is_prompt(entry)).and_then(prompt_title));
    Ok(Some(ForeignSession {
        agent: ForeignName::Claude,
        id,
        title,
        directory: first["cwd"].as_str().map(Into::into),
        updated_at: files::changed_at(path),
        place: ForeignPlace::File(path.to_owned()),
    }))
}

fn named_title(entry: &Value) -> Option<String> {
    let key = match entry["type"].as_str()? {
        "summary" => "summary",
        "custom-title" => "customTitle",
        "ai-title" => "aiTitle",
        _ => return None,
    };
    title_of(entry[key].as_str()?)
}

fn prompt_title(entry: &Value) -> Option<String> {
    title_of(&texts_of(&entry["message"]["content"]))
}

fn is_prompt(entry: &Value) -> bool {
    let is_result = |block: &Value| block["type"] == "tool_result";
    let content = &entry["message"]["content"];
    entry["type"] == "user"
        && entry["isMeta"] != true
        && entry["isSidechain"] != true
        && !content.as_array().is_some_and(|blocks| blocks.iter().any(is_result))
}

pub(super) fn read(session: &ForeignSession) -> Result<Talk, TalkError> {
    let entries = files::objects(session.path(), HowMuch::All)?;
    let kept = branch(&entries);
    let mut talk = Talk::of(session);
    let mut counted = HashMap::new();
    for entry in &entries {
        let kind = entry["type"].as_str().unwrap_or_default();
        let is_message = matches!(kind, "user" | "assistant");
        let is_kept = || kept.is_empty() || entry["uuid"].as_str().is_some_and(|id| kept.contains(id));
        if entry["isSidechain"] == true {
            talk.leave_out("messages of subagents");
        } else if entry["isMeta"] == true || entry["isCompactSummary"] == true {
            talk.leave_out("notes of the program");
        } else if is_message && !is_kept() {
            talk.leave_out("messages of branches that were left");
        } else if is_message {
            let at = time_of(&entry["timestamp"]).unwrap_or(session.updated_at);
            talk.works_in(entry["cwd"].as_str().unwrap_or_default());
            match kind {
                "user" => user(&mut talk, at, &entry["message"]["content"]),
                _ => assistant(&mut talk, at, &entry["message"], &mut counted),
            }
        }
    }
    talk.finish()
}

/// The entries from the last one up to the first; empty if they are not chained.
fn branch(entries: &[Value]) -> HashSet<&str> {
    let parents: HashMap<&str, Option<&str>> = entries
        .iter()
        .filter_map(|entry| {
            let parent = entry["parentUuid"].as_str().or_else(|| entry["logicalParentUuid"].as_str());
            Some((entry["uuid"].as_str()?, parent))
        })
        .collect();
    let is_said = |entry: &&Value| {
        matches!(entry["type"].as_str(), Some("user" | "assistant")) && entry["isSidechain"] != true
    };
    let mut next = entries.iter().rev().filter(is_said).find_map(|entry| entry["uuid"].as_str());
    let mut kept = HashSet::new();
    while let Some(id) = next {
        if !kept.insert(id) {
            break;
        }
        next = parents.get(id).copied().flatten();
    }
    kept
}

fn user(talk: &mut Talk, at: i64, content: &Value) {
    let Some(blocks) = content.as_array() else {
        return talk.prompt(at, content.as_str().unwrap_or_default());
    };
    for block in blocks {
        match block["type"].as_str().unwrap_or_default() {
            "text" => talk.prompt(at, block["text"].as_str().unwrap_or_default()),
            "image" => {
                let source = &block["source"];
                let text = |key: &str| source[key].as_str().unwrap_or_default();
                talk.picture(at, text("media_type"), text("data"));
            }
            "tool_result" => {
                let went = if block["is_error"] == true { CallEnd::Badly } else { CallEnd::Well };
                if block["content"]
                    .as_array()
                    .is_some_and(|inner| inner.iter().any(|one| one["type"] == "image"))
                {
                    talk.leave_out("pictures in results");
                }
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                talk.result(id, &texts_of(&block["content"]), went);
            }
            other => talk.leave_out(&format!("blocks of the kind {other:?}")),
        }
    }
}

/// The API's one message comes as several entries with the same id, each with the usage of the whole.
fn assistant(talk: &mut Talk, at: i64, message: &Value, counted: &mut HashMap<String, Usage>) {
    let id = message["id"].as_str().unwrap_or_default().to_owned();
    let model = message["model"].as_str().filter(|model| !model.starts_with('<'));
    if !counted.contains_key(&id) || id.is_empty() {
        talk.step(at, model);
    }
    for block in message["content"].as_array().into_iter().flatten() {
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        match text("type") {
            "text" => talk.text(at, text("text")),
            "thinking" => talk.thought(at, text("thinking")),
            "tool_use" => talk.call(at, text("id"), text("name"), block["input"].clone()),
            "redacted_thinking" => talk.leave_out("encrypted thoughts"),
            other => talk.leave_out(&format!("blocks of the kind {other:?}")),
        }
    }
    let usage = &message["usage"];
    let now = Usage {
        input: count(usage, "input_tokens"),
        output: count(usage, "output_tokens"),
        reasoning: 0,
        cache_read: count(usage, "cache_read_input_tokens"),
        cache_write: count(usage, "cache_creation_input_tokens"),
    };
    let before = counted.insert(id, now).unwrap_or_default();
    talk.used(at, more(now, before), None);
}

/// What the last entry adds to the usage of the one before it.
fn more(now: Usage, before: Usage) -> Usage {
    Usage {
        input: now.input.saturating_sub(before.input),
        output: now.output.saturating_sub(before.output),
        reasoning: 0,
        cache_read: now.cache_read.saturating_sub(before.cache_read),
        cache_write: now.cache_write.saturating_sub(before.cache_write),
    }
}
