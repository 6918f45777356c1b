//! The tool `sessions_search`: words in all sessions, best hits first.

use attache_core::calendar::iso_8601;
use attache_core::legible::legible_line;
use attache_core::ports::search::{SearchQuery, SessionHit, Snippet};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::arguments::{self, SessionsSearchArguments};
use crate::limits::{HITS, HITS_MOST};
use crate::outcome::CallOutcome;
use crate::services::McpServices;

pub(crate) async fn run(services: &McpServices, arguments: Option<&RawValue>) -> CallOutcome {
    match found(services, arguments).await {
        Ok(hits) => outcome(&hits),
        Err(error) => CallOutcome::failed(format!("sessions_search: {error}")),
    }
}

async fn found(services: &McpServices, arguments: Option<&RawValue>) -> Result<Vec<SessionHit>, String> {
    let SessionsSearchArguments { query, limit } = arguments::read(arguments)?;
    let limit = arguments::within("limit", limit, HITS, HITS_MOST)?;
    if !query.chars().any(char::is_alphanumeric) {
        return Err("there is no word in `query`; search for letters or digits".to_owned());
    }
    let query = SearchQuery { words: query, workspace_root: None, include_archived: false, limit };
    services.search.search(query).await.map_err(|error| error.to_string())
}

fn outcome(hits: &[SessionHit]) -> CallOutcome {
    let lines: Vec<String> = hits.iter().map(line).collect();
    let text = if lines.is_empty() { "Nothing found.".to_owned() } else { lines.join("\n") };
    CallOutcome::done(text, json!({ "hits": hits.iter().map(as_json).collect::<Vec<_>>() }))
}

fn line(hit: &SessionHit) -> String {
    let title = legible_line(hit.title.as_deref().unwrap_or("(no title)"));
    let workspace = legible_line(&hit.workspace_root.to_string_lossy());
    format!("{}  {}  {title}  {workspace}\n  {}", hit.session_id, iso_8601(hit.at), snippet(hit))
}

/// Pieces behind each other; blanks at their ends stay.
fn snippet(hit: &SessionHit) -> String {
    let texts = hit.snippet.iter().map(|piece| match piece {
        Snippet::Plain(text) | Snippet::Hit(text) => text.as_str(),
    });
    legible_line(texts.collect::<String>().trim())
}

fn as_json(hit: &SessionHit) -> Value {
    let mut fields = json!({
        "sessionId": hit.session_id,
        "workspace": hit.workspace_root.to_string_lossy(),
        "at": iso_8601(hit.at),
        "snippet": snippet(hit),
    });
    if let Some(title) = &hit.title {
        fields["title"] = title.as_str().into();
    }
    if let Some(message) = &hit.message {
        fields["messageId"] = json!(message.id);
        fields["role"] = message.role.as_str().into();
    }
    fields
}
