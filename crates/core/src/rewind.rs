//! Computes what a rewind hides, restores and reports. Pure; the session's task performs it
//! (`session::rewind`).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ids::MessageId;
use crate::legible::visible_name;
use crate::part::Part;
use crate::ports::snapshots::MoveOutcome;
use crate::ports::store::SeqSpan;
use crate::snapshot::{FileMove, FilePlan, MoveDirection};

/// One rewind that can still be undone; stored in the session's row as `rewinds`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindLayer {
    /// The `hidden_at` of its messages; each layer of a session has its own.
    pub hidden_at: i64,
    /// Its first message.
    pub from_seq: i64,
    /// The seq behind its last message.
    pub before_seq: i64,
    /// What happened to the files, for the model that continues; empty if there is nothing to tell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub files: String,
}

impl RewindLayer {
    /// The messages that it hides.
    pub fn span(&self) -> SeqSpan {
        SeqSpan { from: self.from_seq, before: self.before_seq }
    }
}

/// A move of files that follows a rewind, stored in the session's row as `moving_files` from before the first
/// file is touched until after the last, so that the process that opens the session after a crash completes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovingFiles {
    /// The rewind.
    pub layer: RewindLayer,
    /// Back for a rewind, forward for its undo.
    pub direction: MoveDirection,
}

/// What happened to the files that tools had changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovedFiles {
    /// Files with their former content again.
    pub restored: Vec<PathBuf>,
    /// Files that another program has changed since; the rewind left them alone.
    pub conflicts: Vec<LeftFile>,
    /// What could not be restored, and why.
    pub not_covered: Vec<NotCovered>,
}

impl MovedFiles {
    /// Whether no file was touched and none needed to be.
    pub fn is_empty(&self) -> bool {
        self.restored.is_empty() && self.conflicts.is_empty() && self.not_covered.is_empty()
    }
}

impl FilePlan {
    /// Turns the plan into results; one outcome for each move.
    pub(crate) fn moved(self, outcomes: Vec<MoveOutcome>) -> MovedFiles {
        let FilePlan { moves, conflicts, not_covered } = self;
        let mut moved = MovedFiles { restored: Vec::new(), conflicts, not_covered };
        let untold = std::iter::repeat_with(|| MoveOutcome::NotCovered("it was not moved".to_owned()));
        for (FileMove { path, .. }, outcome) in moves.into_iter().zip(outcomes.into_iter().chain(untold)) {
            match outcome {
                MoveOutcome::Moved => moved.restored.push(path),
                MoveOutcome::Unneeded => {}
                MoveOutcome::Conflict(reason) => moved.conflicts.push(LeftFile { path, reason }),
                MoveOutcome::NotCovered(reason) => {
                    let what = path.display().to_string();
                    moved.not_covered.push(NotCovered { what, kind: NotCoveredKind::File, reason });
                }
            }
        }
        moved.restored.sort();
        moved
    }
}

impl MovedFiles {
    /// Markdown for people; empty if there is nothing to tell.
    pub fn in_words(&self, root: &Path) -> String {
        let name = |path: &Path| {
            let path = path.strip_prefix(root).unwrap_or(path);
            format!("`{}`", visible_name(&path.to_string_lossy()))
        };
        let mut lines = Vec::new();
        if !self.restored.is_empty() {
            let names: Vec<_> = self.restored.iter().map(|path| name(path)).collect();
            lines.push(format!("Files restored: {}.", names.join(", ")));
        }
        let conflict = |left: &LeftFile| format!("- {}: {}", name(&left.path), left.reason);
        if !self.conflicts.is_empty() {
            // If commands ran whose writes are unknown, the changes may have been the agent's own.
            lines.push(match self.not_covered.is_empty() {
                true => "Changed by others since, and left as they are:".to_owned(),
                false => {
                    "Changed since, by others or by what is named below, and left as they are:".to_owned()
                }
            });
            lines.extend(self.conflicts.iter().map(conflict));
        }
        for (kind, heading) in [(NotCoveredKind::Call, CALLS_NOT_COVERED), (NotCoveredKind::File, FILES_LEFT)]
        {
            let listed = self.not_covered_for_each_reason(kind, name);
            if !listed.is_empty() {
                lines.push(heading.to_owned());
                lines.extend(listed);
            }
        }
        lines.join("\n")
    }

    /// One line per reason with everything it applies to; names nothing twice.
    fn not_covered_for_each_reason(
        &self,
        kind: NotCoveredKind,
        name: impl Fn(&Path) -> String,
    ) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for left in self.not_covered.iter().filter(|left| left.kind == kind) {
            let what = name(Path::new(&left.what));
            match reasons.iter_mut().find(|(reason, _)| *reason == left.reason) {
                Some((_, names)) if names.contains(&what) => {}
                Some((_, names)) => names.push(what),
                None => reasons.push((&left.reason, vec![what])),
            }
        }
        reasons.into_iter().map(|(reason, names)| format!("- {}: {reason}", names.join(", "))).collect()
    }
}

const CALLS_NOT_COVERED: &str = "Commands and other calls may have changed files that were not put back; look at \
                                 those before you rely on them:";
const FILES_LEFT: &str = "Could not be restored; look at them before you rely on them:";

/// What a model is told of rewinds in force; `None` if nothing in the conversation shows that there were any.
pub(crate) fn told_to_model(layers: &[RewindLayer], goes_on: ConversationGoesOn) -> Option<String> {
    let files: Vec<&str> =
        layers.iter().map(|layer| layer.files.as_str()).filter(|told| !told.is_empty()).collect();
    if layers.is_empty() || (files.is_empty() && goes_on == ConversationGoesOn::Anew) {
        return None;
    }
    let mut lines = vec![TAKEN_BACK];
    if !files.is_empty() {
        lines.extend(files);
        lines.push(READ_AGAIN);
    }
    Some(format!("<note>\n{}\n</note>", lines.join("\n").replace("</note", "<\\/note")))
}

const TAKEN_BACK: &str = "The user took back what came after this point: those messages are gone.";
const READ_AGAIN: &str = "Read a file before you rely on what it holds.";

/// The text about files on a host without snapshots.
pub(crate) const NOTHING_PUT_BACK: &str = "No file was restored: later changes are still in place.";

/// Whether any of the conversation is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConversationGoesOn {
    Anew,
    FromHere,
}

/// A file that was left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftFile {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// A file or a call whose changes no snapshot covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCovered {
    /// A path, or the title of a call.
    pub what: String,
    /// Which of the two.
    pub kind: NotCoveredKind,
    /// Why.
    pub reason: String,
}

/// What a snapshot does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCoveredKind {
    /// A call, with all that it changed.
    Call,
    /// One file.
    File,
}

/// A completed rewind.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewound {
    /// The prompt to which the session went back.
    pub message_id: MessageId,
    /// The prompt as the user sent it.
    pub parts: Vec<Part>,
    /// How many more messages are hidden now.
    pub hidden: u64,
    /// `None`: this host keeps no snapshots.
    pub files: Option<MovedFiles>,
    /// Clients have to get every entry below this index before the answer to the rewind.
    pub after_index: u64,
}

/// An undone rewind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrewound {
    /// How many messages are visible again.
    pub restored: u64,
    /// `None`: this host keeps no snapshots.
    pub files: Option<MovedFiles>,
    /// Clients have to get every entry below this index before the answer.
    pub after_index: u64,
}
