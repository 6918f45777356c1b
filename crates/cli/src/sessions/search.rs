//! `attache sessions search`: words in all sessions, best first. Updates the index first if it is behind;
//! otherwise only reads.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use attache_core::ports::search::{SearchQuery, SessionHit, SessionSearch, Snippet};
use attache_store::{ReadOnlyStore, SearchIndex};
use serde_json::{Value, json};

use super::plain;
use crate::answer;
use crate::args::SearchArgs;
use crate::paint::{Colour, Paint};
use crate::setup::{self, Sources};
use crate::when;

pub(super) async fn run(sources: &Sources, store: ReadOnlyStore, arguments: &SearchArgs) -> Result<()> {
    let words = question(&arguments.words);
    if !words.chars().any(char::is_alphanumeric) {
        bail!("there is no word in `{}`; search for letters or digits", plain(&words));
    }
    let query = SearchQuery {
        words,
        workspace_root: arguments.workspace.as_deref().map(workspace).transpose()?,
        include_archived: arguments.archived,
        limit: arguments.limit,
    };
    if store.search_index().await? == SearchIndex::Behind {
        // While this reader is open, SQLite would keep the whole log that the writer fills.
        drop(store);
        bring_up_to_date(sources).await?;
        let Some(store) = setup::look_into_store(&sources.config, &sources.dirs)? else {
            return nothing(arguments);
        };
        return tell(&store.search(query).await?, arguments);
    }
    tell(&store.search(query).await?, arguments)
}

/// An argument with blanks was in quotes on the command line, so it is one phrase.
fn question(arguments: &[String]) -> String {
    let stands_together = |word: &&String| word.contains(char::is_whitespace) && !word.contains('"');
    let term = |word: &String| match Some(word).filter(stands_together) {
        Some(phrase) => format!("\"{phrase}\""),
        None => word.clone(),
    };
    arguments.iter().map(term).collect::<Vec<_>>().join(" ")
}

/// A directory in the form that sessions store: absolute, with links resolved if it still exists.
fn workspace(typed: &Path) -> Result<PathBuf> {
    match typed.canonicalize() {
        Ok(real) => Ok(real),
        Err(_) => Ok(std::path::absolute(typed)?),
    }
}

/// Runs once for a database of an older version, and right after a large copy or import.
async fn bring_up_to_date(sources: &Sources) -> Result<()> {
    let (store, _) = setup::open_store(sources)?;
    let mut pieces = 0_u64;
    let done = store
        .finish_index(|| {
            pieces += 1;
            if pieces == 1 && answer::is_seen() {
                answer::note("reading the sessions for the search; this is done once");
            }
        })
        .await;
    store.shutdown();
    Ok(done?)
}

/// No session has the words.
pub(super) fn nothing(arguments: &SearchArgs) -> Result<()> {
    if arguments.json {
        answer::write("[]\n")?;
    }
    answer::note(&format!("nothing found for {}", plain(&arguments.words.join(" "))));
    Ok(())
}

fn tell(hits: &[SessionHit], arguments: &SearchArgs) -> Result<()> {
    if hits.is_empty() {
        return nothing(arguments);
    }
    let paint = Paint::for_answers();
    let mut text = String::new();
    if arguments.json {
        let rows: Vec<String> = hits.iter().map(|hit| format!("  {}", as_json(hit))).collect();
        writeln!(text, "[\n{}\n]", rows.join(",\n"))?;
        return Ok(answer::write_painted(&text)?);
    }
    for hit in hits {
        writeln!(text, "{}", as_lines(hit, paint))?;
    }
    Ok(answer::write_painted(&text)?)
}

fn as_lines(hit: &SessionHit, paint: Paint) -> String {
    let title = plain(hit.title.as_deref().unwrap_or("(no title)"));
    let role = hit.message.as_ref().map_or("title", |message| message.role.as_str());
    let snippet: String = hit
        .snippet
        .iter()
        .map(|piece| match piece {
            Snippet::Plain(text) => one_line(text),
            Snippet::Hit(text) => paint.paint(Colour::Yellow, &marked(&one_line(text), paint)),
        })
        .collect();
    let (when, place) = (when::minutes(hit.at), plain(&hit.workspace_root.to_string_lossy()));
    format!(
        "{}  {}  {}  {}\n  {}: {}",
        plain(hit.session_id.as_str()),
        paint.paint(Colour::Grey, &when),
        paint.paint(Colour::Bold, &title),
        paint.paint(Colour::Grey, &place),
        paint.paint(Colour::Grey, role),
        snippet.trim()
    )
}

/// Without colours, brackets mark the hit.
fn marked(text: &str, paint: Paint) -> String {
    if paint.is_coloured() { text.to_owned() } else { format!("[{text}]") }
}

/// Joins the lines of a text; keeps blanks at its ends, because the pieces are joined later.
fn one_line(text: &str) -> String {
    let blanks = text.chars().map(|character| if character.is_whitespace() { ' ' } else { character });
    plain(&blanks.collect::<String>())
}

/// For programs: exact values under the names of exports, and the snippet in pieces.
fn as_json(hit: &SessionHit) -> Value {
    let pieces = hit.snippet.iter().map(|piece| match piece {
        Snippet::Plain(text) => json!({ "text": text }),
        Snippet::Hit(text) => json!({ "text": text, "hit": true }),
    });
    let message = hit.message.as_ref();
    json!({
        "session_id": hit.session_id,
        "title": hit.title,
        "workspace_root": hit.workspace_root.to_string_lossy(),
        "message_id": message.map(|message| &message.id),
        "role": message.map(|message| message.role.as_str()),
        "part": message.map(|message| &message.kind),
        "at": hit.at,
        "snippet": pieces.collect::<Vec<_>>(),
        "rank": hit.rank,
    })
}
