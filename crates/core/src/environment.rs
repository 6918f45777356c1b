//! What a session's prompt says of its surroundings. Captured once, so that the prompt stays the same to the byte, also after
//! a restart; what changes later is told with the next user message.

use serde_json::{Value, json};

use crate::part::Part;
use crate::ports::store::ModelRef;
use crate::ports::tool::Workspace;

/// The part of a user message that tells what has changed: `data-environment {text}`. For the model only.
pub const PART_NAME: &str = "environment";

/// What is known when it is captured.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub platform: &'a str,
    pub workspace: &'a Workspace,
    /// `None`: nobody could say.
    pub git: Option<&'a str>,
    pub date: &'a str,
    pub model: &'a ModelRef,
}

/// Lines of a label and a value, in the order they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(Vec<(String, String)>);

impl Environment {
    pub fn of(facts: Facts<'_>) -> Self {
        let Workspace { root, additional, scratch, .. } = facts.workspace;
        let additional: Vec<_> = additional.iter().map(|path| path.display().to_string()).collect();
        let additional =
            if additional.is_empty() { "nothing else".to_owned() } else { additional.join(", ") };
        let mut lines = vec![
            ("Platform", facts.platform.to_owned()),
            ("Workspace", root.display().to_string()),
            ("Also reachable", additional),
            ("Scratch directory", scratch.display().to_string()),
        ];
        lines.extend(facts.git.map(|git| ("Git", git.to_owned())));
        lines.extend([("Date", facts.date.to_owned()), ("Model", facts.model.to_string())]);
        // A name with a line break in it must not look like another line.
        let plain = |value: String| value.replace(char::is_control, " ");
        Self(lines.into_iter().map(|(label, value)| (label.to_owned(), plain(value))).collect())
    }

    pub fn text(&self) -> String {
        self.0.iter().map(|(label, value)| format!("{label}: {value}\n")).collect()
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
        let text = format!("<environment>\nChanged since the beginning:\n{}</environment>", news.text());
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
