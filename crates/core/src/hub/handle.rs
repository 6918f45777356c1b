//! A handle to one open session: everything a connection can ask of it. It only passes requests on; the
//! session's task decides.

use std::sync::Arc;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, oneshot};

use super::{AttachFrom, Attachment, HubError, QueuedMessage, SessionPlace, Ticket};
use crate::choices::Chosen;
use crate::events::SessionStatus;
use crate::ids::{MessageId, SessionId};
use crate::ports::model::ThoughtLevel;
use crate::ports::projects::{ConsentAnswer, ConsentRequest};
use crate::ports::store::{ModelRef, SessionPatch};
use crate::ports::{BoxFuture, Client};
use crate::prompt::Prompt;
use crate::rewind::{Rewound, Unrewound};
use crate::session::SessionCommand;
use crate::slash_commands::CompletedCommand;
use crate::watchdog::Approval;

/// The answer of a session's task to a command that has been sent.
pub type SessionReply<T> = BoxFuture<'static, Result<T, HubError>>;

/// A cheap handle to one open session. Every method sends its request at once, so that requests keep the order
/// of the calls; the futures only wait for the answer.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    pub(super) id: SessionId,
    pub(super) commands: mpsc::UnboundedSender<SessionCommand>,
}

impl SessionHandle {
    /// The session it leads to.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// From the next turn on, the session has exactly these directories beside its root, and these servers.
    pub fn work_in(&self, place: SessionPlace) -> SessionReply<()> {
        self.ask_fallible(|reply| SessionCommand::WorkIn { place, reply })
    }

    /// Submits a prompt of no particular client; when this returns, the prompt has its place in the queue.
    pub fn prompt(&self, prompt: Prompt) -> Ticket {
        self.prompt_of(None, prompt)
    }

    /// Submits a prompt of this client; its turn uses this client's terminals and files.
    pub fn prompt_of(&self, client: Option<Arc<dyn Client>>, prompt: Prompt) -> Ticket {
        let (accept, accepted) = oneshot::channel();
        let (answer, outcome) = oneshot::channel();
        let refused = self.commands.send(SessionCommand::Prompt { client, prompt, accept, answer });
        if let Err(SendError(SessionCommand::Prompt { answer, .. })) = refused {
            drop(answer.send(Err(HubError::Closed(self.id.clone()))));
        }
        Ticket { accepted, outcome }
    }

    /// Aborts the current turn; without one this does nothing.
    pub fn cancel(&self) {
        drop(self.commands.send(SessionCommand::Cancel));
    }

    /// Aborts the turn of this one message if it is live, takes it from the queue if it waits.
    pub fn cancel_prompt(&self, message_id: MessageId) {
        drop(self.commands.send(SessionCommand::CancelPrompt(message_id)));
    }

    /// Joins the session. `client` answers questions; `None` for readers that can't.
    pub fn attach(&self, client: Option<Arc<dyn Client>>, from: AttachFrom) -> SessionReply<Attachment> {
        self.ask_fallible(|reply| SessionCommand::Attach { client, from, reply })
    }

    /// Uses another agent from the next turn on.
    pub fn set_mode(&self, agent: String) -> SessionReply<Chosen> {
        self.ask_fallible(|reply| SessionCommand::SetMode { agent, reply })
    }

    /// Uses another model from the next turn on.
    pub fn set_model(&self, model: ModelRef) -> SessionReply<Chosen> {
        self.ask_fallible(|reply| SessionCommand::SetModel { model, reply })
    }

    /// Sets how much the model thinks; `None`: the model's default.
    pub fn set_thought(&self, level: Option<ThoughtLevel>) -> SessionReply<Chosen> {
        self.ask_fallible(|reply| SessionCommand::SetThought { level, reply })
    }

    /// Sets how much runs without a question, from the next call on.
    pub fn set_approval(&self, approval: Approval) -> SessionReply<Chosen> {
        self.ask_fallible(|reply| SessionCommand::SetApproval { approval, reply })
    }

    /// Sets an option of an agent that lives elsewhere, from the next turn on.
    pub fn set_option(&self, id: String, value: String) -> SessionReply<Chosen> {
        self.ask_fallible(|reply| SessionCommand::SetOption { id, value, reply })
    }

    /// Changes the row (title …) without a turn.
    pub fn patch(&self, patch: SessionPatch) -> SessionReply<()> {
        self.ask_fallible(|reply| SessionCommand::Patch { patch: Box::new(patch), reply })
    }

    /// The current status.
    pub fn status(&self) -> SessionReply<SessionStatus> {
        self.ask(SessionCommand::Status)
    }

    /// What could come next in a command that is being typed.
    pub fn complete_command(&self, text: String) -> SessionReply<Vec<CompletedCommand>> {
        self.ask_fallible(|reply| SessionCommand::Complete { text, reply })
    }

    /// The messages that wait for their turn, in order.
    pub fn queued(&self) -> SessionReply<Vec<QueuedMessage>> {
        self.ask_fallible(SessionCommand::QueueList)
    }

    /// Takes a waiting message out of the queue; its prompt is answered as cancelled.
    pub fn cancel_queued(&self, message_id: MessageId) -> SessionReply<()> {
        self.ask_fallible(|reply| SessionCommand::QueueCancel { message_id, reply })
    }

    /// Replaces the content of a waiting message.
    pub fn edit_queued(&self, message_id: MessageId, prompt: Prompt) -> SessionReply<()> {
        self.ask_fallible(|reply| SessionCommand::QueueEdit { message_id, prompt, reply })
    }

    /// Hides a prompt and everything after it, and restores the files that tools changed since. Refused while a
    /// turn runs.
    pub fn rewind(&self, client: Option<Arc<dyn Client>>, message_id: MessageId) -> SessionReply<Rewound> {
        self.ask_fallible(|reply| SessionCommand::Rewind { message_id, client, reply })
    }

    /// Undoes the last rewind, if no turn has started since.
    pub fn unrewind(&self, client: Option<Arc<dyn Client>>) -> SessionReply<Unrewound> {
        self.ask_fallible(|reply| SessionCommand::Unrewind { client, reply })
    }

    /// The user's decision about the project's own configuration; it applies from the next turn on.
    pub fn decide(&self, request: ConsentRequest, consent: ConsentAnswer) -> SessionReply<()> {
        self.ask_fallible(|reply| SessionCommand::Consent { request, consent, reply })
    }

    /// Sends a notice to every attached client, outside of any turn.
    pub fn notice(&self, severity: &'static str, title: String, description: Option<String>) {
        drop(self.commands.send(SessionCommand::Notice { severity, title, description }));
    }

    /// Ends the session's task as soon as nothing is under way and no client takes part.
    pub fn close_unattended(&self) {
        // If the session is gone, it is closed already.
        drop(self.commands.send(SessionCommand::CloseUnattended));
    }

    /// Cancels what runs, answers what waits, and ends the session's task. The row stays.
    pub fn close(&self) -> SessionReply<()> {
        let answer = self.ask(SessionCommand::Close);
        Box::pin(async move {
            match answer.await {
                Ok(closed) => closed,
                // Another client has closed it already.
                Err(HubError::Closed(_)) => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    pub(super) fn ask<T: Send + 'static>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> SessionCommand,
    ) -> SessionReply<T> {
        let (reply, answer) = oneshot::channel();
        // If the session has ended, the command is dropped, which ends the wait.
        drop(self.commands.send(command(reply)));
        let id = self.id.clone();
        Box::pin(async move { answer.await.map_err(|_| HubError::Closed(id)) })
    }

    pub(super) fn ask_fallible<T: Send + 'static>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, HubError>>) -> SessionCommand,
    ) -> SessionReply<T> {
        let answer = self.ask(command);
        Box::pin(async move { answer.await? })
    }
}
