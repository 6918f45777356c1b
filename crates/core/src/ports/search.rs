//! Full-text search over all stored sessions. `crate::search` decides what of a part is searchable.

use std::fmt::Debug;
use std::path::PathBuf;

use super::BoxFuture;
use super::store::StoreResult;
use crate::ids::{MessageId, SessionId};
use crate::part::Role;

/// What to search for. Hidden and waiting messages are never found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    /// The words as a person types them: each word must occur, and so must "phrases in quotes". Never an error.
    pub words: String,
    /// Sessions of this directory only.
    pub workspace_root: Option<PathBuf>,
    /// Archived sessions, too.
    pub include_archived: bool,
    /// The most hits.
    pub limit: usize,
}

/// A message or a session title that contains the words.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionHit {
    /// The session.
    pub session_id: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// Where it worked.
    pub workspace_root: PathBuf,
    /// `None`: the hit is in the title.
    pub message: Option<FoundMessage>,
    /// When the message was written; for a title, when the session last changed.
    pub at: i64,
    /// The text around the hit.
    pub snippet: Vec<Snippet>,
    /// Smaller is better.
    pub rank: f64,
}

/// A message with a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMessage {
    /// Which one.
    pub id: MessageId,
    /// The author.
    pub role: Role,
    /// The AI SDK type of the part with the words (`text`, `tool-read` …).
    pub kind: String,
}

/// A piece of the text around the first hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Snippet {
    /// Text around a hit.
    Plain(String),
    /// A word that was searched for.
    Hit(String),
}

/// Searches stored sessions for words.
pub trait SessionSearch: Send + Sync + Debug {
    /// The best hits first, newer before older ones of the same rank; at most one per message.
    fn search(&self, query: SearchQuery) -> BoxFuture<'static, StoreResult<Vec<SessionHit>>>;
}
