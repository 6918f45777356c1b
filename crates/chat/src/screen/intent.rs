//! What the user wants of the agent, as plain data: the event loop carries it out.

use agent_client_protocol_schema::v1::{
    ContentBlock, ElicitationAction, PermissionOptionId, SessionConfigId, SessionConfigOptionValue,
    SessionInfo, SessionModeId,
};

/// Names a prompt from before it is sent until it is answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PromptName(pub(crate) String);

/// Names a question of the agent while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QuestionNumber(pub(crate) u64);

/// How a prompt reaches an agent that is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// When the turn has ended.
    Queued,
    /// Before the next call of the model.
    Steering,
}

/// Why the user is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingReason {
    Question,
    Done,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Intent {
    Prompt {
        name: PromptName,
        blocks: Vec<ContentBlock>,
        delivery: Delivery,
    },
    /// A prompt that waits with the agent.
    TakeBack(PromptName),
    Cancel,
    /// `None`: the turn is being cancelled.
    Permit {
        question: QuestionNumber,
        option: Option<PermissionOptionId>,
    },
    Fill {
        question: QuestionNumber,
        action: ElicitationAction,
    },
    SetMode(SessionModeId),
    SetOption {
        option: SessionConfigId,
        value: SessionConfigOptionValue,
    },
    ListSessions,
    /// The agent may know how this command goes on.
    Complete(String),
    Open(Box<SessionInfo>),
    StartNew,
    Fork,
    Rewind(PromptName),
    /// The text of the composer goes to an editor of the user's own.
    Edit(String),
    /// A command of the user's own, as it was typed.
    Run(String),
    /// The command that runs.
    StopRun,
    /// Attach the picture in the clipboard, if there is one.
    PastePicture,
    Redraw,
    Suspend,
    Ring(RingReason),
    Leave,
}
