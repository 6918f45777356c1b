//! How long and how much the commands and the start of a process allow, each with its reason.
//! `config/limits.rs` has the limits of the configuration.

use std::time::Duration;

/// How long a session waits for a local server to list its models: a slower server is busy loading. A late
/// answer counts from when it comes.
pub(crate) const LOCAL_ANSWER: Duration = Duration::from_millis(700);

/// The same for a server elsewhere. We ask it only if no provider has a model, and a session waits for the
/// answer.
pub(crate) const FAR_ANSWER: Duration = Duration::from_secs(2);

/// How long a local server gets for what it says beside its list, above all the size of its context: it answers
/// at once, or we take the list alone.
pub(crate) const DETAILS: Duration = Duration::from_millis(500);

/// The same when a person typed a command for it; the server may be far away.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

/// Enough for a few megabytes of model data over a slow line.
pub(crate) const DOWNLOAD: Duration = Duration::from_secs(60);

/// Size of the stored model data, which is trimmed to far less.
pub(crate) const MAX_CATALOGUE_BYTES: u64 = 8 * 1024 * 1024;

/// Models of each provider in the overview: enough to choose from, while all providers fit a screen or two.
pub(crate) const OVERVIEW_MODELS: usize = 6;

/// Keys are far shorter; a longer input is a file piped in by mistake.
pub(crate) const MAX_KEY_BYTES: u64 = 16 * 1024;

/// A keyring that takes longer without a person being asked is not there.
#[cfg(all(target_os = "linux", not(attache_portable)))]
pub(crate) const KEYRING_ANSWER: Duration = Duration::from_secs(2);

/// How long a person may take to unlock the keyring when they themselves wanted something of it.
#[cfg(all(target_os = "linux", not(attache_portable)))]
pub(crate) const UNLOCK_SECONDS: u64 = 60;

/// A handful of keys of at most a few kilobytes each; anything larger is the wrong file.
pub(crate) const MAX_LEDGER_BYTES: u64 = 1024 * 1024;

/// How long a login waits for another process that is writing.
pub(crate) const LEDGER_WAIT: Duration = Duration::from_secs(5);

/// How long a process that renews a login waits for another one that does the same: one whole answer of an
/// authorization server, and a little more.
pub(crate) const LOGIN_WAIT: Duration = Duration::from_secs(45);

/// One file of a project's configuration or agents, usually a page or two.
pub(crate) const MAX_TRUST_FILE_BYTES: u64 = 256 * 1024;

/// Most files of one project that we read.
pub(crate) const TRUST_FILES: usize = 200;

/// Room for the consents of thousands of projects.
pub(crate) const MAX_TRUST_BYTES: u64 = 16 * 1024 * 1024;

/// Enough for one word from a model that must load first; a person waits for it.
pub(crate) const DOCTOR_ANSWER: Duration = Duration::from_secs(30);

/// Below the first a session may break off in the middle of an answer; below the second it soon will.
pub(crate) const SPACE_NEEDED: u64 = 16 * 1024 * 1024;
pub(crate) const SPACE_WANTED: u64 = 512 * 1024 * 1024;

/// How much of a project's configuration a question shows: people cannot read more in a form, and
/// `attache trust` shows all.
pub(crate) const MAX_CONSENT_BYTES: usize = 16 << 10;

/// How long a command waits for servers to connect: a program that must be downloaded first takes half a
/// minute.
pub(crate) const MCP_LOOK: Duration = Duration::from_secs(60);

/// Files of other agents keep their whole history beside their list of servers.
pub(crate) const MAX_CONFIG_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// One attachment of a prompt, or the piped input: the most that agents accept in one block.
pub(crate) const ATTACHED_BYTES: u64 = 20 * 1024 * 1024;

/// We read a schema, send it with the prompt, and send it again after each mistake.
pub(crate) const SCHEMA_BYTES: u64 = 256 * 1024;

/// How many unread bytes fit between a client and the agent of this process: several large updates.
pub(crate) const CHAT_PIPE_BYTES: usize = 256 * 1024;

/// A session of another agent, with the limit of our own exports.
pub(crate) const FOREIGN_FILE_BYTES: u64 = 512 * 1024 * 1024;

/// One entry of such a session, which may contain pictures.
pub(crate) const FOREIGN_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// How much of each session we read for the list: enough for the first prompt and the system prompt before it.
pub(crate) const FOREIGN_HEAD_BYTES: u64 = 1024 * 1024;

/// Depth of nested directories; directories per day are the deepest.
pub(crate) const FOREIGN_DEPTH: usize = 6;

/// Characters of a title made from the first line of a prompt.
pub(crate) const FOREIGN_TITLE_CHARS: usize = 100;

/// A base64 picture up to this size stays within its part.
pub(crate) const FOREIGN_PICTURE_BYTES: usize = 1024 * 1024;

/// A command, an agent or the text of a skill of another agent: far more than a model should be told.
pub(crate) const FOREIGN_TEXT_BYTES: u64 = 256 * 1024;

/// The files of one skill that are copied; who keeps more beside it names its directory in the configuration.
pub(crate) const FOREIGN_SKILL_FILES: usize = 200;
pub(crate) const FOREIGN_SKILL_BYTES: u64 = 16 * 1024 * 1024;

/// How long another agent may hold its database against a reader.
pub(crate) const FOREIGN_WAIT: Duration = Duration::from_secs(2);

/// Lines of the access log that wait to be written; we count further ones and drop them.
pub(crate) const ACCESS_LOG_LINES: usize = 4_096;

/// How long we wait to write the last lines of the access log.
pub(crate) const ACCESS_LOG_END: Duration = Duration::from_millis(200);

/// How long the shared server may take to start, or to end before another one starts.
pub(crate) const DAEMON_START: Duration = Duration::from_secs(30);

/// How often the shared server checks whether it is still needed, and its clients whether it is alive.
pub(crate) const DAEMON_LOOK: Duration = Duration::from_secs(1);

/// How much output of a server that failed to start we show.
pub(crate) const DAEMON_LOG_SHOWN: usize = 1_000;
