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

/// The field with the names of background commands that ended with their process.
const ENDED: &str = "ended";

/// What is known at the time of the capture.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// System and processor.
    pub platform: &'a str,
    /// Where the session works.
    pub workspace: &'a Workspace,
    /// `None`: unknown.
    pub git: Option<&'a str>,
    /// What differs from the last commit, as it was when the session began. `None` later: otherwise each of the
    /// model's own edits would be told to it as news.
    pub uncommitted: Option<&'a str>,
    /// In the user's time zone.
    pub date: &'a str,
    /// The model that is told of it.
    pub model: &'a ModelRef,
    /// `None`: not probed yet. Then the prompt assumes full containment, and the model hears if it turns out to
    /// be less.
    pub containment: Option<Containment>,
    /// What runs without a question.
    pub approval: Approval,
    /// Whether a person can answer questions.
    pub people: People,
}

/// The label of the lines in the last section of the prompt.
const COMMANDS: &str = "Commands";
const QUESTIONS: &str = "Questions";

/// Prefix of the labels for agents whose commands only read.
const ONLY_READING: &str = "only reading: ";

/// Lines of a label and a value, in the order of the prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionEnvironment(Vec<(String, String)>);

impl SessionEnvironment {
    /// The lines that state these facts.
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
        // A line break in a name must not create what looks like another line.
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

    /// The lines about what holds commands and what asks, for one kind of agent.
    pub fn rules(&self, agent: Commands) -> String {
        Self::text(self.0.iter().filter(|line| is_rule(line) && self.concerns(line, agent)))
    }

    fn text<'a>(lines: impl Iterator<Item = &'a (String, String)>) -> String {
        let label = |label: &'a str| label.strip_prefix(ONLY_READING).unwrap_or(label);
        lines.map(|line| format!("{}: {}\n", label(&line.0), line.1)).collect()
    }

    /// Whether a line concerns an agent. Sessions captured before lines had a kind of agent show them to all.
    fn concerns(&self, (label, _): &(String, String), agent: Commands) -> bool {
        let has_own = self.0.iter().any(|line| line.0.starts_with(ONLY_READING));
        match agent {
            Commands::OnlyReading if has_own && [COMMANDS, QUESTIONS].contains(&label.as_str()) => false,
            Commands::OnlyReading => true,
            Commands::Any => !label.starts_with(ONLY_READING),
        }
    }

    /// The lines that changed, for an agent. A line that is missing now is no change.
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

/// What a session has told the model of its surroundings; stored in its row as `environment`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldEnvironment {
    /// What the system prompt says.
    pub captured: SessionEnvironment,
    /// The same with everything that user messages have told since.
    last: SessionEnvironment,
}

impl ToldEnvironment {
    /// What the model knows at the beginning of a conversation.
    pub fn first(captured: SessionEnvironment) -> Self {
        Self { last: captured.clone(), captured }
    }

    /// Call this when the user messages that told news are no longer sent: everything that differs from the
    /// system prompt is news again.
    pub(crate) fn forget_news(&mut self) {
        self.last = self.captured.clone();
    }

    /// What to tell now; `None` if nothing has changed since the last time.
    pub fn tell(&mut self, now: &SessionEnvironment, agent: Commands) -> Option<String> {
        let news = self.last.news(now, agent);
        if news.0.is_empty() {
            return None;
        }
        self.last = std::mem::take(&mut self.last).with(&news);
        let lines = SessionEnvironment::text(news.0.iter());
        Some(format!("<environment>\nChanged since the beginning:\n{lines}</environment>"))
    }

    /// The form in the session's row.
    pub fn to_json(&self) -> Value {
        json!({ "captured": self.captured.to_json(), "last": self.last.to_json() })
    }

    /// Reads that form; `None` for anything else.
    pub fn from_json(value: &Value) -> Option<Self> {
        let environment = |key: &str| SessionEnvironment::from_json(value.get(key)?);
        Some(Self { captured: environment("captured")?, last: environment("last")? })
    }
}

/// The part with news beside the user's words; `ended` names the background commands whose end it tells, `mode`
/// the mode that it tells.
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

/// The mode that a part with news tells.
pub(crate) fn told_mode(part: &Part) -> Option<&str> {
    part.data(DataName::Environment)?.get("mode")?.as_str()
}

/// The background commands whose end a part tells.
pub(crate) fn ended_background(part: &Part) -> impl Iterator<Item = &str> {
    let listed = part.data(DataName::Environment).and_then(|data| data.get(ENDED)?.as_array());
    listed.into_iter().flatten().filter_map(Value::as_str)
}

/// Whether we, not the user, wrote a part of a user message.
pub fn is_news(part: &Part) -> bool {
    part.data(DataName::Environment).is_some()
}
