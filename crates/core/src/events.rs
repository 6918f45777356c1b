//! Run states and lifecycle events, for any number of subscribers. Clients get updates; this is for hosts and
//! tests.

use crate::ids::{CallId, MessageId, SessionId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    Idle,
    Busy,
    Retrying { attempt: u32, message: String },
    WaitingOnApproval,
    WaitingOnUserInput,
    Error { message: String },
}

/// Answers `status(session)` at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    pub state: RunState,
    pub started_at: Option<i64>,
    /// The user message that was fired.
    pub message_id: Option<MessageId>,
    pub runs: Runs,
}

/// Which process runs the turn, if one is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    Here,
    /// In another process: it can be watched here, not prompted or cancelled.
    Elsewhere,
}

impl SessionStatus {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishedBy {
    Finish,
    Abort,
    Error,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    TurnStarted {
        message_id: MessageId,
    },
    /// `pending_approval`: a call that people were still asked about; nobody is any more.
    TurnFinished {
        message_id: MessageId,
        reason: FinishedBy,
        pending_approval: Option<CallId>,
    },
    ApprovalRequested {
        call_id: CallId,
    },
    Status(SessionStatus),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubEvent {
    pub session_id: SessionId,
    pub kind: EventKind,
}
