//! Sessions as a list has them: the latest first, those with some words, those that work for another.

use std::collections::VecDeque;

use attache_acp::to_wire::status_result;
use attache_core::agents::Transcript;
use attache_core::export::lines::SessionLine;
use attache_core::ids::SessionId;
use attache_core::ports::search::{SearchQuery, SessionHit, Snippet};
use attache_core::ports::store::{ListedSessions, SessionQuery, SessionRow};
use axum::extract::{Path, State};
use axum::http::Uri;
use serde_json::{Value, json};

use super::parameters::{Parameters, invalid};
use super::{ApiError, ApiReply, SessionsApi, json_answer};
use crate::limits::{LISTED_SESSIONS, LOOKED_AT_SESSIONS, SEARCH_HITS, SEARCH_WORDS_BYTES};

/// What of a row only the agent has a use for.
const INTERNAL: [&str; 2] = ["metadata", "permissions"];

pub(super) async fn list(State(api): State<SessionsApi>, uri: Uri) -> ApiReply {
    let mut parameters = Parameters::of(&uri)?;
    let limit = parameters.number("limit", 1..=LISTED_SESSIONS, LISTED_SESSIONS)?;
    let after = parameters.cursor("cursor", place)?;
    let include_archived = parameters.flag("archived")?;
    let workspace_root = parameters.text("workspace").map(Into::into);
    parameters.end()?;
    let query = SessionQuery { workspace_root, after, limit, include_archived, listed: ListedSessions::Own };
    page(&api, query, |_| true).await
}

pub(super) async fn children(State(api): State<SessionsApi>, Path(id): Path<String>, uri: Uri) -> ApiReply {
    let mut parameters = Parameters::of(&uri)?;
    let limit = parameters.number("limit", 1..=LISTED_SESSIONS, LISTED_SESSIONS)?;
    let after = parameters.cursor("cursor", place)?;
    parameters.end()?;
    let parent = api.record(&id).await?.row.id;
    let listed = ListedSessions::ChildrenOf(parent);
    let query = SessionQuery { workspace_root: None, after, limit, include_archived: true, listed };
    let is_visible = |row: &SessionRow| {
        row.metadata.child_of().is_some_and(|child| child.transcript() == Transcript::OwnSession)
    };
    page(&api, query, is_visible).await
}

/// As many as are asked for, if so many may be known of among those that are looked at.
async fn page(api: &SessionsApi, mut query: SessionQuery, fits: impl Fn(&SessionRow) -> bool) -> ApiReply {
    let limit = query.limit;
    query.limit = LISTED_SESSIONS;
    let (mut cards, mut looked_at) = (Vec::new(), 0);
    let mut waiting: VecDeque<(SessionRow, bool)> = VecDeque::new();
    let mut is_last = false;
    while cards.len() < limit && looked_at < LOOKED_AT_SESSIONS {
        if waiting.is_empty() && !is_last {
            let rows = api.store.list_sessions(query.clone()).await?;
            is_last = rows.len() < query.limit;
            let admitted = api.admitted(rows.iter().map(|row| row.workspace_root.clone()).collect()).await;
            waiting.extend(rows.into_iter().zip(admitted));
        }
        let Some((row, is_admitted)) = waiting.pop_front() else { break };
        looked_at += 1;
        query.after = Some((row.updated_at, row.id.clone()));
        if is_admitted && fits(&row) {
            cards.push(card(api, &row).await?);
        }
    }
    let more = !waiting.is_empty() || !is_last;
    let next = query.after.filter(|_| more).map(|(at, id)| format!("{at}.{id}"));
    let workspace = api.usual_workspace.to_string_lossy();
    json_answer(&json!({ "sessions": cards, "next": next, "workspace": workspace }))
}

/// A session without its conversation: its row, and what is going on.
pub(super) async fn card(api: &SessionsApi, row: &SessionRow) -> Result<Value, ApiError> {
    let mut card = json!(SessionLine::of(row));
    if let Some(fields) = card.as_object_mut() {
        INTERNAL.iter().for_each(|name| drop(fields.remove(*name)));
    }
    // Paths need not be text; those of the page are.
    card["workspace_root"] = json!(row.workspace_root.to_string_lossy());
    card["title"] = json!(row.metadata.title());
    card["mode"] = json!(row.metadata.mode().unwrap_or(&row.agent));
    card["approval"] = json!(row.metadata.approval().map(|approval| approval.as_str()));
    card["call_id"] = json!(row.metadata.child_of().map(|child| child.call_id));
    let status = api.agent.hub.find(&row.id).await?.status().await?;
    card["status"] = status_result(&status, None);
    Ok(card)
}

fn place(text: &str) -> Option<(i64, SessionId)> {
    let (at, id) = text.split_once('.')?;
    Some((at.parse().ok()?, SessionId::new(id)))
}

pub(super) async fn search(State(api): State<SessionsApi>, uri: Uri) -> ApiReply {
    let mut parameters = Parameters::of(&uri)?;
    let words = parameters.text("q").unwrap_or_default();
    let limit = parameters.number("limit", 1..=SEARCH_HITS, SEARCH_HITS)?;
    let include_archived = parameters.flag("archived")?;
    parameters.end()?;
    if words.len() > SEARCH_WORDS_BYTES || !words.chars().any(char::is_alphanumeric) {
        return Err(invalid("q", "must have a word to look for, and not a whole text"));
    }
    // Those of other places are found, too, and left out below.
    let query = SearchQuery { words, workspace_root: None, include_archived, limit: LOOKED_AT_SESSIONS };
    let hits = api.search.search(query).await?;
    let admitted = api.admitted(hits.iter().map(|hit| hit.workspace_root.clone()).collect()).await;
    let known = hits.iter().zip(admitted).filter_map(|(hit, is_admitted)| is_admitted.then_some(hit));
    let known: Vec<Value> = known.take(limit).map(hit_json).collect();
    json_answer(&json!({ "hits": known }))
}

fn hit_json(hit: &SessionHit) -> Value {
    let snippet: Vec<Value> = hit
        .snippet
        .iter()
        .map(|piece| match piece {
            Snippet::Plain(text) => json!({ "text": text }),
            Snippet::Hit(text) => json!({ "text": text, "hit": true }),
        })
        .collect();
    json!({
        "session_id": hit.session_id,
        "title": hit.title,
        "workspace_root": hit.workspace_root.to_string_lossy(),
        "message_id": hit.message.as_ref().map(|message| &message.id),
        "role": hit.message.as_ref().map(|message| message.role.as_str()),
        "kind": hit.message.as_ref().map(|message| &message.kind),
        "at": hit.at,
        "snippet": snippet,
    })
}
