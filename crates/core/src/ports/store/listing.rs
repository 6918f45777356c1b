//! Which sessions a list has, and from where on.

use std::path::PathBuf;

use crate::ids::SessionId;

/// Which sessions to list, newest `updated_at` first (then id, descending). Sessions without a message are left
/// out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionQuery {
    /// Sessions of this directory only.
    pub workspace_root: Option<PathBuf>,
    /// Continue after this (updated_at, id).
    pub after: Option<(i64, SessionId)>,
    /// Rows at most.
    pub limit: usize,
    /// Archived sessions, too.
    pub include_archived: bool,
    /// Which sessions are meant at all.
    pub listed: ListedSessions,
}

/// Which sessions a list has by who made them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListedSessions {
    /// Those that people opened.
    #[default]
    Own,
    /// Also those that tasks made, unless their transcripts are in the calls that made them.
    WithChildren,
    /// Only those that tasks of this session made: all of them, archived ones and ones without a message
    /// included.
    ChildrenOf(SessionId),
}
