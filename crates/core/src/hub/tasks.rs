//! What child sessions need of the hub: their parent sessions, what those allow, and a slot among the running
//! children.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::handle::SessionReply;
use super::{Hub, Ports, SessionHandle, Shared};
use crate::agents::WhenDone;
use crate::ids::{CallId, SessionId};
use crate::metadata::BackgroundTask;
use crate::session::SessionCommand;
use crate::session::authority::SessionAuthority;
use crate::task::TaskTerms;
use crate::task::relay::ChildQuestion;
use crate::task::slots::TaskSlots;

impl Shared {
    /// What an open session allows, now and as it changes.
    pub(crate) fn authority(&self, session: &SessionId) -> Option<SessionAuthority> {
        self.known_authorities().get(session).cloned()
    }

    pub(crate) fn put_authority(&self, session: &SessionId, authority: &SessionAuthority) {
        self.known_authorities().insert(session.clone(), authority.clone());
    }

    /// Removes only this one: a session that was opened again has a new one.
    pub(crate) fn forget_authority(&self, session: &SessionId, authority: &SessionAuthority) {
        let mut known = self.known_authorities();
        if known.get(session).is_some_and(|known| known.same_as(authority)) {
            known.remove(session);
        }
    }

    fn known_authorities(&self) -> MutexGuard<'_, HashMap<SessionId, SessionAuthority>> {
        self.authorities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a command to an open session; does nothing for one that is not open.
    pub(crate) fn tell(&self, session: &SessionId, command: SessionCommand) {
        if let Some(commands) = self.open_sessions().get(session) {
            drop(commands.send(command));
        }
    }
}

impl Hub {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.shared.ports
    }

    pub(crate) fn task_slots(&self) -> Arc<TaskSlots> {
        self.shared.task_slots.clone()
    }

    /// The task of an open session; a crashed task does not count.
    pub(super) fn living(&self, id: &SessionId) -> Option<mpsc::UnboundedSender<SessionCommand>> {
        self.shared.open_sessions().get(id).filter(|commands| !commands.is_closed()).cloned()
    }

    /// A session whose task runs here.
    pub(crate) fn opened(&self, id: &SessionId) -> Option<SessionHandle> {
        self.living(id).map(|commands| SessionHandle { id: id.clone(), commands })
    }
}

impl SessionHandle {
    pub(crate) fn task_terms(&self) -> SessionReply<TaskTerms> {
        self.ask_fallible(SessionCommand::TaskTerms)
    }

    pub(crate) fn background_started(
        &self,
        task: BackgroundTask,
        cancel: CancellationToken,
    ) -> SessionReply<()> {
        self.ask_fallible(|reply| SessionCommand::BackgroundStarted { task, cancel, reply })
    }

    pub(crate) fn background_ended(&self, session: SessionId, text: String, when_done: WhenDone) {
        drop(self.commands.send(SessionCommand::BackgroundEnded { session, text, when_done }));
    }

    pub(crate) fn ask_for_child(&self, question: ChildQuestion) {
        // If the parent is gone, it drops the question, which ends the wait.
        drop(self.commands.send(SessionCommand::AskForChild(Box::new(question))));
    }

    pub(crate) fn withdraw_for_child(&self, call_id: CallId) {
        drop(self.commands.send(SessionCommand::WithdrawForChild(call_id)));
    }
}
