//! What a simulation leaves to be judged: the disk, what readers were shown, how prompts were answered, what
//! ran. Plain data, so that faults can be put in on purpose.

use std::collections::{BTreeMap, BTreeSet};

use attache_core::hub::TurnOutcome;
use attache_core::ids::{CallId, MessageId, SessionId};
use attache_core::prompt::Arrival;
use attache_testkit::fakes::disk::Disk;

#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) disk: Disk,
    pub(crate) readers: Vec<ReaderLog>,
    pub(crate) prompts: Vec<PromptLog>,
    pub(crate) runs: BTreeMap<CallId, u32>,
    /// Calls that some client allowed.
    pub(crate) allowed: BTreeSet<CallId>,
    /// Paths that some client allowed for good.
    pub(crate) always: BTreeSet<(SessionId, String)>,
    /// Sessions that were closed in a process at some time: prompts sent while it closes may find the channel
    /// ended.
    pub(crate) closed: BTreeSet<(u64, SessionId)>,
}

/// An entry as a reader saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) index: u64,
    pub(crate) message_id: MessageId,
    pub(crate) chunk: String,
}

#[derive(Clone, Debug)]
pub(crate) struct ReaderLog {
    pub(crate) session: SessionId,
    pub(crate) opening: SessionOpening,
    pub(crate) start: u64,
    /// Messages that came from the rows.
    pub(crate) replayed: Vec<MessageId>,
    pub(crate) seen: Vec<Seen>,
    /// It stayed to the end and nothing stopped it.
    pub(crate) whole: bool,
}

/// One opening of a session in one process: what happens within keeps its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionOpening {
    pub(crate) process: u64,
    pub(crate) number: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct PromptLog {
    pub(crate) session: SessionId,
    pub(crate) opening: SessionOpening,
    pub(crate) text: String,
    pub(crate) arrival: Arrival,
    /// The same message was sent before.
    pub(crate) resent: bool,
    /// Its process was killed: no answer is expected.
    pub(crate) killed: bool,
    /// Its session was closed or its process shut down: the channel may just end.
    pub(crate) left: bool,
    pub(crate) answers: Vec<Answered>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answered {
    Outcome(TurnOutcome),
    Error(String),
    /// The channel ended.
    Ended,
}

impl PromptLog {
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &TurnOutcome> {
        self.answers.iter().filter_map(|answer| match answer {
            Answered::Outcome(outcome) => Some(outcome),
            Answered::Error(_) | Answered::Ended => None,
        })
    }
}
