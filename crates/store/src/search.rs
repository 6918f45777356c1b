//! Finds words in the full-text index and returns where they are. Never writes.

use std::collections::{HashMap, HashSet};

use attache_core::agents::Transcript;
use attache_core::ids::{MessageId, SessionId};
use attache_core::metadata::SessionMeta;
use attache_core::ports::search::{FoundMessage, SearchQuery, SessionHit, Snippet};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::failure::Failure;
use crate::json_paths::HIDDEN_AT;
use crate::search_words::Words;
use crate::{limits, rows, search_words};

/// Marks around a hit in the output of FTS5. A text is unlikely to contain them; if one does, that place only
/// looks like a hit.
const OPEN: char = '\u{2}';
const CLOSE: char = '\u{3}';

/// A document with the words, before we know whether we may show it.
struct RankedDocument {
    document: i64,
    rank: f64,
}

/// A document that we may show.
struct Found {
    document: i64,
    hit: SessionHit,
}

/// Searches whole words first. Searches longer words that begin with them only if those are not enough: FTS5
/// reads every place of every such word, but only the latest places of a single word.
pub(crate) fn search(connection: &mut Connection, query: &SearchQuery) -> Result<Vec<SessionHit>, Failure> {
    let transaction = connection.transaction()?;
    let mut found: Vec<Found> = Vec::new();
    for words in [Words::Whole, Words::Beginnings] {
        if found.len() < query.limit
            && let Some(expression) = search_words::expression(&query.words, words)
        {
            let known: HashSet<Place> = found.iter().map(|one| place(&one.hit)).collect();
            let more = matches(&transaction, &expression, query)?;
            found.extend(more.into_iter().filter(|one| !known.contains(&place(&one.hit))));
        }
    }
    found.truncate(query.limit);
    Ok(found.into_iter().map(|one| one.hit).collect())
}

/// One hit for each place.
type Place = (SessionId, Option<MessageId>);

fn place(hit: &SessionHit) -> Place {
    (hit.session_id.clone(), hit.message.as_ref().map(|message| message.id.clone()))
}

/// The best of the latest matches, until there are enough. Older matches need a narrower question.
fn matches(transaction: &Connection, expression: &str, query: &SearchQuery) -> Result<Vec<Found>, Failure> {
    let mut found: HashMap<Place, Found> = HashMap::new();
    let mut before = i64::MAX;
    while found.len() < query.limit {
        let candidates = candidates(transaction, expression, before)?;
        let Some(last) = candidates.last() else { break };
        before = last.document;
        for candidate in &candidates {
            let Some(hit) = shown(transaction, candidate, query)? else { continue };
            let place = place(&hit);
            if found.get(&place).is_none_or(|known| hit.rank < known.hit.rank) {
                found.insert(place, Found { document: candidate.document, hit });
            }
        }
        if candidates.len() < limits::RANKED_AT_ONCE {
            break;
        }
    }
    let mut found: Vec<Found> = found.into_values().collect();
    found.sort_by(|a, b| {
        a.hit.rank.total_cmp(&b.hit.rank).then(b.hit.at.cmp(&a.hit.at)).then(b.document.cmp(&a.document))
    });
    found.truncate(query.limit);
    for one in &mut found {
        one.hit.snippet = snippet(transaction, expression, one.document)?;
    }
    Ok(found)
}

fn candidates(
    transaction: &Connection,
    expression: &str,
    before: i64,
) -> Result<Vec<RankedDocument>, Failure> {
    let sql = "SELECT rowid, rank FROM search_text WHERE search_text MATCH ?1 AND rowid < ?2 \
               ORDER BY rowid DESC LIMIT ?3";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut matched = statement.query(params![expression, before, limits::RANKED_AT_ONCE as i64])?;
    let mut candidates = Vec::new();
    while let Some(row) = matched.next()? {
        candidates.push(RankedDocument { document: row.get(0)?, rank: row.get(1)? });
    }
    Ok(candidates)
}

/// The hit, if a person would expect it: not from a hidden or still queued message, nor from a session that was
/// left out or whose transcript is in the call that made it.
fn shown(
    transaction: &Connection,
    candidate: &RankedDocument,
    query: &SearchQuery,
) -> Result<Option<SessionHit>, Failure> {
    let sql = format!(
        "SELECT s.id, s.metadata_json, s.workspace_root, s.updated_at, s.archived_at, \
         m.id, m.role, p.type, m.created_at, m.seq IS NOT NULL AND {} IS NULL \
         FROM search_documents d \
         LEFT JOIN chat_parts p ON p.id = d.part_id LEFT JOIN chat_messages m ON m.id = p.message_id \
         JOIN chat_sessions s ON s.id = coalesce(d.session_id, p.session_id) WHERE d.id = ?1",
        HIDDEN_AT.replace("metadata_json", "m.metadata_json")
    );
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut rows = statement.query([candidate.document])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let message = found_message(row)?;
    let is_archived = row.get::<_, Option<i64>>(4)?.is_some();
    let is_visible = message.is_none() || row.get::<_, Option<bool>>(9)? == Some(true);
    let workspace_root = rows::path(row, 2)?;
    let is_elsewhere = query.workspace_root.as_ref().is_some_and(|wanted| *wanted != workspace_root);
    if !is_visible || is_elsewhere || (is_archived && !query.include_archived) {
        return Ok(None);
    }
    let metadata: SessionMeta = rows::json(rows::text(row, 1)?)?;
    if metadata.child_of().is_some_and(|child| child.transcript() == Transcript::Nested) {
        return Ok(None);
    }
    Ok(Some(SessionHit {
        session_id: SessionId::new(rows::text(row, 0)?),
        title: metadata.title().map(str::to_owned),
        workspace_root,
        at: if message.is_some() { row.get(8)? } else { row.get(3)? },
        message,
        snippet: Vec::new(),
        rank: candidate.rank,
    }))
}

fn found_message(row: &Row<'_>) -> Result<Option<FoundMessage>, Failure> {
    let Some(id) = rows::optional_text(row, 5)? else { return Ok(None) };
    Ok(Some(FoundMessage {
        id: MessageId::new(id),
        role: rows::role(rows::text(row, 6)?)?,
        kind: rows::text(row, 7)?.to_owned(),
    }))
}

fn snippet(transaction: &Connection, expression: &str, document: i64) -> Result<Vec<Snippet>, Failure> {
    let sql = "SELECT snippet(search_text, 0, ?3, ?4, '…', ?5) FROM search_text \
               WHERE search_text MATCH ?1 AND rowid = ?2";
    let mut statement = transaction.prepare_cached(sql)?;
    let values = params![expression, document, OPEN.to_string(), CLOSE.to_string(), limits::SNIPPET_TOKENS];
    let marked: Option<String> = statement.query_row(values, |row| row.get(0)).optional()?;
    Ok(pieces(&marked.unwrap_or_default()))
}

fn pieces(marked: &str) -> Vec<Snippet> {
    let mut pieces = Vec::new();
    for (nth, piece) in marked.split(OPEN).enumerate() {
        let (hit, plain) = match (nth, piece.split_once(CLOSE)) {
            (0, _) | (_, None) => ("", piece),
            (_, Some((hit, plain))) => (hit, plain),
        };
        if !hit.is_empty() {
            pieces.push(Snippet::Hit(hit.to_owned()));
        }
        if !plain.is_empty() {
            pieces.push(Snippet::Plain(plain.to_owned()));
        }
    }
    pieces
}
