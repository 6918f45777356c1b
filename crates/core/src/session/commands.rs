//! What the built-in slash commands do, and the turn that answers one. A command without arguments shows the
//! current choice; with arguments it chooses, through the same functions as a client's own controls.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Session;
use crate::agents::{Agent, AgentMode};
use crate::choices::Chosen;
use crate::chunk::{Chunk, FinishReason, Rest};
use crate::hub::HubError;
use crate::nearest::meant;
use crate::ports::BoxFuture;
use crate::ports::backend::{BackendTurn, NextHistory, TurnContext, TurnLeftovers, TurnResult, TurnStart};
use crate::ports::model::ThoughtLevel;
use crate::ports::store::{ModelRef, StoreResult};
use crate::skills::Skill;
use crate::slash_commands::{CommandAction, Invocation, SlashCommand};
use crate::turn::{FailureKind, TurnEnd};

/// The word for the model's default thought level.
const DEFAULT_THOUGHT: &str = "default";

impl Session {
    /// How to execute a command; a mistake in it gives an answer, too.
    pub(super) fn command_action(&self, invocation: &Invocation) -> Result<CommandAction, String> {
        let Invocation { name, arguments, attachments } = invocation;
        let Some(SlashCommand { input_hint, action, .. }) = self.knowledge.commands().find(name) else {
            let meant = self.knowledge.commands().slip_of(name).map(|near| {
                format!(
                    " Did you mean `/{}`? To send your text to the model, put a word before it.",
                    near.name
                )
            });
            return Err(format!("There is no command `/{name}` here.{}", meant.unwrap_or_default()));
        };
        if *attachments > 0 {
            return Err(format!("`/{name}` takes no attachments; nothing was done."));
        }
        if input_hint.is_none() && !arguments.is_empty() {
            return Err(format!("`/{name}` takes no arguments; it did nothing."));
        }
        Ok(action.clone())
    }
}

/// Formats an answer or an error as a sentence.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

pub(crate) async fn help(session: &mut Session, _arguments: &str) -> Result<String, HubError> {
    session.know().await;
    let line = |command: &SlashCommand| {
        let hint = command.input_hint.as_ref().map(|hint| format!(" [{}]", hint.to_uppercase()));
        format!("- `/{}{}`: {}", command.name, hint.unwrap_or_default(), command.description)
    };
    Ok(session.listed_commands().iter().map(line).collect::<Vec<_>>().join("\n"))
}

pub(crate) async fn skills(session: &mut Session, _arguments: &str) -> Result<String, HubError> {
    session.know().await;
    let line = |skill: &Arc<Skill>| {
        format!("- `{}`: {} (`{}`)", skill.name, skill.description, skill.path.display())
    };
    let lines: Vec<String> = session.knowledge.skills().list.iter().map(line).collect();
    Ok(match lines.is_empty() {
        true => "There are no skills here. A skill is a `SKILL.md` in a directory below `.agents/skills` or \
                 `.claude/skills` of the project or your home."
            .to_owned(),
        false => lines.join("\n"),
    })
}

pub(crate) async fn status(session: &mut Session, _arguments: &str) -> Result<String, HubError> {
    let chosen = session.chosen()?;
    let totals = session.read_record().await?.row.totals;
    let mut lines = vec![
        format!("- Mode: `{}`", chosen.agent),
        match session.own_choice("the model", "model") {
            Some(own) => format!("- Model: {own}"),
            None => format!("- Model: {}", model_name(&chosen)),
        },
        format!("- Approval: `{}`", chosen.approval.as_str()),
        format!("- Workspace: `{}`", session.row.workspace_root.display()),
        format!(
            "- Tokens: {} in, {} out, {} reasoning, {} read from the cache, {} written to it",
            totals.prompt_tokens,
            totals.completion_tokens,
            totals.reasoning_tokens,
            totals.cache_read,
            totals.cache_write
        ),
    ];
    if totals.cost_usd > 0.0 {
        lines.push(format!("- Cost: ${:.4}", totals.cost_usd));
    }
    let waiting = session.queue.len();
    if waiting > 0 {
        lines.push(format!("- Waiting prompts: {waiting}"));
    }
    Ok(lines.join("\n"))
}

pub(crate) async fn mode(session: &mut Session, wanted: &str) -> Result<String, HubError> {
    let chosen = match wanted {
        "" => session.chosen()?,
        wanted => session.set_mode(wanted.to_owned()).await?,
    };
    let ids = chosen.modes.iter().map(|mode| mode.id.as_str());
    Ok(shown("Mode", &chosen.agent, wanted, ids))
}

pub(crate) async fn agents(session: &mut Session, _arguments: &str) -> Result<String, HubError> {
    let current = session.current_agent()?.id;
    let line = |agent: &Agent| {
        let here = if agent.id == current { ", the mode now" } else { "" };
        let used = match agent.mode {
            AgentMode::Primary => "mode",
            AgentMode::Subagent => "subagent",
            AgentMode::All => "mode and subagent",
            AgentMode::Hidden => return None,
        };
        Some(format!("- `{}` ({used}{here}): {}", agent.id, agent.description))
    };
    let lines: Vec<String> = session.agents().all().filter_map(line).collect();
    Ok(format!("{}\n\n`/mode ID` chooses one that is a mode.", lines.join("\n")))
}

pub(crate) async fn model(session: &mut Session, wanted: &str) -> Result<String, HubError> {
    if let Some(own) = session.own_choice("the model", "model") {
        return Ok(own);
    }
    let chosen = match wanted {
        "" => session.chosen()?,
        wanted => session.set_model(model_named(session, wanted)?).await?,
    };
    let choices = session.hub.choices.get();
    let names: Vec<String> = choices.models.iter().map(|info| info.model.to_string()).collect();
    let current = chosen.model.map(|model| model.to_string()).unwrap_or_default();
    Ok(shown("Model", &current, wanted, names.iter().map(String::as_str)))
}

/// `PROVIDER/NAME`, or the name alone if one provider has it.
pub(super) fn model_named(session: &Session, wanted: &str) -> Result<ModelRef, HubError> {
    let choices = session.hub.choices.get();
    if let Some((provider, model)) = wanted.split_once('/') {
        let named = ModelRef::new(provider, model);
        return match choices.model(&named) {
            Some(_) => Ok(named),
            None if session.hub.ports.model.why_not(&named).is_some() => {
                Err(session.hub.unusable_model(&named))
            }
            None => Err(HubError::Invalid(choices.unknown_model(wanted))),
        };
    }
    let mut named = choices.models.iter().filter(|info| info.model.model_id == wanted);
    match (named.next(), named.next()) {
        (Some(info), None) => Ok(info.model.clone()),
        (Some(first), Some(_)) => {
            let text = format!(
                "several providers have `{wanted}`; write it with its provider, as `{}`",
                first.model
            );
            Err(HubError::Invalid(text))
        }
        (None, _) => Err(HubError::Invalid(choices.unknown_model(wanted))),
    }
}

pub(crate) async fn thought(session: &mut Session, wanted: &str) -> Result<String, HubError> {
    if let Some(own) = session.own_choice("how much it thinks", "thought_level") {
        return Ok(own);
    }
    let chosen = match wanted {
        "" => session.chosen()?,
        DEFAULT_THOUGHT => session.set_thought(None).await?,
        wanted => {
            let unknown = || {
                let all = ThoughtLevel::ALL.map(ThoughtLevel::as_str);
                let near = meant(wanted, all);
                let all = all.join(", ");
                let text =
                    format!("there is no thought level `{wanted}`{near}; known: {DEFAULT_THOUGHT}, {all}");
                HubError::Invalid(text)
            };
            session.set_thought(Some(ThoughtLevel::parse(wanted).ok_or_else(unknown)?)).await?
        }
    };
    if chosen.thought_levels.is_empty() {
        return Ok(format!("{} can't be told how much to think.", model_name(&chosen)));
    }
    let current = chosen.thought.map_or(DEFAULT_THOUGHT, ThoughtLevel::as_str);
    let levels = chosen.thought_levels.iter().map(|level| level.as_str());
    Ok(shown("Thought level", current, wanted, std::iter::once(DEFAULT_THOUGHT).chain(levels)))
}

fn model_name(chosen: &Chosen) -> String {
    chosen.model.as_ref().map_or_else(|| "none".to_owned(), |model| format!("`{model}`"))
}

/// The current choice, and the alternatives unless the user just chose.
fn shown<'a>(what: &str, current: &str, wanted: &str, all: impl Iterator<Item = &'a str>) -> String {
    let others: Vec<String> = all.filter(|name| *name != current).map(|name| format!("`{name}`")).collect();
    match wanted.is_empty() && !others.is_empty() {
        true => format!("{what}: `{current}`. Others: {}.", others.join(", ")),
        false => format!("{what}: `{current}`."),
    }
}

/// The result of a command.
#[derive(Debug)]
pub(super) struct CommandAnswer {
    pub(super) text: String,
    /// Whether the conversation is unchanged since the command began.
    pub(super) history: NextHistory,
}

/// The turn of a command: reports what the session found. Asks no model, and no model sees the answer.
#[derive(Debug)]
pub(super) struct CommandTurn {
    context: TurnContext,
    answer: Option<oneshot::Receiver<CommandAnswer>>,
    history: NextHistory,
}

impl CommandTurn {
    pub(super) fn new(context: TurnContext) -> (Self, oneshot::Sender<CommandAnswer>) {
        let (found, answer) = oneshot::channel();
        // If the answer never comes, it is unknown what the command did.
        (Self { context, answer: Some(answer), history: NextHistory::Reread }, found)
    }

    async fn say(&self, answer: String) -> StoreResult<()> {
        let journal = &self.context.journal;
        journal.record(Chunk::StartStep { rest: Rest::none() }).await?;
        journal.record(Chunk::TextStart { id: "answer".into(), rest: Rest::none() }).await?;
        journal.record(Chunk::text_delta(&"answer".into(), answer)).await?;
        journal.record(Chunk::TextEnd { id: "answer".into(), rest: Rest::none() }).await?;
        journal.record(Chunk::FinishStep { rest: Rest::none() }).await
    }
}

impl BackendTurn for CommandTurn {
    fn run(&mut self, _start: TurnStart) -> BoxFuture<'_, TurnResult> {
        Box::pin(async move {
            let aborted = TurnResult::Ended(TurnEnd::Aborted);
            let Some(answer) = self.answer.take() else { return aborted };
            let answer = tokio::select! {
                biased;
                () = self.context.cancel.cancelled() => return aborted,
                answer = answer => answer,
            };
            let Ok(CommandAnswer { text, history }) = answer else { return aborted };
            self.history = history;
            TurnResult::Ended(match self.say(text).await {
                Ok(()) => TurnEnd::Finished(FinishReason::Stop),
                Err(error) => TurnEnd::failed(FailureKind::Store, error.to_string()),
            })
        })
    }

    fn leftovers(self: Box<Self>) -> TurnLeftovers {
        TurnLeftovers {
            conversation: Some(self.context.conversation),
            history: self.history,
            ..TurnLeftovers::default()
        }
    }
}
