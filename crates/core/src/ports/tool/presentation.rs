//! How a call looks to people, before it runs and when it has. Plain data, stored with the part.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::metadata::own;
use crate::part::{ToolPart, ToolState};
use crate::seen::Sight;
use crate::watchdog::{Action, Reason, Verdict};
use crate::work_state::{BackgroundMark, ChangesMark, TodoMark};

/// How an editor draws a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Looks at files.
    Read,
    /// Changes files.
    Edit,
    /// Looks for something.
    Search,
    /// Runs a program.
    Execute,
    /// Only says something.
    Think,
    /// Gets something over the network.
    Fetch,
    /// Leaves the mode of the session.
    SwitchMode,
    /// None of these.
    Other,
}

/// A place in a file; `line` is 1-based.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Absolute.
    pub path: PathBuf,
    /// Where in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// One block of what a client shows for a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Shown {
    /// Markdown, already fenced where it has to be.
    Text {
        /// What is shown.
        text: String,
    },
    /// `old_text` is `None` for a new file.
    Diff {
        /// The file.
        path: PathBuf,
        /// What it holds before the call.
        old_text: Option<String>,
        /// What it holds after it.
        new_text: String,
    },
    /// Of one client alone: others are shown what it printed, once that is known.
    Terminal {
        /// As the client named it.
        terminal_id: String,
        /// Markdown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        printed: Option<String>,
    },
    /// A small picture, in base64.
    Image {
        /// What it is.
        mime: String,
        /// The bytes.
        data: String,
    },
    /// A file that is only named.
    Link {
        /// The file.
        path: PathBuf,
        /// What it is.
        mime: String,
        /// In bytes.
        size: u64,
    },
}

/// What rides in `toolMetadata.attache`: everything a client needs to show the call, made by the tool, stored
/// with the part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Presentation {
    /// One line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// How the call is drawn; `None`: as its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The places that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// What is shown below the title.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Shown>,
    /// No tool call is shown to clients.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// How many bytes at the end of a textual result are notes for the model; clients do not get them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub note_bytes: usize,
    /// What is known once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<OutcomeMetadata>,
    /// Why the call ran or did not. Never set by a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Verdict>,
    /// What rules and hooks denied to a child that worked for this call: those calls are not shown here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_within: Vec<DeniedWithin>,
}

impl Presentation {
    /// Of a stored call; empty where nothing was said of it.
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

/// One call of a child that was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedWithin {
    /// The tool that was called.
    pub tool: String,
    /// As the call was shown.
    pub title: String,
    /// What denied it.
    pub why: String,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What is known of a call that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutcomeMetadata {
    /// How long it took.
    pub duration_ms: u64,
    /// The model did not get everything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Where everything is that the model did not get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_path: Option<PathBuf>,
    /// The files it read or changed, as they were when it ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Sight>,
    /// Of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The commands in the background that it tells of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundMark>,
    /// The task list as it is from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todos: Option<Vec<TodoMark>>,
    /// What a session changed that worked for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangesMark>,
}
