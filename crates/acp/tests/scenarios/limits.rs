//! How long the player waits and how much it shows, each with its reason.

use std::time::Duration;

/// Longest wait for one thing; far beyond what any scenario needs, so that a loaded machine does not fail it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What is not expected, or in another order, is looked at for this long before it is a failure: what comes
/// after the last answer (a title, a mode) may still put it right. What is missing is waited for with all
/// patience.
pub(crate) const AFTERMATH: Duration = Duration::from_millis(1_500);

/// The same when expectations are written anew and nothing says what to wait for.
pub(crate) const SETTLING: Duration = Duration::from_millis(150);

/// Between two looks at what has arrived.
pub(crate) const LOOK: Duration = Duration::from_millis(2);

/// Longer texts are shown by their beginning, end and length.
pub(crate) const SHOWN_TEXT: usize = 240;

/// Where expectations are wrapped when they are written.
pub(crate) const COLUMNS: usize = 110;

/// Scenarios of one file that are played at the same time: they mostly wait.
pub(crate) const AT_ONCE: usize = 4;
