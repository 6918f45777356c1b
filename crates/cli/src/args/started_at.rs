//! What `attache` means without a command: it hangs on where it was typed.

use clap::CommandFactory;

use super::{Args, ChatArgs, CliCommand};

/// Where the command was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartedAt {
    /// A person types, and sees what is answered.
    Terminal,
    Elsewhere,
}

impl Args {
    /// Options alone are those of the talk that a person at a terminal begins.
    pub(super) fn with_command(mut self, started_at: StartedAt) -> Result<Self, clap::Error> {
        if self.command.is_some() || self.global.print_config {
            return Ok(self);
        }
        match started_at {
            StartedAt::Terminal => self.command = Some(CliCommand::Chat(ChatArgs::default())),
            StartedAt::Elsewhere => {
                let message = "a command is missing: chat, acp, demo, models, auth, doctor, init, import, mcp, serve, sessions, trust, usage or completions";
                return Err(Self::command().error(clap::error::ErrorKind::MissingSubcommand, message));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn alone_on_a_terminal_it_is_a_talk() {
        let options = || Args::try_parse_from(["attache", "--store", "sqlite:x.db"]).unwrap();
        let talk = options().with_command(StartedAt::Terminal).unwrap();
        assert!(matches!(talk.command, Some(CliCommand::Chat(ChatArgs { print: false, prompt: None, .. }))));
        assert_eq!(options().with_command(StartedAt::Elsewhere).unwrap_err().exit_code(), 2);
    }
}
