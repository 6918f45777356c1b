//! What the shortest exchanges can't do without: a line there and back, and the commits that have to come
//! before.

use anyhow::Result;

use super::Place;
use super::aims::ROUND_TRIPS;
use super::figures::median_ms;
use super::raw;
use super::table::Limit;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Floor {
    round_trip_ms: f64,
    commit_ms: f64,
}

impl Floor {
    pub(crate) fn measure(place: &Place) -> Result<Self> {
        let home = place.home()?;
        Ok(Self {
            round_trip_ms: median_ms(&raw::round_trips(ROUND_TRIPS)?)?,
            commit_ms: median_ms(&raw::single_commits(&home.path("single.db"), ROUND_TRIPS)?)?,
        })
    }

    pub(crate) fn of_commits(self, commits: usize) -> Option<Limit> {
        let plural = if commits == 1 { "" } else { "s" };
        let what = format!("line there and back + {commits} raw commit{plural}");
        Limit::new(self.round_trip_ms + commits as f64 * self.commit_ms, what)
    }
}

/// The session's row.
pub(crate) const COMMITS_OF_A_SESSION: usize = 1;

/// The user's message before the model sees it, the answer before it is shown.
pub(crate) const COMMITS_BEFORE_AN_UPDATE: usize = 2;

/// The same, and the end of the turn.
pub(crate) const COMMITS_OF_A_TURN: usize = 3;

/// The call before it is run, its result before the model sees it.
pub(crate) const COMMITS_OF_A_TOOL_ROUND: usize = 2;
