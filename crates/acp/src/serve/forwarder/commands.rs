//! Tells a client its session's slash commands, and every change of them.

use attache_core::slash_commands::{CommandsFeed, SlashCommands};

use super::{Forwarder, Interruption};
use crate::to_wire::write_commands;

impl Forwarder {
    /// Sends the session's slash commands after the answer that opened it here, and before anything of its
    /// turns. Some of them come from files that must be read first, so the first turn waits for that, too.
    pub(super) async fn tell_first_commands(&mut self, mut feed: CommandsFeed) -> Result<(), Interruption> {
        let commands = feed.first().await;
        self.slash_commands = Some(feed);
        self.tell_commands(&commands).await
    }

    pub(super) async fn tell_commands(&mut self, commands: &SlashCommands) -> Result<(), Interruption> {
        match write_commands(&self.session_id, commands, &mut self.buffer) {
            Ok(()) => self.flush().await,
            Err(error) => {
                self.buffer.clear();
                tracing::warn!(%error, "the commands of a session could not be told");
                Ok(())
            }
        }
    }
}

/// Waits for ever until the client has its first list.
pub(super) async fn changed(feed: &mut Option<CommandsFeed>) -> SlashCommands {
    match feed {
        Some(feed) => feed.changed().await,
        None => std::future::pending().await,
    }
}
