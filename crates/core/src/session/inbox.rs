//! The commands to a session, in order. Those that came while another was obeyed, and can wait, are next.

use std::collections::VecDeque;

use tokio::sync::mpsc::UnboundedReceiver;

use super::SessionCommand;

pub(super) struct Inbox {
    arriving: UnboundedReceiver<SessionCommand>,
    waiting: VecDeque<SessionCommand>,
}

impl Inbox {
    pub(super) fn new(arriving: UnboundedReceiver<SessionCommand>) -> Self {
        Self { arriving, waiting: VecDeque::new() }
    }

    /// The next one to be obeyed; `None` when no sender is left.
    pub(super) async fn next(&mut self) -> Option<SessionCommand> {
        match self.waiting.pop_front() {
            Some(command) => Some(command),
            None => self.arriving.recv().await,
        }
    }

    /// One that comes in now, while another is obeyed.
    pub(super) async fn arriving(&mut self) -> Option<SessionCommand> {
        self.arriving.recv().await
    }

    pub(super) fn keep(&mut self, command: SessionCommand) {
        self.waiting.push_back(command);
    }
}
