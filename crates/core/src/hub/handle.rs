//! A handle to one open session: everything a connection can tell it. It only passes on; the session's task decides.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, oneshot};

use super::{AttachFrom, Attachment, HubError, QueuedMessage, Ticket};
use crate::choices::Chosen;
use crate::events::Status;
use crate::ids::{MessageId, SessionId};
use crate::ports::Client;
use crate::ports::model::ThoughtLevel;
use crate::ports::store::{ModelRef, SessionPatch};
use crate::prompt::Prompt;
use crate::session::Command;
use crate::watchdog::Approval;

/// A cheap handle to one open session. Methods without `async` never wait and keep the order in which they are called.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    pub(super) id: SessionId,
    pub(super) commands: mpsc::UnboundedSender<Command>,
}

impl SessionHandle {
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Has exactly these directories beside the root from the next turn on.
    pub async fn work_in(&self, additional: Vec<PathBuf>) -> Result<(), HubError> {
        self.ask(|reply| Command::WorkIn { additional, reply }).await?
    }

    /// Hands in a prompt of nobody in particular; its place in the order is taken when this returns.
    pub fn prompt(&self, prompt: Prompt) -> Ticket {
        self.prompt_of(None, prompt)
    }

    /// Hands in a prompt of this client, whose side of the work its turn uses.
    pub fn prompt_of(&self, client: Option<Arc<dyn Client>>, prompt: Prompt) -> Ticket {
        let (accept, accepted) = oneshot::channel();
        let (answer, outcome) = oneshot::channel();
        let refused = self.commands.send(Command::Prompt { client, prompt, accept, answer });
        if let Err(SendError(Command::Prompt { answer, .. })) = refused {
            drop(answer.send(Err(HubError::Closed(self.id.clone()))));
        }
        Ticket { accepted, outcome }
    }

    /// Aborts the turn under way; without one nothing happens.
    pub fn cancel(&self) {
        drop(self.commands.send(Command::Cancel));
    }

    /// Aborts the turn of this one message if it is live, takes it from the queue if it waits.
    pub fn cancel_prompt(&self, message_id: MessageId) {
        drop(self.commands.send(Command::CancelPrompt(message_id)));
    }

    /// Takes a seat. `client` answers questions; `None` for readers that can't.
    pub async fn attach(
        &self,
        client: Option<Arc<dyn Client>>,
        from: AttachFrom,
    ) -> Result<Attachment, HubError> {
        self.ask(|reply| Command::Attach { client, from, reply }).await?
    }

    pub async fn set_mode(&self, agent: String) -> Result<Chosen, HubError> {
        self.ask(|reply| Command::SetMode { agent, reply }).await?
    }

    pub async fn set_model(&self, model: ModelRef) -> Result<Chosen, HubError> {
        self.ask(|reply| Command::SetModel { model, reply }).await?
    }

    /// How much the model thinks; `None`: as it does by itself.
    pub async fn set_thought(&self, level: Option<ThoughtLevel>) -> Result<Chosen, HubError> {
        self.ask(|reply| Command::SetThought { level, reply }).await?
    }

    /// How much happens without asking, from the next call on.
    pub async fn set_approval(&self, approval: Approval) -> Result<Chosen, HubError> {
        self.ask(|reply| Command::SetApproval { approval, reply }).await?
    }

    /// Changes the row (title …) without a turn.
    pub async fn patch(&self, patch: SessionPatch) -> Result<(), HubError> {
        self.ask(|reply| Command::Patch { patch: Box::new(patch), reply }).await?
    }

    pub async fn status(&self) -> Result<Status, HubError> {
        self.ask(Command::Status).await
    }

    pub async fn queued(&self) -> Result<Vec<QueuedMessage>, HubError> {
        self.ask(Command::QueueList).await?
    }

    /// Takes a waiting message out of the queue; its prompt is answered as cancelled.
    pub async fn cancel_queued(&self, message_id: MessageId) -> Result<(), HubError> {
        self.ask(|reply| Command::QueueCancel { message_id, reply }).await?
    }

    /// Replaces the content of a waiting message.
    pub async fn edit_queued(&self, message_id: MessageId, prompt: Prompt) -> Result<(), HubError> {
        self.ask(|reply| Command::QueueEdit { message_id, prompt, reply }).await?
    }

    /// Says something to everybody attached, outside of any turn.
    pub fn notice(&self, severity: &'static str, title: String, description: Option<String>) {
        drop(self.commands.send(Command::Notice { severity, title, description }));
    }

    /// Cancels what runs, answers what waits, and ends the session's task. The row stays.
    pub async fn close(&self) -> Result<(), HubError> {
        match self.ask(Command::Close).await {
            Ok(closed) => closed,
            // Closed already, by somebody else.
            Err(HubError::Closed(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, HubError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).map_err(|_| HubError::Closed(self.id.clone()))?;
        answer.await.map_err(|_| HubError::Closed(self.id.clone()))
    }
}
