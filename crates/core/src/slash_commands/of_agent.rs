//! Commands that an agent understands which lives elsewhere, behind those of the session. Runs none.

use std::sync::Arc;

use super::{CommandAction, SlashCommand, SlashCommands};
use crate::ports::foreign::AgentCommand;

/// Stands before a command of the agent whose name is one of ours, as before its options.
const OF_AGENT: &str = "agent.";

impl SlashCommands {
    /// These, and behind them those of the agent.
    pub(crate) fn with_agent(&self, commands: Vec<AgentCommand>) -> Self {
        let of_agent = |command: AgentCommand| {
            let own: Arc<str> = command.name.into();
            let name = match self.find(&own) {
                Some(_) => format!("{OF_AGENT}{own}").into(),
                None => own.clone(),
            };
            SlashCommand {
                name,
                description: command.description.into(),
                input_hint: command.input_hint.map(Arc::from),
                action: CommandAction::OfAgent(own),
            }
        };
        if commands.is_empty() { self.clone() } else { self.and(commands.into_iter().map(of_agent)) }
    }
}
