//! Which sessions to list, and where to start.

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
    /// The most rows.
    pub limit: usize,
    /// Archived sessions, too.
    pub include_archived: bool,
    /// Which kind of sessions to list.
    pub listed: ListedSessions,
}

/// Which sessions to list, by who made them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListedSessions {
    /// Those that people opened.
    #[default]
    Own,
    /// Those and the ones that tasks made, except sessions whose transcript is in the call that made them.
    WithChildren,
    /// Only those that tasks of this session made: all of them, including archived ones and ones without a
    /// message.
    ChildrenOf(SessionId),
}
