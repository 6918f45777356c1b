//! Prompts of servers as commands of a session: listed after the others, and written out by their server when a
//! user types them.

use super::knowledge::{ResolvedPrompt, too_long};
use super::{Reply, Session, answer};
use crate::command_templates::{TurnChoice, next_word, words_for};
use crate::hub::HubError;
use crate::ids::MessageId;
use crate::limits::TEMPLATE_EXPANSION_BYTES;
use crate::part::Part;
use crate::ports::mcp::{ArgumentNeed, BegunArgument, ServerPrompt};
use crate::slash_commands::{CompletedCommand, TypedCommand, in_first_place};

impl Session {
    /// The parts of a prompt in their stored form, with a known command recognised and written out; `None`: the
    /// user cancelled, or the session ends.
    pub(super) async fn resolve_any_command(
        &mut self,
        parts: Vec<Part>,
        message_id: Option<&MessageId>,
    ) -> Result<Option<Vec<Part>>, HubError> {
        if self.may_be_of_server(&parts) && self.await_prompts(message_id).await.is_none() {
            return Ok(None);
        }
        match self.resolve_command(parts).await? {
            ResolvedPrompt::Parts(parts) => Ok(Some(parts)),
            ResolvedPrompt::OfServer(prompt, parts) => self.write_out(&prompt, parts, message_id).await,
        }
    }

    /// Whether the prompt begins with an unknown name in the form of a server's prompt.
    fn may_be_of_server(&self, parts: &[Part]) -> bool {
        let typed = TypedCommand::of(parts);
        typed.is_some_and(|typed| {
            typed.name.contains(':') && self.knowledge.commands().find(typed.name).is_none()
        })
    }

    async fn write_out(
        &mut self,
        prompt: &ServerPrompt,
        parts: Vec<Part>,
        message_id: Option<&MessageId>,
    ) -> Result<Option<Vec<Part>>, HubError> {
        let Some(typed) = TypedCommand::of(&parts) else { return Ok(Some(parts)) };
        let Some(servers) = self.servers.open_servers() else { return Ok(Some(parts)) };
        let arguments = match arguments(prompt, typed.arguments) {
            Ok(arguments) => arguments,
            Err(ArgumentMistake::TooMany) => {
                let text = format!("`/{}` takes no arguments", prompt.command);
                return Err(HubError::Invalid(text));
            }
            Err(ArgumentMistake::Missing { name, given }) => {
                let argument = BegunArgument { name: &name, typed: "" };
                let suggesting = servers.suggestions(&prompt.command, given, argument);
                let Some(suggestions) = self.meanwhile(suggesting, message_id).await else { return Ok(None) };
                return Err(missing(prompt, &name, &suggestions));
            }
        };
        let writing = servers.write_out(&prompt.command, arguments);
        let Some(written) = self.meanwhile(writing, message_id).await else { return Ok(None) };
        let written = written.map_err(|why| HubError::Invalid(format!("`/{}`: {why}", prompt.command)))?;
        if written.text.len() > TEMPLATE_EXPANSION_BYTES {
            return Err(too_long(&prompt.command));
        }
        let part = typed.part(Some(written.text), &TurnChoice::default());
        // After the user's attachments, which keep their places.
        Ok(Some(in_first_place(parts, part).into_iter().chain(written.pictures).collect()))
    }

    /// What could come next in a command that is being typed, as the server of its prompt says. Nothing for
    /// other commands: they take any words. The session goes on meanwhile.
    pub(super) fn complete_command(&self, text: &str, reply: Reply<Vec<CompletedCommand>>) {
        let begun = || {
            let (name, arguments) = text.strip_prefix('/')?.split_once(char::is_whitespace)?;
            let prompt = self.knowledge.commands().find(name)?.of_server_prompt()?;
            let place = BegunPlace::of(prompt, arguments)?;
            Some((prompt, place, self.servers.open_servers()?))
        };
        let Some((prompt, place, servers)) = begun() else { return answer(reply, Ok(Vec::new())) };
        let argument = BegunArgument { name: &place.name, typed: &place.typed };
        let suggesting = servers.suggestions(&prompt.command, place.given, argument);
        let kept = text[..text.len() - place.length].to_owned();
        tokio::spawn(async move {
            let values = suggesting.await;
            let completed = values.into_iter().filter_map(|value| CompletedCommand::of(&kept, value));
            answer(reply, Ok(completed.collect()));
        });
    }

    /// What servers offer now is listed behind the session's other commands.
    pub(super) fn list_server_prompts(&mut self) {
        if self.servers.take_prompts() {
            self.list_commands();
        }
    }
}

/// The argument at the end of what is typed.
#[derive(Debug, PartialEq, Eq)]
struct BegunPlace {
    name: String,
    typed: String,
    /// Bytes that it takes at the end of the text, quotes included.
    length: usize,
    given: Vec<(String, String)>,
}

impl BegunPlace {
    /// `None`: the prompt takes no more.
    fn of(prompt: &ServerPrompt, arguments: &str) -> Option<Self> {
        let (mut rest, mut given) = (arguments.trim_start(), Vec::new());
        for (at, argument) in prompt.arguments.iter().enumerate() {
            let is_last = at + 1 == prompt.arguments.len();
            let begun = |typed: &str, length| Self {
                name: argument.name.clone(),
                typed: typed.to_owned(),
                length,
                given: given.clone(),
            };
            let Some((word, behind)) = next_word(rest) else { return Some(begun("", 0)) };
            let ends_here = behind.is_empty() && !rest.ends_with(char::is_whitespace);
            match (ends_here, is_last) {
                (true, _) => return Some(begun(word, rest.len())),
                (false, true) => return Some(begun(rest, rest.len())),
                (false, false) => given.push((argument.name.clone(), word.to_owned())),
            }
            rest = behind;
        }
        None
    }
}

/// What is wrong with the words behind a prompt.
#[derive(Debug, PartialEq, Eq)]
enum ArgumentMistake {
    TooMany,
    Missing {
        name: String,
        /// The arguments given before it.
        given: Vec<(String, String)>,
    },
}

/// The typed words, assigned to the prompt's arguments in order.
fn arguments(prompt: &ServerPrompt, typed: &str) -> Result<Vec<(String, String)>, ArgumentMistake> {
    let words = words_for(prompt.arguments.len(), typed);
    if prompt.arguments.is_empty() && !typed.is_empty() {
        return Err(ArgumentMistake::TooMany);
    }
    let mut given = Vec::new();
    let all = words.into_iter().map(Some).chain(std::iter::repeat(None));
    for (argument, word) in prompt.arguments.iter().zip(all) {
        match (word.filter(|word| !word.is_empty()), argument.need) {
            (Some(word), _) => given.push((argument.name.clone(), word)),
            (None, ArgumentNeed::Optional) => {}
            (None, ArgumentNeed::Required) => {
                return Err(ArgumentMistake::Missing { name: argument.name.clone(), given });
            }
        }
    }
    Ok(given)
}

fn missing(prompt: &ServerPrompt, name: &str, suggestions: &[String]) -> HubError {
    let command = &prompt.command;
    let hint = prompt.hint().unwrap_or_default();
    let known = match suggestions {
        [] => String::new(),
        some => format!(". Its server suggests: {}", some.join(", ")),
    };
    HubError::Invalid(format!("`/{command}` needs `{name}`: /{command} {hint}{known}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::mcp::PromptArgument;

    fn prompt(arguments: &[(&str, ArgumentNeed)]) -> ServerPrompt {
        let argument =
            |(name, need): &(&str, ArgumentNeed)| PromptArgument { name: (*name).to_owned(), need: *need };
        ServerPrompt {
            command: "s:p".into(),
            description: "".into(),
            arguments: arguments.iter().map(argument).collect(),
        }
    }

    #[test]
    fn the_argument_that_is_typed_is_found_with_those_before_it() {
        let both = prompt(&[("city", ArgumentNeed::Required), ("state", ArgumentNeed::Optional)]);
        let begun = |typed: &str| {
            let place = BegunPlace::of(&both, typed).unwrap();
            let replaced = typed[typed.len() - place.length..].to_owned();
            (place.name, place.typed, replaced, place.given.len())
        };
        let found = |name: &str, typed: &str, given| (name.to_owned(), typed.to_owned(), given);
        for (typed, (name, value, given), replaced) in [
            ("", found("city", "", 0), ""),
            (" ", found("city", "", 0), ""),
            (" Pa", found("city", "Pa", 0), "Pa"),
            (" 'New Y", found("city", "New Y", 0), "'New Y"),
            (" Paris ", found("state", "", 1), ""),
            (" Paris Te", found("state", "Te", 1), "Te"),
            (" Paris New Y", found("state", "New Y", 1), "New Y"),
        ] {
            assert_eq!(begun(typed), (name, value, replaced.to_owned(), given), "{typed:?}");
        }
        assert_eq!(BegunPlace::of(&prompt(&[]), " x"), None);
    }

    #[test]
    fn words_become_arguments_in_their_order() {
        let both = prompt(&[("city", ArgumentNeed::Required), ("state", ArgumentNeed::Optional)]);
        let pairs = |typed: &str| {
            let found = arguments(&both, typed)?;
            Ok(found.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>())
        };
        assert_eq!(pairs("Paris"), Ok(vec!["city=Paris".to_owned()]));
        assert_eq!(
            pairs("'New York' the state"),
            Ok(vec!["city=New York".to_owned(), "state=the state".to_owned()])
        );
        for typed in ["", "\"\" Texas"] {
            let missing = ArgumentMistake::Missing { name: "city".to_owned(), given: Vec::new() };
            assert_eq!(pairs(typed), Err(missing), "{typed}");
        }
        assert_eq!(arguments(&prompt(&[]), "x"), Err(ArgumentMistake::TooMany));
        assert_eq!(both.hint().as_deref(), Some("city [state]"));
    }
}
