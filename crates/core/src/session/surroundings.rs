//! Looks at a session's surroundings: once for its system prompt, then before every turn for changes.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::task::JoinHandle;

use super::{Session, SessionCommand};
use crate::agents::Agent;
use crate::calendar;
use crate::chunk::FinishReason;
use crate::conversation::Conversation;
use crate::environment::{self, Facts, SessionEnvironment, ToldEnvironment};
use crate::hub::HubError;
use crate::instructions::{self, FoundInstructions, ProjectInstructions, ToldInstructions};
use crate::legible::legible_line;
use crate::limits::{END_CHARACTERS, LOOK_AROUND, LOOK_LATER};
use crate::metadata::SessionMeta;
use crate::notice;
use crate::part::{Part, Role};
use crate::ports::WorkspaceLook;
use crate::ports::backend::TurnSetup;
use crate::ports::model::ModelInfo;
use crate::ports::store::ModelRef;
use crate::ports::tool::Workspace;
use crate::rewind::{self, ConversationGoesOn};
use crate::turn::TurnEnd;
use crate::work_state::background_line;

/// What the model is told after an answer that ended because its process ended.
const ANSWER_CUT: &str = "<note>\nYour last answer was cut off: the program you run in ended. The user has seen it up to \
                          there.\n</note>";

/// What the model is told of background commands; their names follow.
const BACKGROUND_ENDED: &str =
    "These commands in the background are not there any more; start them again if you need them:";

/// What the model is told of the end of its last turn, if the model did not end it.
fn told_end(end: &TurnEnd) -> Option<String> {
    let told = match end {
        TurnEnd::Failed { message, .. } => {
            let message: String = legible_line(message).chars().take(END_CHARACTERS).collect();
            format!("Your last turn did not come to its end: {message}")
        }
        TurnEnd::StepLimit => {
            "Your last turn was ended at its limit of steps. The work may not be finished.".to_owned()
        }
        TurnEnd::Finished(FinishReason::Length) => {
            "Your last answer reached its length limit and was cut off there.".to_owned()
        }
        // A user who stops a turn gives the reason with the next prompt, if it matters.
        TurnEnd::Finished(_) | TurnEnd::Aborted => return None,
    };
    Some(format!("<note>\n{told}\n</note>"))
}

/// The question to version control, which runs beside everything else.
#[derive(Debug, Default)]
struct Uncommitted(Option<JoinHandle<Option<String>>>);

impl Uncommitted {
    /// The result, if it is there. A first turn that comes earlier goes without: nothing waits for version
    /// control, and the search is aborted once its result is no longer wanted.
    fn take(&mut self) -> Option<String> {
        let mut looking = self.0.take()?;
        let found = (&mut looking).now_or_never();
        looking.abort();
        found?.ok().flatten()
    }
}

/// News that the model has not been told yet, beside what a new look finds.
#[derive(Debug, Default)]
pub(crate) struct UntoldNews {
    /// Stored with the start of the next turn; the row in memory has it already.
    unstored: SessionMeta,
    uncommitted: Uncommitted,
    /// Whether the model knows which background commands ended with an earlier process.
    background_told: bool,
}

impl UntoldNews {
    pub(super) fn unstored(&self) -> &SessionMeta {
        &self.unstored
    }

    pub(super) fn unstored_mut(&mut self) -> &mut SessionMeta {
        &mut self.unstored
    }

    /// It is stored now, or the row was read again without it.
    pub(super) fn forget_unstored(&mut self) {
        self.unstored = SessionMeta::default();
    }

    /// Sets the mark; returns whether it was set before.
    pub(super) fn background_is_told(&mut self) -> bool {
        std::mem::replace(&mut self.background_told, true)
    }
}

impl Session {
    /// Begins to look for uncommitted changes while the user still writes the first prompt.
    pub(super) fn look_for_uncommitted(&mut self) {
        if self.told().is_some() || self.news.uncommitted.0.is_some() {
            return;
        }
        let Some(surroundings) = &self.hub.ports.surroundings else { return };
        let looking = surroundings.uncommitted(Arc::new(self.workspace()));
        self.news.uncommitted = Uncommitted(Some(tokio::spawn(async {
            tokio::time::sleep(LOOK_LATER).await;
            looking.await
        })));
    }

    /// Captures environment and instructions unless that was done before; the start of the turn stores them.
    pub(super) async fn capture_environment(&mut self, model: &ModelInfo) -> Result<(), HubError> {
        if self.told().is_some() {
            return Ok(());
        }
        let (agent, workspace) = (self.current_agent()?, Arc::new(self.workspace()));
        let look = self.look_around(&agent, &workspace).await.unwrap_or_default();
        let uncommitted = self.news.uncommitted.take();
        let now = self.environment_now(&workspace, &model.model, look.git.as_deref(), uncommitted.as_deref());
        let FoundInstructions { files, left_out } = look.instructions;
        let (instructions, cut) = ToldInstructions::first(files, instructions::room(model.context));
        self.tell_of_left_out(&instructions.captured, &cut, &left_out);
        self.keep_told(&ToldEnvironment::first(now), Some(&instructions));
        self.capture_skill_index(model.context);
        Ok(())
    }

    /// The environment in the system prompt. A session older than this feature has none until its next turn.
    pub(super) fn environment(&self) -> SessionEnvironment {
        self.told().map(|told| told.captured).unwrap_or_default()
    }

    /// The instructions that are part of the system prompt.
    pub(super) fn instructions(&self) -> ProjectInstructions {
        self.row.metadata.instructions().map(|told| told.captured).unwrap_or_default()
    }

    /// What has changed since the model was last told, for the message that gets its seq now.
    pub(super) async fn environment_news(
        &mut self,
        setup: &TurnSetup,
        conversation: &Conversation,
    ) -> Option<Part> {
        let look = self.look_around(&setup.agent, &setup.workspace).await;
        let git = look.as_ref().and_then(|look| look.git.as_deref());
        let now = self.environment_now(&setup.workspace, &setup.model.model, git, None);
        let mut told = self.told()?;
        let environment = told.tell(&now, self.commands_of(&setup.agent));
        // If the disk did not answer in time, nothing is known about instructions; it does not mean that they
        // are gone.
        let found = look.map(|look| look.instructions.files);
        let mut instructions = self.row.metadata.instructions().unwrap_or_default();
        let room = instructions::room(setup.model.context);
        let changed = found.and_then(|found| instructions.tell(&found, room));
        let is_cut = conversation.last().is_some_and(|last| notice::is_cut(&last.parts));
        let cut = match is_cut {
            true => Some(ANSWER_CUT.to_owned()),
            false => self.end_before(conversation).await.as_ref().and_then(told_end),
        };
        let mode = self.mode_news(&setup.agent, conversation);
        let told_mode = mode.as_ref().map(|_| &*setup.agent.id);
        let (ended, background) = self.ended_background(conversation);
        let resources = self.servers.resource_news();
        let goes_on = match conversation.is_empty() {
            true => ConversationGoesOn::Anew,
            false => ConversationGoesOn::FromHere,
        };
        let rewound = rewind::told_to_model(&self.row.metadata.rewinds(), goes_on);
        let of_tools = self.toolbox.news(&self.id).map(|news| format!("<note>\n{news}\n</note>"));
        let news =
            [cut, rewound, background, of_tools, mode.clone(), environment, resources, changed.clone()];
        let text = news.into_iter().flatten().collect::<Vec<_>>().join("\n");
        if text.is_empty() {
            return None;
        }
        self.keep_told(&told, changed.is_some().then_some(&instructions));
        Some(environment::news_part(&text, &ended, told_mode))
    }

    /// How the previous turn ended, if the model said anything in it.
    async fn end_before(&self, conversation: &Conversation) -> Option<TurnEnd> {
        let answer = &conversation.last()?.message_id;
        let of_answer = || conversation.iter().rev().take_while(|passage| passage.message_id == *answer);
        let is_said = |part: &Part| match part {
            Part::Text { .. } | Part::Reasoning { .. } | Part::Tool(_) | Part::File { .. } => true,
            Part::Data { .. } | Part::SourceUrl { .. } | Part::SourceDocument { .. } | Part::StepStart => {
                false
            }
        };
        if !of_answer().any(|passage| passage.role == Role::Assistant && passage.parts.iter().any(is_said)) {
            return None;
        }
        if let Some(end) = self.conversation.end_of(answer) {
            return Some(end.clone());
        }
        // Another process ran it, or a command came in between: read the row of its prompt.
        let prompt = conversation.iter().rev().find(|passage| passage.message_id != *answer)?;
        let stored = self.hub.ports.store.message(&prompt.message_id).await.ok()?;
        stored?.0.metadata.turn_end()
    }

    /// Tells the mode once after it changed. The first prompt needs no such news: the system prompt is that
    /// agent's.
    fn mode_news(&mut self, agent: &Agent, conversation: &Conversation) -> Option<String> {
        let first = self.row.metadata.first_mode().unwrap_or(&self.row.agent);
        if conversation.is_empty() {
            if *agent.id != *first {
                self.row.metadata.set_first_mode(&agent.id);
                self.news.unstored_mut().set_first_mode(&agent.id);
            }
            return None;
        }
        let told = conversation.told_mode().unwrap_or(first);
        (*agent.id != *told)
            .then(|| format!("<mode>\nThe mode is now `{}`: {}\n</mode>", agent.id, agent.description))
    }

    /// The background commands of an earlier process, and the text about them. This process starts its own
    /// after the first look.
    fn ended_background(&mut self, conversation: &Conversation) -> (Vec<String>, Option<String>) {
        if self.news.background_is_told() {
            return (Vec::new(), None);
        }
        let commands: Vec<_> = conversation.work().background().collect();
        let lines: Vec<_> = commands.iter().map(|command| background_line(*command)).collect();
        let words = format!("<note>\n{BACKGROUND_ENDED}\n{}\n</note>", lines.join("\n"));
        let names = commands.iter().map(|(name, _)| (*name).to_owned()).collect();
        (names, (!lines.is_empty()).then_some(words))
    }

    /// Call this after messages with news left the conversation: the next prompt tells the news again.
    pub(super) fn tell_environment_again(&mut self, stored: &mut SessionMeta) {
        let metadata = &mut self.row.metadata;
        if let Some(mut told) = metadata.environment() {
            told.forget_news();
            metadata.set_environment(&told);
            stored.set_environment(&told);
        }
        if let Some(mut told) = metadata.instructions() {
            told.forget_news();
            metadata.set_instructions(&told);
            stored.set_instructions(&told);
        }
    }

    fn keep_told(&mut self, told: &ToldEnvironment, instructions: Option<&ToldInstructions>) {
        for metadata in [&mut self.row.metadata, self.news.unstored_mut()] {
            metadata.set_environment(told);
            instructions.into_iter().for_each(|instructions| metadata.set_instructions(instructions));
        }
    }

    fn told(&self) -> Option<ToldEnvironment> {
        self.row.metadata.environment()
    }

    /// Tells the user once, when the instructions are captured, which of them no model sees.
    fn tell_of_left_out(&self, kept: &ProjectInstructions, cut: &[PathBuf], left_out: &[String]) {
        let cut = instructions::cut_notice(cut, kept);
        let cut = cut.map(|cut| ("The project's instructions are too long", cut));
        let left_out = (!left_out.is_empty()).then(|| left_out.join("; "));
        let left_out = left_out.map(|left_out| ("Some project instructions were left out", left_out));
        for (title, description) in cut.into_iter().chain(left_out) {
            tracing::warn!(session = %self.id, description, "{title}");
            let (title, description) = (title.to_owned(), Some(description));
            self.tell_ourselves(SessionCommand::Notice { severity: "warning", title, description });
        }
    }

    /// What the machine says about the workspace; `None` if it does not answer in time, because a slow disk
    /// must not delay a turn.
    async fn look_around(&self, agent: &Agent, workspace: &Arc<Workspace>) -> Option<WorkspaceLook> {
        let surroundings = self.hub.ports.surroundings.as_ref()?;
        let rules = self.permissions(agent, Arc::clone(workspace)).read_rules();
        tokio::time::timeout(LOOK_AROUND, surroundings.look(Arc::clone(workspace), rules)).await.ok()
    }

    fn environment_now(
        &self,
        workspace: &Workspace,
        model: &ModelRef,
        git: Option<&str>,
        uncommitted: Option<&str>,
    ) -> SessionEnvironment {
        let ports = &self.hub.ports;
        let now = ports.clock.now();
        let date = format!("{} ({})", calendar::date(&now), calendar::zone_name(&now));
        SessionEnvironment::of(Facts {
            platform: &ports.settings.platform,
            workspace,
            git,
            uncommitted,
            date: &date,
            model,
            containment: ports.settings.containment.known(),
            approval: self.approval(),
            people: ports.settings.people,
        })
    }
}
