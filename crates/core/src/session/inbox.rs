//! The commands to a session, in order. Commands that arrived during another one and can wait come next.

use std::collections::VecDeque;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender};

use super::SessionCommand;

pub(super) struct Inbox {
    /// For the participants that we give out, and for commands to ourselves. Weak: the session ends when no one
    /// else can send to it.
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

    /// The next command; `None` if no sender is left.
    pub(super) async fn next(&mut self) -> Option<SessionCommand> {
        match self.waiting.pop_front() {
            Some(command) => Some(command),
            None => self.arriving.recv().await,
        }
    }

    /// A command that arrives while another is being handled.
    pub(super) async fn arriving(&mut self) -> Option<SessionCommand> {
        self.arriving.recv().await
    }

    pub(super) fn keep(&mut self, command: SessionCommand) {
        self.waiting.push_back(command);
    }
}
