//! What a session's prompt says of its surroundings. Captured once, so that the prompt stays the same to the
//! byte, also after a restart; what changes later is told with the next user message.

mod rules;

use serde_json::{Value, json};

use crate::data_name::DataName;
use crate::hub::People;
use crate::part::Part;
use crate::ports::store::ModelRef;
use crate::ports::tool::Workspace;
use crate::watchdog::{Approval, Commands, Containment};

/// The names of commands in the background that ended with their process.
const ENDED: &str = "ended";

/// What is known when it is captured.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// System and processor.
    pub platform: &'a str,
    /// Where the session works.
    pub workspace: &'a Workspace,
    /// `None`: unknown.
    pub git: Option<&'a str>,
    /// What differs from the last commit, as it was found when the session began. `None` later: the model's own
    /// edits would be news to it with every turn.
    pub uncommitted: Option<&'a str>,
    /// In the zone of the user.
    pub date: &'a str,
    /// The model that is told of it.
    pub model: &'a ModelRef,
    /// `None`: not looked at yet. Then it is taken for the full one, and news if it turns out to be less.
    pub containment: Option<Containment>,
    /// What runs without a question.
    pub approval: Approval,
    /// Whether anybody can be asked.
    pub people: People,
}

/// The lines of the last section of the prompt.
const COMMANDS: &str = "Commands";
const QUESTIONS: &str = "Questions";

/// Before their labels, where they are about agents whose commands only read.
const ONLY_READING: &str = "only reading: ";

/// Lines of a label and a value, in the order they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionEnvironment(Vec<(String, String)>);

impl SessionEnvironment {
    /// The lines that say this.
    pub fn of(facts: Facts<'_>) -> Self {
        let Workspace { root, additional, scratch, .. } = facts.workspace;
        let additional: Vec<_> = additional.iter().map(|path| path.display().to_string()).collect();
        let additional = if additional.is_empty() { "none".to_owned() } else { additional.join(", ") };
        let mut lines = vec![
            ("Platform", facts.platform.to_owned()),
            ("Workspace", root.display().to_string()),
            ("Other directories", additional),
            ("Scratch directory", scratch.display().to_string()),
        ];
        lines.extend(facts.git.map(|git| ("Git", git.to_owned())));
        lines.extend(facts.uncommitted.map(|found| ("Uncommitted at the start", found.to_owned())));
        lines.extend([("Date", facts.date.to_owned()), ("Model", facts.model.to_string())]);
        // A name with a line break in it must not look like another line.
        let plain = |value: String| value.replace(char::is_control, " ");
        let mut lines: Vec<_> =
            lines.into_iter().map(|(label, value)| (label.to_owned(), plain(value))).collect();
        for (agent, before) in [(Commands::Any, ""), (Commands::OnlyReading, ONLY_READING)] {
            lines.push((format!("{before}{COMMANDS}"), rules::commands(&facts, agent)));
            lines.push((format!("{before}{QUESTIONS}"), rules::questions(&facts, agent)));
        }
        Self(lines)
    }

    /// The lines about the machine and the workspace.
    pub fn surroundings(&self) -> String {
        Self::text(self.0.iter().filter(|line| !is_rule(line)))
    }

    /// The lines about what holds commands and what asks, as they are for an agent.
    pub fn rules(&self, agent: Commands) -> String {
        Self::text(self.0.iter().filter(|line| is_rule(line) && self.concerns(line, agent)))
    }

    fn text<'a>(lines: impl Iterator<Item = &'a (String, String)>) -> String {
        let label = |label: &'a str| label.strip_prefix(ONLY_READING).unwrap_or(label);
        lines.map(|line| format!("{}: {}\n", label(&line.0), line.1)).collect()
    }

    /// Whether a line says something to an agent. What was captured before there were lines for each kind is
    /// for all.
    fn concerns(&self, (label, _): &(String, String), agent: Commands) -> bool {
        let has_own = self.0.iter().any(|line| line.0.starts_with(ONLY_READING));
        match agent {
            Commands::OnlyReading if has_own && [COMMANDS, QUESTIONS].contains(&label.as_str()) => false,
            Commands::OnlyReading => true,
            Commands::Any => !label.starts_with(ONLY_READING),
        }
    }

    /// What is different now for an agent. A line that is missing now says nothing.
    fn news(&self, now: &Self, agent: Commands) -> Self {
        let is_new = |line: &&(String, String)| !self.0.contains(line) && now.concerns(line, agent);
        Self(now.0.iter().filter(is_new).cloned().collect())
    }

    fn with(mut self, news: &Self) -> Self {
        for (label, value) in &news.0 {
            match self.0.iter_mut().find(|(known, _)| known == label) {
                Some(line) => line.1.clone_from(value),
                None => self.0.push((label.clone(), value.clone())),
            }
        }
        self
    }

    fn to_json(&self) -> Value {
        json!(self.0)
    }

    fn from_json(value: &Value) -> Option<Self> {
        let line =
            |line: &Value| Some((line.get(0)?.as_str()?.to_owned(), line.get(1)?.as_str()?.to_owned()));
        value.as_array()?.iter().map(line).collect::<Option<_>>().map(Self)
    }
}

fn is_rule((label, _): &(String, String)) -> bool {
    [COMMANDS, QUESTIONS].contains(&label.strip_prefix(ONLY_READING).unwrap_or(label))
}

/// What a session was told of its surroundings; kept on its row as `environment`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldEnvironment {
    /// In the system prompt.
    pub captured: SessionEnvironment,
    /// With everything that user messages told since.
    last: SessionEnvironment,
}

impl ToldEnvironment {
    /// As it is told at the beginning of a conversation.
    pub fn first(captured: SessionEnvironment) -> Self {
        Self { last: captured.clone(), captured }
    }

    /// What user messages told is no longer sent: from the system prompt on, everything is news again.
    pub(crate) fn forget_news(&mut self) {
        self.last = self.captured.clone();
    }

    /// What is to be told now; `None` when nothing has changed since the last time.
    pub fn tell(&mut self, now: &SessionEnvironment, agent: Commands) -> Option<String> {
        let news = self.last.news(now, agent);
        if news.0.is_empty() {
            return None;
        }
        self.last = std::mem::take(&mut self.last).with(&news);
        let lines = SessionEnvironment::text(news.0.iter());
        Some(format!("<environment>\nChanged since the beginning:\n{lines}</environment>"))
    }

    /// As it is kept on the session's row.
    pub fn to_json(&self) -> Value {
        json!({ "captured": self.captured.to_json(), "last": self.last.to_json() })
    }

    /// As it was kept; `None` for anything else.
    pub fn from_json(value: &Value) -> Option<Self> {
        let environment = |key: &str| SessionEnvironment::from_json(value.get(key)?);
        Some(Self { captured: environment("captured")?, last: environment("last")? })
    }
}

/// What is told beside the user's words; `ended` are the commands in the background that it tells the end of,
/// `mode` is the one that it tells.
pub(crate) fn news_part(text: &str, ended: &[String], mode: Option<&str>) -> Part {
    let mut data = json!({ "text": text });
    if !ended.is_empty() {
        data[ENDED] = json!(ended);
    }
    if let Some(mode) = mode {
        data["mode"] = json!(mode);
    }
    Part::Data { name: DataName::Environment.into(), id: None, data }
}

/// The mode that news tell of.
pub(crate) fn told_mode(part: &Part) -> Option<&str> {
    part.data(DataName::Environment)?.get("mode")?.as_str()
}

/// The commands in the background whose end a part tells.
pub(crate) fn ended_background(part: &Part) -> impl Iterator<Item = &str> {
    let listed = part.data(DataName::Environment).and_then(|data| data.get(ENDED)?.as_array());
    listed.into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a part of a user message is ours, not the user's.
pub fn is_news(part: &Part) -> bool {
    part.data(DataName::Environment).is_some()
}
