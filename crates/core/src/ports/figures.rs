//! Counts over stored sessions without reading them: what answers used, and how long conversations are.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use super::BoxFuture;
use super::store::{StoreResult, UsageTotals};
use crate::calendar::TimeZone;
use crate::ids::{MessageId, SessionId};
use crate::part::Role;

/// Which answers to count, and when their days begin.
#[derive(Clone, Debug)]
pub struct UsageQuery {
    /// Milliseconds since 1970.
    pub since: Option<i64>,
    /// The zone that decides when days begin.
    pub zone: TimeZone,
}

/// The key by which answers are grouped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageKey {
    /// `2026-03-29` in the zone of the query.
    pub day: String,
    /// The model's name for people; empty if none is known.
    pub model: String,
    /// The directory of the session.
    pub workspace_root: PathBuf,
}

/// The sum over the answers of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageSum {
    /// How many answers.
    pub answers: u64,
    /// What they used together.
    pub totals: UsageTotals,
}

/// Which messages to outline: the visible ones, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineQuery {
    /// The conversation.
    pub session: SessionId,
    /// Continue behind this seq.
    pub after: Option<i64>,
    /// The most messages.
    pub limit: usize,
}

/// A message in an outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineMessage {
    /// Which message it is.
    pub id: MessageId,
    /// Its place.
    pub seq: i64,
    /// The author.
    pub role: Role,
    /// How many parts of it are stored.
    pub parts: u64,
}

/// Counts over stored sessions.
pub trait SessionFigures: Send + Sync + Debug {
    /// The sums over all answers, each counted once.
    fn usage(&self, query: UsageQuery) -> BoxFuture<'static, StoreResult<BTreeMap<UsageKey, UsageSum>>>;
    /// The lengths of a conversation's messages, so that a caller can ask for any place in it.
    fn outline(&self, query: OutlineQuery) -> BoxFuture<'static, StoreResult<Vec<OutlineMessage>>>;
}
