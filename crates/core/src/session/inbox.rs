//! The commands to a session, in order. Those that came while another was obeyed, and can wait, are next.

use std::collections::VecDeque;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender};

use super::SessionCommand;

pub(super) struct Inbox {
    /// For the participants we hand out, and for what the session tells itself. Weak: the session ends when no
    /// one else can send to it.
    sender: WeakUnboundedSender<SessionCommand>,
    arriving: UnboundedReceiver<SessionCommand>,
    waiting: VecDeque<SessionCommand>,
}

impl Inbox {
    pub(super) fn new(
        sender: WeakUnboundedSender<SessionCommand>,
        arriving: UnboundedReceiver<SessionCommand>,
    ) -> Self {
        Self { sender, arriving, waiting: VecDeque::new() }
    }

    pub(super) fn sender(&self) -> Option<UnboundedSender<SessionCommand>> {
        self.sender.upgrade()
    }

    /// For a callback that must not keep the session alive.
    pub(super) fn weak_sender(&self) -> WeakUnboundedSender<SessionCommand> {
        self.sender.clone()
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
