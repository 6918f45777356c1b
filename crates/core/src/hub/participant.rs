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
    /// The load or resume has been answered: open questions may be asked now.
    pub fn ready(&self) {
        // A session task that is gone asks nothing.
        drop(self.commands.send(SessionCommand::ParticipantReady(self.number)));
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        drop(self.commands.send(SessionCommand::ParticipantLeft(self.number)));
    }
}
