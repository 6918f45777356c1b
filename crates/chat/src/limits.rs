//! Sizes and times that this crate holds itself to, each with its reason.

use std::time::Duration;

/// Beginnings of JSON that are tried in one answer.
pub const JSON_TRIES: usize = 1_000;

/// Prompts after the first when an answer does not fit its schema: a model that failed twice fails again.
pub const SCHEMA_RETRIES: usize = 2;

/// Mistakes of an answer that are reported to the model.
pub const TOLD_MISTAKES: usize = 10;

/// How long a cancelled turn may take to end. With the agent's own end, an interrupted run is gone within 3 s.
pub const CANCEL_TIME: Duration = Duration::from_millis(1_000);

/// Choices that an error names.
pub const NAMED_CHOICES: usize = 20;

/// Characters of the reason that an agent gives for a question.
pub const WHY_CHARS: usize = 1_000;

/// Notices that the object of a run repeats: one that retries all night must not fill the memory.
pub const KEPT_NOTICES: usize = 100;

/// Denied calls that the error of a run names; the object has all of them.
pub const NAMED_DENIALS: usize = 5;

/// When a run says that it still waits for its agent's `initialize`: longer than any installed agent takes.
pub const QUIET_HELLO: Duration = Duration::from_secs(10);
