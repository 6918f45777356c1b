//! Sizes and times that this crate holds itself to, each with its reason.

use std::time::Duration;

/// Longest accepted line of an agent: attachments come back in base64 when a session is loaded.
pub const LINE_BYTES: usize = attache_rpc::limits::MAX_LINE_BYTES;

/// Events that nobody has taken yet. Above it nothing more is read from the agent, which then waits itself.
pub const UNREAD_BYTES: usize = 1024 * 1024;

/// What an event costs beside its text, so that a flood of tiny ones is bounded, too.
pub const EVENT_BYTES: usize = 512;

/// Messages before the answer to `initialize`: an agent has nothing to say yet, but some do.
pub const EARLY_MESSAGES: usize = 1_000;

/// How long an agent may take to say hello: those started through a package runner are downloaded first.
pub const HELLO_TIME: Duration = Duration::from_secs(120);

/// How long opening a session may take: agents start their MCP servers meanwhile.
pub const OPEN_TIME: Duration = Duration::from_secs(300);

/// How long a question about what an agent has in memory or in its database may take.
pub const ASK_TIME: Duration = Duration::from_secs(60);

/// How long an agent may take to end once its input is closed; then its process group is killed.
pub const LEAVE_TIME: Duration = Duration::from_secs(2);

/// How long the end of a process is waited for once it has hung up: its last words come a moment later.
pub const END_TIME: Duration = Duration::from_secs(2);

/// What is kept of an agent's standard error.
pub const ERRORS_BYTES: usize = 16 * 1024;

/// Lines of it that an error repeats.
pub const LAST_LINES: usize = 5;

/// Characters of each such line.
pub const LINE_CHARS: usize = 300;

/// Beginnings of JSON that are tried in one answer.
pub const JSON_TRIES: usize = 1_000;

/// Prompts after the first when an answer does not fit its schema: a model that failed twice fails again.
pub const SCHEMA_RETRIES: usize = 2;

/// Mistakes of an answer that the model is told of.
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

/// When a run says that it still waits for its agent to say hello: longer than any agent takes that is there.
pub const QUIET_HELLO: Duration = Duration::from_secs(10);
