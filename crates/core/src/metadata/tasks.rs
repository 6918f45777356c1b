//! What rows say about `task` calls: which session works for which, and which tasks run in the background.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{MessageMeta, SessionMeta, read};
use crate::agents::Transcript;
use crate::ids::{CallId, SessionId};

/// In the row of a session that a `task` call made; its `parent_id` is the session of that call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildOf {
    /// The agent that made the call; the child may not do what that agent may not do.
    pub started_by: String,
    /// The call that it works for.
    pub call_id: CallId,
    /// Its transcript is in the result of that call, so no list shows the session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    nested: bool,
}

impl ChildOf {
    /// Public: a store leaves sessions with this key out of every list.
    pub const NESTED: &str = "nested";

    /// A child of this session and call.
    pub fn new(started_by: &str, call_id: CallId, transcript: Transcript) -> Self {
        Self { started_by: started_by.to_owned(), call_id, nested: transcript == Transcript::Nested }
    }

    /// How much of its conversation the parent gets.
    pub fn transcript(&self) -> Transcript {
        if self.nested { Transcript::Nested } else { Transcript::OwnSession }
    }
}

/// A task whose result has not arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// The child that does it.
    pub session_id: SessionId,
    /// The agent that works there.
    pub agent: String,
    /// Its subject in one line.
    pub title: String,
}

impl SessionMeta {
    /// Public: a store that lists sessions leaves those with this key out.
    pub const CHILD_OF: &str = "task";
    const BACKGROUND_TASKS: &str = "background_tasks";

    /// The call that it works for; `None` for a session that a person opened.
    pub fn child_of(&self) -> Option<ChildOf> {
        read(self.0.get(Self::CHILD_OF))
    }

    /// Sets the call that it works for.
    pub fn set_child_of(&mut self, child_of: &ChildOf) {
        self.0.insert(Self::CHILD_OF.into(), json!(child_of));
    }

    /// The tasks in the order in which they started.
    pub fn background_tasks(&self) -> Vec<BackgroundTask> {
        read(self.0.get(Self::BACKGROUND_TASKS)).unwrap_or_default()
    }

    /// An empty list is written as a null.
    pub(crate) fn set_background_tasks(&mut self, tasks: &[BackgroundTask]) {
        let listed = if tasks.is_empty() { Value::Null } else { json!(tasks) };
        self.0.insert(Self::BACKGROUND_TASKS.into(), listed);
    }
}

impl MessageMeta {
    pub(super) const TASK_RESULT: &str = "task_result";
    pub(super) const TRIGGER: &str = "trigger";

    /// The metadata of the message that brings the result of a background task.
    pub(crate) fn of_task_result(child: &SessionId) -> Self {
        let mut meta = Self::default();
        meta.0.insert(Self::TASK_RESULT.into(), json!(child));
        meta
    }

    /// The session whose result it brings.
    pub fn task_result(&self) -> Option<SessionId> {
        read(self.0.get(Self::TASK_RESULT))
    }

    /// What sent a prompt that no user typed.
    pub fn trigger(&self) -> Option<&str> {
        self.0.get(Self::TRIGGER)?.as_str()
    }

    pub(crate) fn set_trigger(&mut self, trigger: &str) {
        self.0.insert(Self::TRIGGER.into(), json!(trigger));
    }
}
