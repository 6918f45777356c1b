//! What metadata an imported file may set. The list names what is taken, never what is dropped: anything else
//! (prompts, files to move, the queue, keys of later versions) a file can't set.

use serde_json::Value;

use super::{MessageMeta, SessionMeta};
use crate::import::Authority;
use crate::turn::TurnEnd;
use crate::watchdog::Approval;

/// The shape that a value must have to be taken.
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

/// For a session: its title, and the agent of the user's own that it had.
const OF_SESSION: [(&str, TakenShape); 2] =
    [(SessionMeta::TITLE, TakenShape::Text), (SessionMeta::MODE, TakenShape::Text)];

/// For a session whose permissions the user wants to keep.
const OF_AUTHORITY: [(&str, TakenShape); 3] = [
    (SessionMeta::APPROVAL, TakenShape::Approval),
    (SessionMeta::GRANTED_DIRECTORIES, TakenShape::Texts),
    (SessionMeta::ADDITIONAL_DIRECTORIES, TakenShape::Texts),
];

/// For a message: what is shown of it. Snapshots are only mentioned: those of a file move nothing.
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
    /// The part of this that an imported file may set.
    pub(crate) fn of_file(&self, authority: Authority) -> Self {
        let kept = |key: &str, value: &Value| {
            takes(&OF_SESSION, key, value) || authority == Authority::Keep && takes(&OF_AUTHORITY, key, value)
        };
        let taken = self.0.iter().filter(|(key, value)| kept(key, value));
        Self(taken.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

impl MessageMeta {
    /// The part of this that an imported file may set.
    pub(crate) fn of_file(&self) -> Self {
        let taken = self.0.iter().filter(|(key, value)| takes(&OF_MESSAGE, key, value));
        Self(taken.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

fn takes(list: &[(&str, TakenShape)], key: &str, value: &Value) -> bool {
    list.iter().any(|(listed, shape)| *listed == key && shape.fits(value))
}
