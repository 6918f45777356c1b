//! How much of an agent that lives elsewhere is taken, and how long it is waited for.

use std::time::Duration;

/// Bytes of one event. A picture of 20 MiB in base64 fits, a stream that never ends an event does not.
pub(crate) const EVENT_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of one answer. A loop that talks for ever must not fill the disk; no answer of a person's size comes
/// near.
pub(crate) const ANSWER_BYTES: u64 = 512 * 1024 * 1024;

/// Bytes of a refusal that are read: what is behind them nobody reads.
pub(crate) const REFUSAL_BYTES: usize = 64 * 1024;

/// Characters of a refusal that are told.
pub(crate) const REFUSAL_CHARACTERS: usize = 300;

/// Until a server accepts the connection.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);

/// Until a stream that said something says more. Tools of an agent may take long, and not every server sends
/// signs of life meanwhile.
pub(crate) const IDLE: Duration = Duration::from_secs(300);

/// Until a server that is not streaming has answered.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);

/// Tries before the first chunk; after it nothing is sent twice.
pub(crate) const TRIES: u32 = 3;

/// Before the second try; doubled for the third.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// A run that was stopped has ended by then, or is given up.
pub(crate) const CANCEL: Duration = Duration::from_secs(5);

/// Characters of what a subgraph says that its call shows: the end of it.
pub(crate) const NESTED_CHARACTERS: usize = 4_000;

/// Rounds of questions in one turn. An agent that is told the same again and again asks for ever.
pub(crate) const ROUNDS: u32 = 200;

/// Characters of a call's title: one line of an editor.
pub(crate) const TITLE_CHARS: usize = 500;

/// Characters of a tool's name: names stand in rules, and nobody writes longer ones.
pub(crate) const TOOL_NAME_CHARS: usize = 100;

/// Objects within objects of `_meta` that are searched for the name of a tool.
pub(crate) const META_DEPTH: usize = 3;

/// Bytes of live content that one call may record: agents send all of an output again with each line.
pub(crate) const PROGRESS_BYTES: usize = 512 * 1024;

/// Calls of one turn. A turn with more is a loop that nobody watches.
pub(crate) const CALLS: usize = 10_000;

/// Updates that may wait for a turn that does not take them; then the agent is no longer read.
pub(crate) const WAITING_NEWS: usize = 1_024;

/// How long an ACP agent may take to end a turn that was cancelled; then its whole process tree is killed.
pub(crate) const AGENT_CANCEL: Duration = Duration::from_millis(400);

/// How long the end of a process is waited for once it has hung up.
pub(crate) const AGENT_END: Duration = Duration::from_secs(2);

/// What is kept of an agent's standard error.
pub(crate) const AGENT_ERRORS_BYTES: usize = 16 * 1024;

/// Lines of it that an error repeats.
pub(crate) const AGENT_ERROR_LINES: usize = 5;

/// Characters of each such line.
pub(crate) const AGENT_ERROR_CHARS: usize = 300;

/// Bytes of the conversation that a new session of an agent is told: what models take beside a prompt.
pub(crate) const HANDOVER_BYTES: usize = 100 * 1024;

/// Bytes of one tool call in it.
pub(crate) const HANDOVER_CALL_BYTES: usize = 2 * 1024;

/// Bytes of a file that an agent gets of us: what its own line can carry.
pub(crate) const CLIENT_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// Output of a terminal that is kept where the agent names no limit, and at most.
pub(crate) const TERMINAL_BYTES: u64 = 1024 * 1024;

/// Terminals that an agent may have open at once in a session.
pub(crate) const TERMINALS: usize = 64;

/// Until a Python agent is loaded. Frameworks take seconds to import on a cold disk.
pub(crate) const AGENT_START: Duration = Duration::from_secs(120);

/// Words of a run that wait to be taken. A person who is asked holds the answer, not what other runs say.
pub(crate) const QUEUED_WORDS: usize = 4096;

/// A run whose words nobody takes for so long is given up: all runs of a process share one pipe.
pub(crate) const STALLED: Duration = Duration::from_secs(30);

/// Between the word that cancels a run and the end of its process. The agent's own task is cancelled after a
/// second.
pub(crate) const KILL_AFTER: Duration = Duration::from_secs(5);

/// A process that closed its pipe, or was ended, is gone by then.
pub(crate) const PROCESS_END: Duration = Duration::from_secs(5);

/// Commands of an ACP agent that are listed: each is told to every client.
pub(crate) const COMMANDS: usize = 200;

/// Shorter values of headers stand in ordinary words.
pub(crate) const SECRET_BYTES: usize = 6;

/// Of the details of a failure as they are told: a server's body says what is wrong in its first lines …
pub(crate) const DETAILS_FIRST: usize = 3 * 1024;

/// … and a traceback in its last ones.
pub(crate) const DETAILS_LAST: usize = 7 * 1024;

/// Lines that a process wrote last are told with its end.
pub(crate) const LAST_WORDS: usize = 40;

/// Bytes of the output of a command that an agent gets, the end of it: as much as its framework can use.
pub(crate) const PYTHON_TERMINAL_BYTES: usize = 256 * 1024;

/// Of a command that a tool of an agent runs.
pub(crate) const TERMINAL_TIME: Duration = Duration::from_secs(600);
