//! Sessions of opencode: rows of its database, or, from older versions, one file for each session, message and
//! part.

use std::path::{Path, PathBuf};

use attache_core::ports::model::Usage;
use serde_json::Value;

use super::database::ForeignDatabase;
use super::files;
use super::talk::{CallEnd, Talk, TalkError, count, time_of, title_of};
use super::{ForeignFindings, ForeignName, ForeignPlace, ForeignSession};

const DATABASE: &str = "opencode.db";

pub(super) fn find(place: &Path) -> ForeignFindings {
    let mut found = ForeignFindings::default();
    let database = if place.is_file() { place.to_owned() } else { place.join(DATABASE) };
    if database.is_file() {
        match of_database(&database) {
            Ok(sessions) => found.sessions = sessions,
            Err(error) => found.broken.push((database, error.to_string())),
        }
    }
    let is_session = |path: &Path| path.extension().is_some_and(|ending| ending == "json");
    let folder = place.join("storage/session");
    for path in files::below(&folder, &is_session) {
        let session = of_file(&path);
        // An update of opencode copies the files into the database and leaves them in place.
        let is_known = |one: &Option<ForeignSession>| {
            one.as_ref().is_some_and(|one| found.sessions.iter().any(|known| known.id == one.id))
        };
        if !session.as_ref().is_ok_and(is_known) {
            found.add(&path, session);
        }
    }
    found
}

fn of_database(path: &Path) -> Result<Vec<ForeignSession>, TalkError> {
    let database = ForeignDatabase::open(path)?;
    if database.columns("session")?.is_empty() {
        return Err(TalkError::Form("it has no table of sessions".to_owned()));
    }
    let rows = database.rows(
        "SELECT id, directory, title, time_updated FROM session WHERE parent_id IS NULL \
         AND EXISTS (SELECT 1 FROM message WHERE message.session_id = session.id)",
        "",
    )?;
    let session = |row: &Value| {
        let place = ForeignPlace::Database(path.to_owned());
        session_of(row, &row["time_updated"], place)
    };
    Ok(rows.iter().filter_map(session).collect())
}

fn of_file(path: &Path) -> Result<Option<ForeignSession>, TalkError> {
    let info = files::object(path)?;
    if !info["id"].is_string() {
        return Err(TalkError::Form("it is no session: it has no id".to_owned()));
    }
    if info["parentID"].is_string() {
        return Ok(None);
    }
    Ok(session_of(&info, &info["time"]["updated"], ForeignPlace::File(path.to_owned())))
}

fn session_of(info: &Value, updated: &Value, place: ForeignPlace) -> Option<ForeignSession> {
    Some(ForeignSession {
        agent: ForeignName::Opencode,
        id: info["id"].as_str()?.to_owned(),
        title: info["title"].as_str().and_then(title_of),
        directory: info["directory"].as_str().map(Into::into),
        updated_at: time_of(updated).unwrap_or_default(),
        place,
    })
}

pub(super) fn read(session: &ForeignSession) -> Result<Talk, TalkError> {
    let messages = match &session.place {
        ForeignPlace::Database(path) => rows(path, &session.id)?,
        ForeignPlace::File(path) => stored(path, &session.id)?,
    };
    let mut talk = Talk::of(session);
    for (message, parts) in &messages {
        let at = time_of(&message["time"]["created"]).unwrap_or(session.updated_at);
        match message["role"].as_str().unwrap_or_default() {
            "user" => parts.iter().for_each(|part| user_part(&mut talk, at, part)),
            "assistant" => answer(&mut talk, at, message, parts),
            other => talk.leave_out(&format!("messages of the kind {other:?}")),
        }
    }
    talk.finish()
}

/// Messages with their parts, in order.
type Messages = Vec<(Value, Vec<Value>)>;

fn rows(path: &Path, session: &str) -> Result<Messages, TalkError> {
    let database = ForeignDatabase::open(path)?;
    let parts =
        database.rows("SELECT message_id, data FROM part WHERE session_id = ?1 ORDER BY id", session)?;
    let mut messages = Vec::new();
    for row in database.rows("SELECT id, data FROM message WHERE session_id = ?1 ORDER BY id", session)? {
        let own = parts.iter().filter(|part| part["message_id"] == row["id"]);
        messages.push((data(&row)?, own.map(data).collect::<Result<_, _>>()?));
    }
    Ok(messages)
}

fn data(row: &Value) -> Result<Value, TalkError> {
    let text = row["data"].as_str().unwrap_or_default();
    serde_json::from_str(text).map_err(|error| TalkError::Form(format!("a row is not JSON: {error}")))
}

fn stored(session_file: &Path, session: &str) -> Result<Messages, TalkError> {
    // storage/session/PROJECT/SESSION.json
    let storage = session_file.ancestors().nth(3).map(PathBuf::from).unwrap_or_default();
    let is_json = |path: &Path| path.extension().is_some_and(|ending| ending == "json");
    let mut messages = Vec::new();
    for path in files::below(&storage.join("message").join(session), &is_json) {
        let message = files::object(&path)?;
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        let parts = files::below(&storage.join("part").join(id), &is_json);
        let parts = parts.iter().map(|path| files::object(path)).collect::<Result<_, _>>()?;
        messages.push((message, parts));
    }
    Ok(messages)
}

fn user_part(talk: &mut Talk, at: i64, part: &Value) {
    match part["type"].as_str().unwrap_or_default() {
        "text" if part["synthetic"] == true => talk.leave_out("notes of the program"),
        "text" => talk.prompt(at, part["text"].as_str().unwrap_or_default()),
        "file" => {
            let data = part["url"].as_str().and_then(|url| url.split_once(";base64,"));
            match data {
                Some((_, data)) => talk.picture(at, part["mime"].as_str().unwrap_or_default(), data),
                None => talk.leave_out("attachments that are links"),
            }
        }
        other => talk.leave_out(&format!("parts of the kind {other:?}")),
    }
}

fn answer(talk: &mut Talk, at: i64, message: &Value, parts: &[Value]) {
    let text = |key: &str| message[key].as_str().unwrap_or_default();
    let model = format!("{}/{}", text("providerID"), text("modelID"));
    talk.step(at, Some(&model).filter(|model| model.len() > 1).map(String::as_str));
    for part in parts {
        let text = |key: &str| part[key].as_str().unwrap_or_default();
        match text("type") {
            "text" => talk.text(at, text("text")),
            "reasoning" => talk.thought(at, text("text")),
            "tool" => call(talk, at, part),
            "step-start" | "step-finish" | "snapshot" | "patch" => {}
            other => talk.leave_out(&format!("parts of the kind {other:?}")),
        }
    }
    let (tokens, cache) = (&message["tokens"], &message["tokens"]["cache"]);
    let usage = Usage {
        input: count(tokens, "input"),
        output: count(tokens, "output"),
        reasoning: count(tokens, "reasoning"),
        cache_read: count(cache, "read"),
        cache_write: count(cache, "write"),
    };
    talk.used(at, usage, message["cost"].as_f64());
    let error = &message["error"];
    if let Some(told) = error["data"]["message"].as_str().or_else(|| error["name"].as_str()) {
        talk.text(at, &format!("(the turn failed: {told})"));
    }
}

fn call(talk: &mut Talk, at: i64, part: &Value) {
    let (id, state) = (part["callID"].as_str().unwrap_or_default(), &part["state"]);
    talk.call(at, id, part["tool"].as_str().unwrap_or_default(), state["input"].clone());
    match state["status"].as_str().unwrap_or_default() {
        "completed" => talk.result(id, state["output"].as_str().unwrap_or_default(), CallEnd::Well),
        "error" => talk.result(id, state["error"].as_str().unwrap_or_default(), CallEnd::Badly),
        _ => {}
    }
}
