//! What a session's prompt says of its surroundings. Captured once, so that the prompt stays the same to the byte, also after
//! a restart; what changes later is told with the next user message.

use serde_json::{Value, json};

use crate::hub::People;
use crate::part::Part;
use crate::ports::store::ModelRef;
use crate::ports::tool::Workspace;
use crate::watchdog::{Approval, Containment};

/// The part of a user message that tells what has changed: `data-environment {text}`. For the model only.
pub const PART_NAME: &str = "environment";

/// What is known when it is captured.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub platform: &'a str,
    pub workspace: &'a Workspace,
    /// `None`: nobody could say.
    pub git: Option<&'a str>,
    /// What differs from the last commit, as it was found when the session began. `None` later: the model's own edits would
    /// be news to it with every turn.
    pub uncommitted: Option<&'a str>,
    pub date: &'a str,
    pub model: &'a ModelRef,
    /// `None`: nobody has looked yet. Then it is taken for the full one, and news if it turns out to be less.
    pub containment: Option<Containment>,
    pub approval: Approval,
    pub people: People,
}

/// The lines of the last section of the prompt.
const COMMANDS: &str = "Commands";
const QUESTIONS: &str = "Questions";

/// Lines of a label and a value, in the order they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(Vec<(String, String)>);

impl Environment {
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
        lines.push((COMMANDS, commands(facts.containment).to_owned()));
        lines.push((QUESTIONS, questions(facts.approval, facts.people)));
        // A name with a line break in it must not look like another line.
        let plain = |value: String| value.replace(char::is_control, " ");
        Self(lines.into_iter().map(|(label, value)| (label.to_owned(), plain(value))).collect())
    }

    /// The lines about the machine and the workspace.
    pub fn surroundings(&self) -> String {
        Self::text(self.0.iter().filter(|line| !is_rule(line)))
    }

    /// The lines about what holds commands and what asks.
    pub fn rules(&self) -> String {
        Self::text(self.0.iter().filter(|line| is_rule(line)))
    }

    fn text<'a>(lines: impl Iterator<Item = &'a (String, String)>) -> String {
        lines.map(|(label, value)| format!("{label}: {value}\n")).collect()
    }

    /// What is different now. A line that is missing now says nothing.
    fn news(&self, now: &Self) -> Self {
        Self(now.0.iter().filter(|line| !self.0.contains(line)).cloned().collect())
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
    [COMMANDS, QUESTIONS].contains(&label.as_str())
}

/// What a command may do, by what holds it.
fn commands(containment: Option<Containment>) -> &'static str {
    match containment {
        Some(Containment::Full) | None => {
            "run in a sandbox. Network only with `network: true`, once granted. `/tmp` is each command's own; `$TMPDIR` is \
             the scratch directory and lasts for the session. What passes without a question sees the workspace \
             read-only. Credentials and agents' configuration are out of reach."
        }
        Some(Containment::Reduced) => {
            "run in a reduced sandbox: they write to the workspace and the scratch directory (`$TMPDIR`) only, and have no \
             network without `network: true`, once granted. Each asks. Credentials are out of reach."
        }
        Some(Containment::None) => {
            "run without a sandbox, so each asks. `$TMPDIR` is the scratch directory and lasts for the session."
        }
        Some(Containment::ExplicitlyOff) => {
            "run without a sandbox, with all rights of the user. `$TMPDIR` is the scratch directory and lasts for the \
             session."
        }
    }
}

/// What passes and what asks.
fn questions(approval: Approval, people: People) -> String {
    let passes = match approval {
        Approval::Ask => "reading and searching the workspace and commands known to only read pass",
        Approval::Edits => "reading and editing the workspace and commands known to only read pass",
        Approval::All => {
            return "nothing asks; paths and hosts outside the grant are refused.".to_owned();
        }
    };
    let others = match people {
        People::Present => "all else asks the user first, and so does reading what looks like a secret",
        People::Absent => "no one can be asked, so everything else is refused",
    };
    format!("{passes}; {others}.")
}

/// What a session was told of its surroundings; kept on its row as `environment`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// In the system prompt.
    pub captured: Environment,
    /// With everything that user messages told since.
    last: Environment,
}

impl Told {
    pub fn first(captured: Environment) -> Self {
        Self { last: captured.clone(), captured }
    }

    /// What is to be told now; `None` when nothing has changed since the last time.
    pub fn tell(&mut self, now: &Environment) -> Option<Part> {
        let news = self.last.news(now);
        if news.0.is_empty() {
            return None;
        }
        self.last = std::mem::take(&mut self.last).with(&news);
        let text = format!(
            "<environment>\nChanged since the beginning:\n{}</environment>",
            Environment::text(news.0.iter())
        );
        Some(Part::Data { name: PART_NAME.into(), id: None, data: json!({ "text": text }) })
    }

    pub fn to_json(&self) -> Value {
        json!({ "captured": self.captured.to_json(), "last": self.last.to_json() })
    }

    pub fn from_json(value: &Value) -> Option<Self> {
        let environment = |key: &str| Environment::from_json(value.get(key)?);
        Some(Self { captured: environment("captured")?, last: environment("last")? })
    }
}

/// Whether a part of a user message is ours, not the user's.
pub fn is_news(part: &Part) -> bool {
    matches!(part, Part::Data { name, .. } if name == PART_NAME)
}
