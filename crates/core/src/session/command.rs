//! What a session can be told.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::Reply;
use crate::choices::Chosen;
use crate::events::SessionStatus;
use crate::hub::{AttachFrom, Attachment, QueuedMessage, TurnOutcome};
use crate::ids::MessageId;
use crate::ports::Client;
use crate::ports::model::ThoughtLevel;
use crate::ports::store::{ModelRef, SessionPatch};
use crate::prompt::Prompt;
use crate::rewind::{Rewound, Unrewound};
use crate::watchdog::Approval;

/// Everything a session can be told. Handled one after the other, in the order given.
#[derive(Debug)]
pub(crate) enum SessionCommand {
    /// Settle what an earlier owner left behind, if anything.
    Recover(Reply<()>),
    /// The same for a session that from now on has exactly these directories beside its root.
    WorkIn {
        additional: Vec<PathBuf>,
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
    /// What can be chosen has become another.
    ChoicesChanged,
    Patch {
        patch: Box<SessionPatch>,
        reply: Reply<()>,
    },
    Status(oneshot::Sender<SessionStatus>),
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
    /// Hides a prompt and everything behind it. The client has a side of its own for files.
    Rewind {
        message_id: MessageId,
        client: Option<Arc<dyn Client>>,
        reply: Reply<Rewound>,
    },
    Unrewind {
        client: Option<Arc<dyn Client>>,
        reply: Reply<Unrewound>,
    },
    Notice {
        severity: &'static str,
        title: String,
        description: Option<String>,
    },
    Close(Reply<()>),
    Shutdown(Reply<()>),
}
