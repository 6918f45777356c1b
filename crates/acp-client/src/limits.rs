//! Sizes and times that this crate holds itself to, each with its reason.

use std::time::Duration;

/// Longest accepted line of an agent: attachments come back in base64 when a session is loaded.
pub const LINE_BYTES: usize = attache_rpc::limits::MAX_LINE_BYTES;

/// Events that nobody has taken yet. Above it nothing more is read from the agent, which then waits itself.
pub const UNREAD_BYTES: usize = 1024 * 1024;

/// Bytes that an event counts beside its text, so that a flood of tiny ones is bounded, too.
pub const EVENT_BYTES: usize = 512;

/// Messages before the answer to `initialize`: an agent has nothing to say yet, but some do.
pub const EARLY_MESSAGES: usize = 1_000;

/// How long an agent may take to answer `initialize`: package runners download it first.
pub const HELLO_TIME: Duration = Duration::from_secs(120);

/// How long opening a session may take: agents start their MCP servers meanwhile.
pub const OPEN_TIME: Duration = Duration::from_secs(300);

/// How long a question about what an agent has in memory or in its database may take.
pub const ASK_TIME: Duration = Duration::from_secs(60);

/// How long an agent may take to end once its input is closed; then its process group is killed.
pub const LEAVE_TIME: Duration = Duration::from_secs(2);

/// How long the end of a process is waited for once it has hung up: its last words come a moment later.
pub const END_TIME: Duration = Duration::from_secs(2);

/// Bytes that are kept of an agent's standard error.
pub const ERRORS_BYTES: usize = 16 * 1024;

/// Lines of it that an error repeats.
pub const LAST_LINES: usize = 5;

/// Characters of each such line.
pub const LINE_CHARS: usize = 300;
