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

/// Lines that a process wrote last are told with its end.
pub(crate) const LAST_WORDS: usize = 40;

/// Bytes of the output of a command that an agent gets, the end of it: as much as its framework can use.
pub(crate) const TERMINAL_BYTES: usize = 256 * 1024;

/// Of a command that a tool of an agent runs.
pub(crate) const TERMINAL_TIME: Duration = Duration::from_secs(600);
