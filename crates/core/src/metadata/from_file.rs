//! What rows may say that came from a file. A list of what is taken, never of what is left out: what is not on
//! it (what prompts are made of, which files are to be moved, what waits in the queue, keys of the future) is
//! no word of a file.

use serde_json::Value;

use super::{MessageMeta, SessionMeta};
use crate::import::Authority;
use crate::turn::TurnEnd;
use crate::watchdog::Approval;

/// What a value has to look like to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakenShape {
    Text,
    Texts,
    Number,
    Flag,
    /// An object of numbers.
    Counts,
    TurnEnd,
    Approval,
}

impl TakenShape {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Texts => value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string)),
            Self::Number => value.is_number(),
            Self::Flag => value.is_boolean(),
            Self::Counts => value.as_object().is_some_and(|counts| counts.values().all(Value::is_number)),
            Self::TurnEnd => TurnEnd::from_json(value).is_some_and(|end| end.to_json() == *value),
            Self::Approval => value.as_str().and_then(Approval::parse).is_some(),
        }
    }
}

/// Of a session: how it is called, and which of the user's own agents it had.
const OF_SESSION: [(&str, TakenShape); 2] =
    [(SessionMeta::TITLE, TakenShape::Text), (SessionMeta::MODE, TakenShape::Text)];

/// Of a session whose permissions the user wants.
const OF_AUTHORITY: [(&str, TakenShape); 3] = [
    (SessionMeta::APPROVAL, TakenShape::Approval),
    (SessionMeta::GRANTED_DIRECTORIES, TakenShape::Texts),
    (SessionMeta::ADDITIONAL_DIRECTORIES, TakenShape::Texts),
];

/// Of a message: what is told about it. That its calls left snapshots is only said: those of a file move
/// nothing.
const OF_MESSAGE: [(&str, TakenShape); 14] = [
    (MessageMeta::SCHEMA_VERSION, TakenShape::Number),
    (MessageMeta::AGENT, TakenShape::Text),
    (MessageMeta::MODEL, TakenShape::Text),
    (MessageMeta::TOOLS, TakenShape::Texts),
    (MessageMeta::SYSTEM_PROMPT_DIGEST, TakenShape::Text),
    (MessageMeta::TURN_END, TakenShape::TurnEnd),
    (MessageMeta::USAGE, TakenShape::Counts),
    (MessageMeta::COST_USD, TakenShape::Number),
    (MessageMeta::REFUSED, TakenShape::Flag),
    (MessageMeta::ANSWERS_COMMAND, TakenShape::Flag),
    (MessageMeta::RESULTS_LEFT_OUT, TakenShape::Texts),
    (MessageMeta::SNAPSHOT_ID, TakenShape::Text),
    (MessageMeta::TASK_RESULT, TakenShape::Text),
    (MessageMeta::TRIGGER, TakenShape::Text),
];

impl SessionMeta {
    /// What a file may say of these.
    pub(crate) fn of_file(&self, authority: Authority) -> Self {
        let kept = |key: &str, value: &Value| {
            takes(&OF_SESSION, key, value) || authority == Authority::Keep && takes(&OF_AUTHORITY, key, value)
        };
        let taken = self.0.iter().filter(|(key, value)| kept(key, value));
        Self(taken.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

impl MessageMeta {
    /// What a file may say of these.
    pub(crate) fn of_file(&self) -> Self {
        let taken = self.0.iter().filter(|(key, value)| takes(&OF_MESSAGE, key, value));
        Self(taken.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

fn takes(list: &[(&str, TakenShape)], key: &str, value: &Value) -> bool {
    list.iter().any(|(listed, shape)| *listed == key && shape.fits(value))
}
