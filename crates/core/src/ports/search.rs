//! Full-text search over all stored sessions. What of a part is searched is said by `crate::search`.

use std::fmt::Debug;
use std::path::PathBuf;

use super::BoxFuture;
use super::store::StoreResult;
use crate::ids::{MessageId, SessionId};
use crate::part::Role;

/// What to look for. Hidden and waiting messages are never found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    /// As a person types it: words, of which each must occur, and "phrases in quotes". Never an error.
    pub words: String,
    /// Sessions of this directory only.
    pub workspace_root: Option<PathBuf>,
    /// Archived sessions, too.
    pub include_archived: bool,
    /// Hits at most.
    pub limit: usize,
}

/// A message, or the title of a session, in which the words were found.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionHit {
    /// The session.
    pub session_id: SessionId,
    /// What it is called.
    pub title: Option<String>,
    /// Where it worked.
    pub workspace_root: PathBuf,
    /// `None`: the title has the words.
    pub message: Option<FoundMessage>,
    /// When it was said; of a title, when the session last changed.
    pub at: i64,
    /// The place that was found, with a few words around it.
    pub snippet: Vec<Snippet>,
    /// Smaller is better.
    pub rank: f64,
}

/// A message that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMessage {
    /// Which one.
    pub id: MessageId,
    /// Who said it.
    pub role: Role,
    /// The AI SDK type of the part with the words (`text`, `tool-read` …).
    pub kind: String,
}

/// A piece of the text around the first words that were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Snippet {
    /// Words around it.
    Plain(String),
    /// A word that was looked for.
    Hit(String),
}

/// Looks for words in stored sessions.
pub trait SessionSearch: Send + Sync + Debug {
    /// The best hits, best first, newer ones before older ones of the same rank; at most one for a message.
    fn search(&self, query: SearchQuery) -> BoxFuture<'static, StoreResult<Vec<SessionHit>>>;
}
