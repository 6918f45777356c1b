//! A client's place in a session: questions reach it from `ready` on.

use tokio::sync::mpsc;

use crate::session::SessionCommand;

/// A client that takes part in a session. The session asks it from `ready` on, until this is dropped.
#[derive(Debug)]
pub struct Participant {
    pub(crate) number: u64,
    pub(crate) commands: mpsc::UnboundedSender<SessionCommand>,
}

impl Participant {
    /// Call this once the load or resume is answered: open questions may be asked now.
    pub fn ready(&self) {
        // If the session's task is gone, it asks nothing.
        drop(self.commands.send(SessionCommand::ParticipantReady(self.number)));
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        drop(self.commands.send(SessionCommand::ParticipantLeft(self.number)));
    }
}
