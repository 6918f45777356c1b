//! How long and how much the commands and the start of a process allow, each with its reason. Those of the
//! configuration are in `config/limits.rs`.

use std::time::Duration;

/// A server of this machine that takes longer to say what models it has is busy loading, or something else; a
/// session waits for this. What comes later counts from then on.
pub(crate) const LOCAL_ANSWER: Duration = Duration::from_millis(700);

/// The same for a server elsewhere: asked only when no provider has a model, and a session waits for it.
pub(crate) const FAR_ANSWER: Duration = Duration::from_secs(2);

/// For what a server of this machine says beside its list, above all how large its window is: it answers at
/// once, or its list is taken as it is.
pub(crate) const DETAILS: Duration = Duration::from_millis(500);

/// The same when a person typed a command for it, and the server may be far away.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

/// A few megabytes of model data over a slow line.
pub(crate) const DOWNLOAD: Duration = Duration::from_secs(60);

/// Fetched model data as it is kept: it is trimmed to far less.
pub(crate) const MAX_CATALOGUE_BYTES: u64 = 8 * 1024 * 1024;

/// Models shown of each provider in the overview: enough to choose from, and all providers fit a screen or two.
pub(crate) const OVERVIEW_MODELS: usize = 6;

/// Keys are far shorter; more is a file that came in by mistake.
pub(crate) const MAX_KEY_BYTES: u64 = 16 * 1024;

/// A keyring that takes longer without a person being asked is not there.
#[cfg(all(target_os = "linux", not(attache_portable)))]
pub(crate) const KEYRING_ANSWER: Duration = Duration::from_secs(2);

/// How long a person may take to unlock the keyring when they themselves wanted something of it.
#[cfg(all(target_os = "linux", not(attache_portable)))]
pub(crate) const UNLOCK_SECONDS: u64 = 60;

/// A handful of keys of at most a few kilobytes each; anything larger is the wrong file.
pub(crate) const MAX_LEDGER_BYTES: u64 = 1024 * 1024;

/// How long a login waits for another one that writes at the same time.
pub(crate) const LEDGER_WAIT: Duration = Duration::from_secs(5);

/// How long who renews a login waits for another process that does: for one whole answer of an authorization
/// server, and a little.
pub(crate) const LOGIN_WAIT: Duration = Duration::from_secs(45);

/// A project's configuration, or one of its agents: a page or two.
pub(crate) const MAX_TRUST_FILE_BYTES: u64 = 256 * 1024;

/// Agents of one project.
pub(crate) const TRUST_FILES: usize = 200;

/// What was consented to in thousands of projects.
pub(crate) const MAX_TRUST_BYTES: u64 = 16 * 1024 * 1024;

/// A word from a model that has to be loaded first; a person waits for it.
pub(crate) const DOCTOR_ANSWER: Duration = Duration::from_secs(30);

/// Below the first a session may end in the middle of an answer; below the second it will soon.
pub(crate) const SPACE_NEEDED: u64 = 16 * 1024 * 1024;
pub(crate) const SPACE_WANTED: u64 = 512 * 1024 * 1024;

/// Of a project's configuration in a question: a longer one can't be read in a form; `attache trust` shows it.
pub(crate) const MAX_CONSENT_BYTES: usize = 16 << 10;

/// How long a command waits for servers to connect: a program that is fetched before its first start takes
/// half a minute.
pub(crate) const MCP_LOOK: Duration = Duration::from_secs(60);

/// Files of other agents keep their whole history beside their servers.
pub(crate) const MAX_CONFIG_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// One attachment of a prompt, or what is piped in: what agents take at most of one block.
pub(crate) const ATTACHED_BYTES: u64 = 20 * 1024 * 1024;

/// A schema is read, sent with the prompt, and sent again with each mistake.
pub(crate) const SCHEMA_BYTES: u64 = 256 * 1024;

/// What may lie unread between a client and the agent of this process: some large updates.
pub(crate) const CHAT_PIPE_BYTES: usize = 256 * 1024;

/// A session of another agent: the same as an export of ours may have.
pub(crate) const FOREIGN_FILE_BYTES: u64 = 512 * 1024 * 1024;

/// One entry of it; pictures are among them.
pub(crate) const FOREIGN_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// What is read of each for the list: the first prompt, and above it what the program tells its model.
pub(crate) const FOREIGN_HEAD_BYTES: u64 = 1024 * 1024;

/// Directories below each other: the deepest are those of days.
pub(crate) const FOREIGN_DEPTH: usize = 6;

/// Characters of a title that is the first line of a prompt.
pub(crate) const FOREIGN_TITLE_CHARS: usize = 100;

/// A picture of a prompt, in base64, that is kept within its part.
pub(crate) const FOREIGN_PICTURE_BYTES: usize = 1024 * 1024;

/// A command, an agent or the text of a skill of another agent: far more than a model should be told.
pub(crate) const FOREIGN_TEXT_BYTES: u64 = 256 * 1024;

/// The files of one skill that are copied; who keeps more beside it names its directory in the configuration.
pub(crate) const FOREIGN_SKILL_FILES: usize = 200;
pub(crate) const FOREIGN_SKILL_BYTES: u64 = 16 * 1024 * 1024;

/// How long another agent may hold its database against a reader.
pub(crate) const FOREIGN_WAIT: Duration = Duration::from_secs(2);

/// Lines of the access log that wait for who reads it; further ones are counted and left out.
pub(crate) const ACCESS_LOG_LINES: usize = 4_096;

/// How long the last lines of the access log may take to leave.
pub(crate) const ACCESS_LOG_END: Duration = Duration::from_millis(200);

/// How long the shared server may take to start, or to end so that another one can.
pub(crate) const DAEMON_START: Duration = Duration::from_secs(30);

/// How often the shared server looks whether it is needed, and its clients whether it lives.
pub(crate) const DAEMON_LOOK: Duration = Duration::from_secs(1);

/// Of what a server has said that did not start.
pub(crate) const DAEMON_LOG_SHOWN: usize = 1_000;
