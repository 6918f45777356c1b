//! What can be counted over stored sessions without reading them: what answers used, and how long
//! conversations are.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use super::BoxFuture;
use super::store::{StoreResult, UsageTotals};
use crate::calendar::TimeZone;
use crate::ids::{MessageId, SessionId};
use crate::part::Role;

/// Which answers count, and where their days begin.
#[derive(Clone, Debug)]
pub struct UsageQuery {
    /// Milliseconds since 1970.
    pub since: Option<i64>,
    /// Where days begin.
    pub zone: TimeZone,
}

/// What belongs together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageKey {
    /// `2026-03-29` in the zone that was asked for.
    pub day: String,
    /// As people name it; empty where none is known.
    pub model: String,
    /// The directory of the session.
    pub workspace_root: PathBuf,
}

/// What some answers used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageSum {
    /// How many answers.
    pub answers: u64,
    /// What they used together.
    pub totals: UsageTotals,
}

/// Which messages an outline has: the visible ones in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineQuery {
    /// The conversation.
    pub session: SessionId,
    /// Continue behind this seq.
    pub after: Option<i64>,
    /// Messages at most.
    pub limit: usize,
}

/// A message as an outline has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineMessage {
    /// Which message it is.
    pub id: MessageId,
    /// Its place.
    pub seq: i64,
    /// Who says it.
    pub role: Role,
    /// How many parts of it are stored.
    pub parts: u64,
}

/// Counts over stored sessions.
pub trait SessionFigures: Send + Sync + Debug {
    /// Every answer once, summed up by what belongs together.
    fn usage(&self, query: UsageQuery) -> BoxFuture<'static, StoreResult<BTreeMap<UsageKey, UsageSum>>>;
    /// How long the messages of a conversation are, so that any place of it can be asked for.
    fn outline(&self, query: OutlineQuery) -> BoxFuture<'static, StoreResult<Vec<OutlineMessage>>>;
}
