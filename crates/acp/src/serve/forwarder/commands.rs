//! Tells a client which slash commands its session has, and when they become others.

use attache_core::slash_commands::{CommandsFeed, SlashCommands};

use super::{Forwarder, Interruption};
use crate::to_wire::write_commands;

impl Forwarder {
    /// Which slash commands the session has: told behind the answer that opened it here, and before anything of
    /// its turns. Files are read for some of them, which the first turn waits for, too.
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

/// Waits for ever while nothing was told.
pub(super) async fn changed(feed: &mut Option<CommandsFeed>) -> SlashCommands {
    match feed {
        Some(feed) => feed.changed().await,
        None => std::future::pending().await,
    }
}
