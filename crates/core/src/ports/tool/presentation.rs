//! How clients show a call, before it runs and afterwards. Plain data, stored with the part.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::metadata::own;
use crate::part::{ToolPart, ToolState};
use crate::seen::Sight;
use crate::watchdog::{Action, Reason, Verdict};
use crate::work_state::{BackgroundMark, ChangesMark, TodoMark};

/// The kind by which an editor chooses how to show a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Looks at files.
    Read,
    /// Changes files.
    Edit,
    /// Searches.
    Search,
    /// Runs a program.
    Execute,
    /// Only says something.
    Think,
    /// Loads something over the network.
    Fetch,
    /// Leaves the mode of the session.
    SwitchMode,
    /// None of these.
    Other,
}

/// A place in a file; `line` is 1-based.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// An absolute path.
    pub path: PathBuf,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// One block of what a client shows for a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Shown {
    /// Markdown, already fenced where necessary.
    Text {
        /// What is shown.
        text: String,
    },
    /// `old_text` is `None` for a new file.
    Diff {
        /// The file.
        path: PathBuf,
        /// Its content before the call.
        old_text: Option<String>,
        /// Its content after the call.
        new_text: String,
    },
    /// Only for one client; other clients get what the terminal printed, once that is known.
    Terminal {
        /// The client's id for it.
        terminal_id: String,
        /// Markdown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        printed: Option<String>,
    },
    /// A small picture, in base64.
    Image {
        /// Its type.
        mime: String,
        /// The bytes.
        data: String,
    },
    /// A file that is only named, not shown.
    Link {
        /// The file.
        path: PathBuf,
        /// Its type.
        mime: String,
        /// In bytes.
        size: u64,
    },
}

/// The content of `toolMetadata.attache`: everything that a client needs to show the call. The tool makes it,
/// and it is stored with the part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Presentation {
    /// One line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The kind of this call; `None`: that of its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The places that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// The content below the title.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Shown>,
    /// Clients get no tool call for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// How many bytes at the end of a text result are notes for the model; clients do not get them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub note_bytes: usize,
    /// Facts about the call once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<OutcomeMetadata>,
    /// Why the call ran or did not. The loop sets this, never a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Verdict>,
    /// Calls that rules and hooks denied to a child of this call: clients do not see those calls themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_within: Vec<DeniedWithin>,
}

impl Presentation {
    /// The presentation of a stored call; empty if it has none.
    pub fn of(tool: &ToolPart) -> Self {
        let shown = tool.tool_metadata.as_ref().and_then(own);
        shown.and_then(|shown| serde_json::from_value(shown.clone()).ok()).unwrap_or_default()
    }

    /// Who decided about the call, and why.
    pub fn decision_in_words(&self, tool: &ToolPart) -> Option<String> {
        let rejected = tool.approval.as_ref().filter(|_| tool.state == ToolState::OutputDenied);
        match (&self.decision, rejected.and_then(|approval| approval.reason.as_deref())) {
            (Some(Verdict { reason: Reason::Person { why }, .. }), Some(reason)) => {
                Some(format!("{}: {reason} (asked because: {why})", Action::Deny.as_str()))
            }
            (_, Some(reason)) => Some(format!("{}: {reason}", Action::Deny.as_str())),
            (Some(decision), None) => Some(decision.in_words()),
            (None, None) => None,
        }
    }
}

/// A child's call that was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedWithin {
    /// The tool that was called.
    pub tool: String,
    /// The call's title.
    pub title: String,
    /// The rule or hook that denied it.
    pub why: String,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Facts about a call that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutcomeMetadata {
    /// How long it took.
    pub duration_ms: u64,
    /// The model did not get everything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The file with the complete result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_path: Option<PathBuf>,
    /// The files that it read or changed, in their state at its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Sight>,
    /// The exit code of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The background commands that it mentions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundMark>,
    /// The task list after the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todos: Option<Vec<TodoMark>>,
    /// The changes made by a session that worked for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangesMark>,
}
