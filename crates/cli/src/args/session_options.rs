//! The options that change the configuration, whichever command they were typed behind.

use super::{AllowedAccess, Args, CliCommand, McpArgs, McpCommand, SessionArgs};

/// What options say about sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionOptions<'a> {
    pub(crate) model: Option<&'a str>,
    pub(crate) agent: Option<&'a str>,
    pub(crate) approval: Option<&'a str>,
    pub(crate) sandbox: Option<&'a str>,
    pub(crate) client_fs: Option<&'a str>,
    pub(crate) max_steps: Option<String>,
    pub(crate) allow: &'a [AllowedAccess],
}

impl Args {
    /// The options about sessions, of the commands that have them.
    pub(crate) fn session_options(&self) -> SessionOptions<'_> {
        match &self.command {
            Some(CliCommand::Acp(acp)) => {
                SessionOptions { client_fs: acp.client_fs.as_deref(), ..acp.sessions.options() }
            }
            Some(CliCommand::Mcp(McpArgs { command: McpCommand::Serve(serve) })) => serve.sessions.options(),
            Some(CliCommand::Serve(serve)) => {
                SessionOptions { client_fs: serve.client_fs.as_deref(), ..serve.sessions.options() }
            }
            // An agent of somebody else has settings of its own.
            Some(CliCommand::Chat(chat)) if chat.agent_command.is_none() && chat.connect.is_none() => {
                SessionOptions {
                    model: chat.model.as_deref(),
                    agent: chat.agent.as_deref(),
                    approval: chat.approval.as_deref(),
                    sandbox: chat.sandbox.as_deref(),
                    client_fs: None,
                    max_steps: chat.max_steps.map(|steps| steps.to_string()),
                    allow: &chat.allow,
                }
            }
            Some(_) | None => SessionOptions::default(),
        }
    }

    /// Whether sessions run in this process, and with them commands of others.
    pub(crate) fn runs_an_agent(&self) -> bool {
        match &self.command {
            Some(CliCommand::Acp(_) | CliCommand::Chat(_)) => true,
            Some(CliCommand::Serve(serve)) => !serve.show_token,
            Some(CliCommand::Mcp(mcp)) => matches!(mcp.command, McpCommand::Serve(_)),
            Some(_) | None => false,
        }
    }
}

impl SessionArgs {
    fn options(&self) -> SessionOptions<'_> {
        SessionOptions {
            model: self.model.as_deref(),
            agent: self.agent.as_deref(),
            approval: self.approval.as_deref(),
            sandbox: self.sandbox.as_deref(),
            ..SessionOptions::default()
        }
    }
}
