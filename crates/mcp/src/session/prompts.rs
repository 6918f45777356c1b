//! The prompts of a session's servers: under which commands they are known, and who writes them out.

use std::sync::Arc;

use attache_core::ports::mcp::{BegunArgument, ServerPrompt, ServerState, WrittenPrompt};

use super::{Member, MemberKind, Members, OpenedServers};
use crate::client::ServerClient;
use crate::listing::shortened;

/// A prompt that can be asked for now.
struct ReachedPrompt {
    client: ServerClient,
    /// As its server calls it.
    name: String,
}

impl Members {
    /// Commands stay what they were when a prompt comes back.
    pub(super) fn prompts(&mut self) -> Arc<[ServerPrompt]> {
        let Self { list, commands, .. } = self;
        let mut all = Vec::new();
        for Member { name: server, kind, .. } in list {
            let MemberKind::Has(running) = kind else { continue };
            let listed = running.view.borrow().prompts.clone();
            for prompt in listed.iter() {
                let given = running.given_commands.entry(prompt.name.clone());
                let command = given.or_insert_with(|| commands.take_with(':', server, &prompt.name));
                all.push(ServerPrompt {
                    command: command.as_str().into(),
                    description: format!("{} (MCP server {})", prompt.description, shortened(server, 40))
                        .into(),
                    arguments: prompt.arguments.clone().into(),
                });
            }
        }
        all.into()
    }

    fn reached(&self, command: &str) -> Result<ReachedPrompt, String> {
        let known = self.list.iter().find_map(|member| {
            let MemberKind::Has(running) = &member.kind else { return None };
            let (name, _) = running.given_commands.iter().find(|(_, given)| *given == command)?;
            Some((member, running, name))
        });
        let Some((member, running, name)) = known else { return Err("no server has it any more".to_owned()) };
        let view = running.view.borrow();
        if let Some(client) = &view.client {
            let is_there = view.prompts.iter().any(|prompt| prompt.name == *name);
            let gone = || format!("the mcp server {} no longer has it", member.name);
            return match is_there {
                true => Ok(ReachedPrompt { client: client.clone(), name: name.clone() }),
                false => Err(gone()),
            };
        }
        let why = match &view.state {
            ServerState::Connecting => "it is still connecting",
            ServerState::Ready => "it was closed",
            ServerState::Failed(why) | ServerState::WaitingForConsent(why) => why,
        };
        Err(format!("mcp server {} is unavailable: {why}", member.name))
    }
}

impl OpenedServers {
    /// Finds the prompt now, asks its server later.
    pub(super) fn writing(
        &self,
        command: &str,
        arguments: Vec<(String, String)>,
    ) -> impl Future<Output = Result<WrittenPrompt, String>> + Send + 'static {
        let reached = self.lock().reached(command);
        async move {
            let ReachedPrompt { client, name } = reached?;
            client.write_out(&name, arguments).await
        }
    }

    pub(super) fn suggesting(
        &self,
        command: &str,
        given: Vec<(String, String)>,
        argument: BegunArgument<'_>,
    ) -> impl Future<Output = Vec<String>> + Send + 'static {
        let (argument, typed) = (argument.name.to_owned(), argument.typed.to_owned());
        let reached = self.lock().reached(command);
        async move {
            let argument = BegunArgument { name: &argument, typed: &typed };
            match reached {
                Ok(ReachedPrompt { client, name }) => client.suggestions(&name, given, argument).await,
                Err(_) => Vec::new(),
            }
        }
    }
}
