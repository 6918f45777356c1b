//! What the screen knows of a session, and what becomes of it: updates of the agent and keys of the user go in,
//! intents and lines come out. Touches no terminal, no agent, no clock.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    AvailableCommand, ContentBlock, CreateElicitationRequest, PlanEntry, PlanEntryStatus, PromptResponse,
    RequestPermissionRequest, SessionInfo, StopReason,
};

use crate::screen::composer::{Composer, PromptHistory, PromptTakes};
use crate::screen::form::FormDialog;
use crate::screen::harmless;
use crate::screen::intent::{Delivery, Intent, PromptName, QuestionNumber, RingReason};
use crate::screen::limits::{LONG_TURN, REWINDS_KEPT};
use crate::screen::markdown::TextPage;
use crate::screen::pager::Pager;
use crate::screen::permission::PermissionDialog;
use crate::screen::picker::Picker;
use crate::screen::status::SessionFacts;
use crate::screen::theme::{ScreenTheme, Tone};
use crate::screen::transcript::{BlockSpacing, LiveTranscript};

mod keys;
mod lines;
mod menus;
mod own_runs;
mod questions;
mod sessions;
mod updates;
mod view;

pub(crate) use own_runs::OwnRunEnd;
use own_runs::OwnRuns;
pub(crate) use view::{ScreenView, ViewExtent};

#[derive(Debug)]
pub(crate) struct ScreenState {
    theme: ScreenTheme,
    columns: usize,
    rows: usize,
    directory: PathBuf,
    agent: AgentFacts,
    pub(crate) composer: Composer,
    transcript: LiveTranscript,
    facts: SessionFacts,
    commands: Vec<AvailableCommand>,
    plan: Vec<PlanEntry>,
    title: Option<String>,
    /// The one whose turn it is first.
    under_way: VecDeque<Sent>,
    /// The turn's prompt was shown.
    since: Option<Duration>,
    /// Prompts that a rewind can go back to, the newest last.
    past: VecDeque<(PromptName, String)>,
    /// Pieces of a prompt that comes with a load, or from another client.
    foreign_prompt: Option<(Option<PromptName>, String)>,
    front: Front,
    /// Questions behind the one that is open.
    asked: VecDeque<WaitingQuestion>,
    intents: Vec<Intent>,
    now: Duration,
    last_typed: Option<Duration>,
    last_escape: Option<Duration>,
    last_interrupt: Option<Duration>,
    hint: Option<(String, Duration)>,
    own_runs: OwnRuns,
    echo: PromptEcho,
    names: u64,
    /// What makes our names differ from those of other runs.
    run: String,
}

/// Abilities of the agent that keys depend on.
#[derive(Clone, Debug)]
pub(crate) struct AgentFacts {
    pub(crate) name: String,
    pub(crate) takes: PromptTakes,
    pub(crate) queues: Queues,
    pub(crate) can_list: bool,
    pub(crate) can_load: bool,
    pub(crate) can_fork: bool,
    pub(crate) can_rewind: bool,
}

/// Where prompts that wait for their turn are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queues {
    Agent,
    /// The agent takes one at a time: the others wait here.
    Ourselves,
}

/// A prompt that is not answered yet.
#[derive(Clone, Debug)]
struct Sent {
    name: PromptName,
    text: String,
    /// While it waits.
    blocks: Vec<ContentBlock>,
    place: SentPlace,
    /// It was taken back.
    gone: bool,
}

/// Where a submitted prompt is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SentPlace {
    Agent,
    /// Not with the agent yet.
    Here,
}

/// What has the keys.
#[derive(Debug)]
enum Front {
    Composer,
    Permission { question: QuestionNumber, call: String, dialog: PermissionDialog },
    Form { question: QuestionNumber, dialog: FormDialog },
    Menu(Picker<MenuRow>),
    Pages(Pager),
}

/// The value of a menu's row.
#[derive(Clone, Debug)]
enum MenuRow {
    Intent(Intent),
    Session(Box<SessionInfo>),
}

#[derive(Debug)]
enum WaitingQuestion {
    Permission(QuestionNumber, Box<RequestPermissionRequest>),
    Form(QuestionNumber, Box<CreateElicitationRequest>),
}

/// Where and how a conversation is shown.
#[derive(Clone, Debug)]
pub(crate) struct ScreenSetting {
    pub(crate) theme: ScreenTheme,
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) directory: PathBuf,
    pub(crate) agent: AgentFacts,
    pub(crate) branch: Option<String>,
    pub(crate) echo: PromptEcho,
    /// Differs between runs.
    pub(crate) run: String,
}

/// What puts a prompt on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptEcho {
    Shown,
    /// The terminal itself, while it is typed.
    Typed,
}

impl ScreenState {
    pub(crate) fn new(setting: ScreenSetting, history: PromptHistory) -> Self {
        Self {
            theme: setting.theme,
            columns: setting.columns.max(8).into(),
            rows: setting.rows.max(3).into(),
            transcript: LiveTranscript::new(setting.directory.clone()),
            directory: setting.directory,
            agent: setting.agent,
            composer: Composer::new(history),
            facts: SessionFacts { branch: setting.branch, ..SessionFacts::default() },
            commands: Vec::new(),
            plan: Vec::new(),
            title: None,
            under_way: VecDeque::new(),
            since: None,
            past: VecDeque::new(),
            foreign_prompt: None,
            front: Front::Composer,
            asked: VecDeque::new(),
            intents: Vec::new(),
            now: Duration::ZERO,
            last_typed: None,
            last_escape: None,
            last_interrupt: None,
            hint: None,
            own_runs: OwnRuns::default(),
            echo: setting.echo,
            names: 0,
            run: setting.run,
        }
    }

    /// Answers are laid out two columns in, so that prompts stand out.
    fn page(&self) -> TextPage {
        TextPage { theme: self.theme, width: self.columns, indent: 2 }
    }

    pub(crate) fn facts_mut(&mut self) -> &mut SessionFacts {
        &mut self.facts
    }

    pub(crate) fn is_working(&self) -> bool {
        self.under_way.front().is_some_and(|sent| sent.place == SentPlace::Agent)
    }

    /// The title of the terminal's window.
    pub(crate) fn title(&self) -> String {
        let title = self.title.as_deref().unwrap_or(&self.agent.name);
        let sign = match &self.front {
            Front::Permission { .. } | Front::Form { .. } => "? ",
            Front::Composer | Front::Menu(_) | Front::Pages(_) if self.is_working() => "* ",
            Front::Composer | Front::Menu(_) | Front::Pages(_) => "",
        };
        format!("{sign}{}", harmless::exact_line(title))
    }

    pub(crate) fn take_intents(&mut self) -> Vec<Intent> {
        std::mem::take(&mut self.intents)
    }

    /// The current time, from any fixed moment on.
    pub(crate) fn at(&mut self, now: Duration) {
        self.now = now;
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.columns = columns.max(8).into();
        self.rows = rows.max(3).into();
    }

    /// A sentence of this program.
    pub(crate) fn note(&mut self, role: Tone, text: &str) {
        let page = self.page();
        self.transcript.note(role, text, page);
    }

    fn hint(&mut self, text: impl Into<String>) {
        self.hint = Some((text.into(), self.now));
    }

    /// Hands a prompt in, now or when its turn comes.
    fn submit(&mut self, text: String, blocks: Vec<ContentBlock>, delivery: Delivery) {
        self.names += 1;
        let name = PromptName(format!("{}-{}", self.run, self.names));
        let is_first = self.under_way.is_empty();
        let goes_now = is_first || self.agent.queues == Queues::Agent;
        let place = if goes_now { SentPlace::Agent } else { SentPlace::Here };
        let waiting = if is_first { Vec::new() } else { blocks.clone() };
        let sent = Sent { name: name.clone(), text, blocks: waiting, place, gone: false };
        if delivery == Delivery::Steering && !is_first {
            self.under_way.insert(1, sent);
        } else {
            self.under_way.push_back(sent);
        }
        if goes_now {
            self.intents.push(Intent::Prompt { name, blocks, delivery });
        }
        if is_first {
            self.begin_turn();
        }
    }

    /// The prompt whose turn it is now is shown, and sent if it waited here.
    fn begin_turn(&mut self) {
        let page = self.page();
        let Some(first) = self.under_way.front_mut() else {
            self.since = None;
            return;
        };
        let (name, text) = (first.name.clone(), first.text.clone());
        let blocks = std::mem::take(&mut first.blocks);
        if std::mem::replace(&mut first.place, SentPlace::Agent) == SentPlace::Here {
            self.intents.push(Intent::Prompt { name: name.clone(), blocks, delivery: Delivery::Queued });
        }
        match self.echo {
            PromptEcho::Shown => self.transcript.prompt(&text, page),
            PromptEcho::Typed => {}
        }
        self.remember(name, text);
        self.since = Some(self.now);
        self.plan.clear();
    }

    fn remember(&mut self, name: PromptName, text: String) {
        self.past.push_back((name, text));
        if self.past.len() > REWINDS_KEPT {
            self.past.pop_front();
        }
    }

    /// A prompt was answered; everything of its turn was applied before.
    pub(crate) fn prompt_ended(&mut self, name: &PromptName, answer: Result<&PromptResponse, String>) {
        let page = self.page();
        let Some(index) = self.under_way.iter().position(|sent| sent.name == *name) else { return };
        let was_first = index == 0;
        let sent = self.under_way.remove(index);
        if !was_first {
            if let (Err(error), false) = (&answer, sent.is_some_and(|sent| sent.gone)) {
                self.note(Tone::Bad, error);
            }
            return;
        }
        self.hint = None;
        self.end_foreign_prompt();
        self.transcript.end(page);
        self.print_plan();
        match answer {
            Ok(response) => self.tell_stop(response.stop_reason),
            Err(error) => self.note(Tone::Bad, &error),
        }
        let took = self.since.map_or(Duration::ZERO, |since| self.now.saturating_sub(since));
        if took >= LONG_TURN && self.under_way.is_empty() {
            self.intents.push(Intent::Ring(RingReason::Done));
        }
        self.begin_turn();
    }

    /// The agent ended before it answered; that is reported elsewhere.
    pub(crate) fn prompt_cut(&mut self, name: &PromptName) {
        let was_first = self.under_way.front().is_some_and(|sent| sent.name == *name);
        self.under_way.retain(|sent| sent.name != *name);
        if was_first {
            self.begin_turn();
        }
    }

    /// The agent at the other end.
    pub(crate) fn meet(&mut self, agent: AgentFacts) {
        self.agent = agent;
    }

    fn tell_stop(&mut self, reason: StopReason) {
        let (role, text) = match reason {
            StopReason::EndTurn => return,
            StopReason::Cancelled => (Tone::Quiet, "Stopped."),
            StopReason::MaxTokens => {
                (Tone::Warning, "The answer was cut: the model's limit of output is reached.")
            }
            StopReason::MaxTurnRequests => (
                Tone::Warning,
                "Stopped: the limit of model calls in one turn is reached. Say \"go on\" to go on.",
            ),
            StopReason::Refusal => (Tone::Warning, "The model refused to answer."),
            _ => (Tone::Warning, "The turn ended for a reason that this client does not know."),
        };
        self.note(role, text);
    }

    /// The agent is gone: what was open can't be answered any more, what waited here still can.
    pub(crate) fn agent_ended(&mut self, told: &str) {
        let page = self.page();
        self.asked.clear();
        if matches!(self.front, Front::Permission { .. } | Front::Form { .. }) {
            self.front = Front::Composer;
        }
        self.transcript.end(page);
        self.note(Tone::Bad, told);
    }

    fn print_plan(&mut self) {
        let is_open = self.plan.iter().any(|entry| entry.status != PlanEntryStatus::Completed);
        if self.plan.is_empty() || !is_open {
            return;
        }
        let page = self.page();
        let lines = view::plan_lines(&self.plan, page, usize::MAX);
        self.transcript.print(lines, BlockSpacing::Note, page);
        self.plan.clear();
    }
}

#[cfg(test)]
mod tests;
