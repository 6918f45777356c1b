//! The callers that wait for a change by another process.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::StoreWriter;
use crate::limits;

#[derive(Default)]
pub(super) struct Followers {
    pub(super) waiting: Vec<oneshot::Sender<()>>,
    /// The change counter at the last check.
    pub(super) baseline: Option<i64>,
    pub(super) looked_at: Option<Instant>,
    pub(super) changed_at: Option<Instant>,
}

impl Followers {
    pub(super) fn add(&mut self, follower: oneshot::Sender<()>) {
        self.waiting.push(follower);
    }

    pub(super) fn due_in(&self) -> Duration {
        match self.looked_at {
            Some(at) => limits::FOLLOW_INTERVAL.saturating_sub(at.elapsed()),
            None => Duration::ZERO,
        }
    }
}

impl StoreWriter {
    /// Checks the change counter when it is time, and wakes the followers.
    pub(super) fn follow(&mut self) {
        self.followers.waiting.retain(|follower| !follower.is_closed());
        if self.followers.waiting.is_empty() || !self.followers.due_in().is_zero() {
            return;
        }
        let counter = self.change_counter();
        self.followers.looked_at = Some(Instant::now());
        if counter != self.followers.baseline {
            self.followers.baseline = counter;
            self.followers.changed_at = Some(Instant::now());
        }
        if self.followers.changed_at.is_some_and(|at| at.elapsed() < limits::FOLLOW_MEMORY) {
            for follower in self.followers.waiting.drain(..) {
                if follower.send(()).is_err() {
                    tracing::trace!("a follower left");
                }
            }
        }
    }

    /// Changes when another connection commits. Read on the writer's own connection, where our own commits do
    /// not count. `None` (unreadable) counts as a change like any other value.
    pub(super) fn change_counter(&mut self) -> Option<i64> {
        if self.connection.is_none() {
            self.connection = self.connector.writer().ok();
        }
        let connection = self.connection.as_ref()?;
        let mut statement = connection.prepare_cached("PRAGMA data_version").ok()?;
        statement.query_row([], |row| row.get(0)).ok()
    }
}
