//! The commands to a session.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Reply;
use crate::agents::WhenDone;
use crate::choices::Chosen;
use crate::events::SessionStatus;
use crate::hub::{AttachFrom, Attachment, QueuedMessage, SessionPlace, TurnOutcome};
use crate::ids::{CallId, MessageId, SessionId};
use crate::metadata::BackgroundTask;
use crate::ports::Client;
use crate::ports::model::ThoughtLevel;
use crate::ports::projects::{ConsentAnswer, ConsentRequest};
use crate::ports::store::{ModelRef, SessionPatch};
use crate::prompt::Prompt;
use crate::rewind::{Rewound, Unrewound};
use crate::slash_commands::CompletedCommand;
use crate::task::TaskTerms;
use crate::task::relay::ChildQuestion;
use crate::watchdog::Approval;

/// Everything that a session can be asked. Handled one after the other, in the order given.
#[derive(Debug)]
pub(crate) enum SessionCommand {
    /// Settles what an earlier owner left behind, if anything.
    Recover(Reply<()>),
    /// The same; from then on the session has exactly these directories beside its root, and these servers of
    /// its client.
    WorkIn {
        place: SessionPlace,
        reply: Reply<()>,
    },
    Prompt {
        client: Option<Arc<dyn Client>>,
        prompt: Prompt,
        accept: oneshot::Sender<MessageId>,
        answer: Reply<TurnOutcome>,
    },
    Cancel,
    CancelPrompt(MessageId),
    Attach {
        client: Option<Arc<dyn Client>>,
        from: AttachFrom,
        reply: Reply<Attachment>,
    },
    ParticipantReady(u64),
    ParticipantLeft(u64),
    SetMode {
        agent: String,
        reply: Reply<Chosen>,
    },
    SetModel {
        model: ModelRef,
        reply: Reply<Chosen>,
    },
    SetThought {
        level: Option<ThoughtLevel>,
        reply: Reply<Chosen>,
    },
    SetApproval {
        approval: Approval,
        reply: Reply<Chosen>,
    },
    /// An option of an agent that lives elsewhere.
    SetOption {
        id: String,
        value: String,
        reply: Reply<Chosen>,
    },
    /// The available choices have changed.
    ChoicesChanged,
    /// The agent, which lives elsewhere, has other commands now.
    AgentCommandsChanged,
    Patch {
        patch: Box<SessionPatch>,
        reply: Reply<()>,
    },
    Status(oneshot::Sender<SessionStatus>),
    /// What could come next in a command that is being typed.
    Complete {
        text: String,
        reply: Reply<Vec<CompletedCommand>>,
    },
    QueueList(Reply<Vec<QueuedMessage>>),
    QueueCancel {
        message_id: MessageId,
        reply: Reply<()>,
    },
    QueueEdit {
        message_id: MessageId,
        prompt: Prompt,
        reply: Reply<()>,
    },
    /// Hides a prompt and everything after it. The client may handle files itself.
    Rewind {
        message_id: MessageId,
        client: Option<Arc<dyn Client>>,
        reply: Reply<Rewound>,
    },
    Unrewind {
        client: Option<Arc<dyn Client>>,
        reply: Reply<Unrewound>,
    },
    /// The user's decision about the project's own configuration.
    Consent {
        request: ConsentRequest,
        consent: ConsentAnswer,
        reply: Reply<()>,
    },
    Notice {
        severity: &'static str,
        title: String,
        description: Option<String>,
    },
    /// Servers offer different prompts now.
    PromptsChanged,
    /// A call of the current turn gives work to a child.
    TaskTerms(Reply<TaskTerms>),
    /// A child begins to work in the background, once this is stored.
    BackgroundStarted {
        task: BackgroundTask,
        cancel: CancellationToken,
        reply: Reply<()>,
    },
    BackgroundEnded {
        session: SessionId,
        text: String,
        when_done: WhenDone,
    },
    /// A child has a question for the people of this session.
    AskForChild(Box<ChildQuestion>),
    WithdrawForChild(CallId),
    /// A child has added to what answers allow.
    StoreAuthority,
    /// The task that opened it is over: close it if nothing runs and no client takes part.
    CloseUnattended,
    Close(Reply<()>),
    Shutdown(Reply<()>),
}
