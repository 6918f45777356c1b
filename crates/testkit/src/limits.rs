//! How long the tests wait, with reasons. Generous: a slow machine must not look like a broken agent.

use std::time::Duration;

/// One answer or update. The slowest promise of the agent is 10 s (a silent client file system), doubled and
/// more.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The agent's own promise for its exit is 3 s; the rest is for a loaded machine.
pub const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// How often /proc is looked at while waiting for a process to go.
pub const PROCESS_POLL: Duration = Duration::from_millis(10);

/// Lines of traffic that a failed wait shows.
pub const SHOWN_TRAFFIC: usize = 12;

/// How long a terminal awaits the output of a command that has ended; what it left in the background may hold
/// it open.
pub(crate) const LAST_OUTPUT: Duration = Duration::from_millis(200);
