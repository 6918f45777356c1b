//! Run states and lifecycle events, for any number of subscribers. Clients get updates; this is for hosts and
//! tests.

use crate::ids::{CallId, MessageId, SessionId};

/// What a session does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Nothing; it waits for a prompt.
    Idle,
    /// A turn runs.
    Busy,
    /// A call of the model failed and is tried again.
    Retrying {
        /// Which try comes next.
        attempt: u32,
        /// Why the last one failed.
        message: String,
    },
    /// A person has to allow a call.
    WaitingOnApproval,
    /// A person has to answer a question.
    WaitingOnUserInput,
    /// The last turn failed.
    Error {
        /// Why.
        message: String,
    },
}

/// Answers `status(session)` at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    /// What is going on.
    pub state: RunState,
    /// When that began, in milliseconds since 1970; `None` when idle.
    pub started_at: Option<i64>,
    /// The user message that started the turn.
    pub message_id: Option<MessageId>,
    /// Which process runs it.
    pub runs: Runs,
}

/// Which process runs the turn, if one is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// This one.
    Here,
    /// Another process: here it can be watched, but not prompted or cancelled.
    Elsewhere,
}

impl SessionStatus {
    /// The status of a session without a turn.
    pub fn idle() -> Self {
        Self { state: RunState::Idle, started_at: None, message_id: None, runs: Runs::Here }
    }

    /// Whether a turn is under way.
    pub fn is_active(&self) -> bool {
        match self.state {
            RunState::Idle | RunState::Error { .. } => false,
            RunState::Busy
            | RunState::Retrying { .. }
            | RunState::WaitingOnApproval
            | RunState::WaitingOnUserInput => true,
        }
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishedBy {
    /// The model finished its answer.
    Finish,
    /// A person or the host cancelled it.
    Abort,
    /// It failed.
    Error,
}

/// What happened in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An answer began.
    TurnStarted {
        /// The prompt that is answered.
        message_id: MessageId,
    },
    /// An answer ended, or waits for a person.
    TurnFinished {
        /// The prompt that was answered.
        message_id: MessageId,
        /// How it ended.
        reason: FinishedBy,
        /// A call that people were still asked about; that question is void now.
        pending_approval: Option<CallId>,
    },
    /// A person is asked about a call.
    ApprovalRequested {
        /// The call.
        call_id: CallId,
    },
    /// The status changed.
    Status(SessionStatus),
}

/// Something that happened, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubEvent {
    /// The session it happened in.
    pub session_id: SessionId,
    /// What it was.
    pub kind: EventKind,
}
