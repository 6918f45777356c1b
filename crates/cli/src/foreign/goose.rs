//! Sessions of goose: rows of `sessions.db`, or, from older versions, one JSONL file each whose first line
//! describes the session.

use std::path::Path;

use attache_core::ports::model::Usage;
use serde_json::{Value, json};

use super::database::ForeignDatabase;
use super::files::{self, HowMuch};
use super::talk::{CallEnd, Talk, TalkError, count, texts_of, time_of, title_of};
use super::{ForeignFindings, ForeignName, ForeignPlace, ForeignSession};

const DATABASE: &str = "sessions.db";

pub(super) fn find(place: &Path) -> ForeignFindings {
    let mut found = ForeignFindings::default();
    let is_lines = |path: &Path| path.extension().is_some_and(|ending| ending == "jsonl");
    let database = if place.is_file() { place.to_owned() } else { place.join(DATABASE) };
    if database.is_file() && !is_lines(&database) {
        match of_database(&database) {
            Ok(sessions) => found.sessions = sessions,
            Err(error) => found.broken.push((database, error.to_string())),
        }
    }
    for path in files::below(place, &is_lines) {
        let session = of_file(&path);
        // An update of goose copies the files into the database and leaves them in place.
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        if found.sessions.iter().all(|known| known.id != id) {
            found.add(&path, session);
        }
    }
    found
}

/// The columns differ between versions, so read those that exist.
fn of_database(path: &Path) -> Result<Vec<ForeignSession>, TalkError> {
    let database = ForeignDatabase::open(path)?;
    if database.columns("sessions")?.is_empty() || database.columns("messages")?.is_empty() {
        return Err(TalkError::Form("it has no tables of sessions and messages".to_owned()));
    }
    let rows = database.rows(
        "SELECT * FROM sessions WHERE EXISTS (SELECT 1 FROM messages WHERE messages.session_id = sessions.id)",
        "",
    )?;
    let session = |row: &Value| {
        let text = |key: &str| row[key].as_str().filter(|text| !text.is_empty());
        Some(ForeignSession {
            agent: ForeignName::Goose,
            id: text("id")?.to_owned(),
            title: text("name").or_else(|| text("description")).and_then(title_of),
            directory: text("working_dir").map(Into::into),
            updated_at: sql_time(&row["updated_at"]).unwrap_or_default(),
            place: ForeignPlace::Database(path.to_owned()),
        })
    };
    Ok(rows.iter().filter_map(session).collect())
}

/// SQLite writes `2026-11-15 18:50:00`, in UTC.
fn sql_time(value: &Value) -> Option<i64> {
    match value.as_str() {
        Some(text) if text.contains(' ') => time_of(&json!(format!("{}Z", text.replace(' ', "T")))),
        _ => time_of(value),
    }
}

fn of_file(path: &Path) -> Result<Option<ForeignSession>, TalkError> {
    let lines = files::objects(path, HowMuch::Head)?;
    let Some(first) = lines.first() else { return Ok(None) };
    if first.get("working_dir").is_none() && first.get("role").is_none() {
        return Err(TalkError::Line { line: 1, what: "it is no session of goose".to_owned() });
    }
    let prompt = lines.iter().find(|line| line["role"] == "user").map(|line| texts_of(&line["content"]));
    let title = first["description"].as_str().and_then(title_of);
    Ok(Some(ForeignSession {
        agent: ForeignName::Goose,
        id: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        title: title.or_else(|| prompt.as_deref().and_then(title_of)),
        directory: first["working_dir"].as_str().map(Into::into),
        updated_at: files::changed_at(path),
        place: ForeignPlace::File(path.to_owned()),
    }))
}

pub(super) fn read(session: &ForeignSession) -> Result<Talk, TalkError> {
    let mut talk = Talk::of(session);
    let (messages, about) = match &session.place {
        ForeignPlace::Database(path) => rows(path, &session.id)?,
        ForeignPlace::File(path) => {
            let mut lines = files::objects(path, HowMuch::All)?;
            let about = if lines.first().is_some_and(|first| first.get("role").is_none()) {
                lines.remove(0)
            } else {
                Value::Null
            };
            (lines, about)
        }
    };
    for message in &messages {
        let at = time_of(&message["created"]).unwrap_or(session.updated_at);
        if message["metadata"]["userVisible"] == false {
            talk.leave_out("notes of the program");
            continue;
        }
        if message["role"] == "assistant" {
            talk.step(at, None);
        }
        let role = Speaker::of(message);
        message["content"]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(|block| content(&mut talk, at, role, block));
    }
    // goose stores only the sums.
    let sums = [count(&about, "accumulated_input_tokens"), count(&about, "accumulated_output_tokens")];
    if sums != [0, 0] && !talk.messages.is_empty() {
        let usage = Usage { input: sums[0], output: sums[1], ..Usage::default() };
        talk.used(session.updated_at, usage, None);
    }
    talk.finish()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User,
    Model,
}

impl Speaker {
    fn of(message: &Value) -> Self {
        if message["role"] == "assistant" { Self::Model } else { Self::User }
    }
}

/// The messages, and the row of the session with its sums.
fn rows(path: &Path, session: &str) -> Result<(Vec<Value>, Value), TalkError> {
    let database = ForeignDatabase::open(path)?;
    let has_time = database.columns("messages")?.iter().any(|column| column == "created_timestamp");
    let order = if has_time { "ORDER BY created_timestamp, id" } else { "ORDER BY id" };
    let query = format!("SELECT * FROM messages WHERE session_id = ?1 {order}");
    let mut messages = Vec::new();
    for row in database.rows(&query, session)? {
        let parsed = |key: &str| serde_json::from_str::<Value>(row[key].as_str().unwrap_or("null"));
        let content = parsed("content_json")
            .map_err(|error| TalkError::Form(format!("the content of a message is not JSON: {error}")))?;
        messages.push(json!({
            "role": row["role"], "content": content, "created": row["created_timestamp"],
            "metadata": parsed("metadata_json").unwrap_or_default(),
        }));
    }
    let about = database.rows("SELECT * FROM sessions WHERE id = ?1", session)?.into_iter().next();
    Ok((messages, about.unwrap_or_default()))
}

fn content(talk: &mut Talk, at: i64, speaker: Speaker, block: &Value) {
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    match (text("type"), speaker) {
        ("text", Speaker::User) => talk.prompt(at, text("text")),
        ("text", Speaker::Model) => talk.text(at, text("text")),
        ("thinking", _) => talk.thought(at, text("thinking")),
        ("image", Speaker::User) => talk.picture(at, text("mimeType"), text("data")),
        ("toolRequest", _) => {
            let call = &block["toolCall"];
            let value = call.get("value").unwrap_or(call);
            let name = value["name"].as_str().unwrap_or("unknown");
            talk.call(at, text("id"), name, value["arguments"].clone());
        }
        ("toolResponse", _) => {
            let result = &block["toolResult"];
            let value = result.get("value").unwrap_or(result);
            let output = texts_of(value.get("content").unwrap_or(value));
            let failed = result["status"] == "error" || value["isError"] == true;
            match failed {
                true => {
                    let told = result["error"].as_str().unwrap_or(&output);
                    talk.result(text("id"), told, CallEnd::Badly);
                }
                false => talk.result(text("id"), &output, CallEnd::Well),
            }
        }
        ("redactedThinking", _) => talk.leave_out("encrypted thoughts"),
        (other, _) => talk.leave_out(&format!("blocks of the kind {other:?}")),
    }
}
