//! A tool as the loop sees it: what it is, what a call would touch, how it runs. Failure is an answer to the
//! model.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::client::Question;
use super::{BoxFuture, Delegate, SideModel, SnapshotSink};
use crate::ids::{CallId, SessionId};
use crate::scope::Guarded;
use crate::seen::{SeenFiles, Sight};
use crate::skills::Skills;
use crate::watchdog::{ReadRules, Verdict};
use crate::work_state::{BackgroundMark, ChangesMark, TodoMark};

mod access;
mod identity;
mod source;

pub use access::{Access, CommandAccess, CommandNature};
pub use identity::ToolIdentity;
pub use source::{FixedTools, ToolSource, ToolSources};

/// How an editor draws a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    Read,
    Edit,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    Other,
}

/// Whether a call can change anything; decides what may run side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Runs beside others of its kind.
    ReadOnly,
    /// Changes what the session keeps for itself: its tasks, what it has started. Needs no permission, but runs
    /// in its order.
    SessionOnly,
    /// Changes something outside of the conversation.
    Mutates,
}

/// What a tool is. Cheap to clone: what is long is shared.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// How models, rules and clients name it; unique in a session. Letters, digits, `_` and `-`, 64 at most:
    /// what every provider takes.
    pub id: Arc<str>,
    pub description: Arc<str>,
    /// JSON Schema of the arguments; every agent's offer shares it.
    pub parameters: Arc<Value>,
    pub kind: ToolKind,
    pub effect: Effect,
    /// Shown by other means (`todo` is a plan): clients get no tool call for it.
    pub hidden: bool,
}

impl ToolSpec {
    /// How a call looks before its arguments are understood.
    pub fn presentation(&self) -> Presentation {
        Presentation {
            title: self.id.to_string(),
            kind: Some(self.kind),
            hidden: self.hidden,
            ..Presentation::default()
        }
    }
}

/// A place in a file; `line` is 1-based.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub path: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// One block of what a client shows for a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Shown {
    /// Markdown, already fenced where it has to be.
    Text { text: String },
    /// `old_text` is `None` for a new file.
    Diff { path: PathBuf, old_text: Option<String>, new_text: String },
    /// Of one client alone: others are shown what it printed, once that is known.
    Terminal {
        terminal_id: String,
        /// Markdown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        printed: Option<String>,
    },
    /// A small picture, in base64.
    Image { mime: String, data: String },
    /// A file that is only named.
    Link { path: PathBuf, mime: String, size: u64 },
}

/// What rides in `toolMetadata.attache`: everything a client needs to show the call, made by the tool, stored
/// with the part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Presentation {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Shown>,
    /// No tool call is shown to clients.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// How many bytes at the end of a textual result are notes for the model; clients do not get them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub note_bytes: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<OutcomeMetadata>,
    /// Why the call ran or did not. Never set by a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Verdict>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A call that has been understood: what it would touch and how it looks before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPlan {
    pub accesses: Vec<Access>,
    /// Title, kind, locations, diff preview.
    pub presentation: Presentation,
    /// What a person is asked instead of running the call; it runs only where no one can answer.
    pub questions: Vec<Question>,
    /// The agent for which the session would leave its mode: a person decides, whatever else would pass.
    pub proposes: Option<Arc<str>>,
    /// Why the call would fail. Told instead of running it, and only if the accesses pass: it may tell what a
    /// file holds.
    pub problem: Option<String>,
    /// What the model is told beside whatever comes of the call.
    pub note: Option<String>,
}

impl ToolPlan {
    pub fn new(accesses: Vec<Access>, presentation: Presentation) -> Self {
        Self { accesses, presentation, questions: Vec::new(), proposes: None, problem: None, note: None }
    }

    /// A call that proposes another mode.
    pub fn proposing(agent: &str, presentation: Presentation) -> Self {
        Self { proposes: Some(agent.into()), ..Self::new(Vec::new(), presentation) }
    }

    /// A call that is known to fail, and what was read to find that out.
    pub fn failing(read: Vec<Access>, presentation: Presentation, problem: String) -> Self {
        Self { problem: Some(problem), ..Self::new(read, presentation) }
    }

    /// A call whose output is what a person says.
    pub fn asking(questions: Vec<Question>, presentation: Presentation) -> Self {
        Self { questions, ..Self::new(Vec::new(), presentation) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutcomeMetadata {
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
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

/// The envelope: one result per call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOutcome {
    /// `data` is what the model gets (a string, or JSON).
    Output {
        data: Value,
        presentation: Presentation,
    },
    /// A picture for the model. Its bytes are kept for it, and clients are shown it, by the loop.
    Picture {
        found: FoundPicture,
        presentation: Presentation,
    },
    Error {
        text: String,
        presentation: Option<Presentation>,
    },
}

/// A picture as a tool found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPicture {
    pub path: PathBuf,
    /// By its content.
    pub mime: &'static str,
    pub bytes: Vec<u8>,
    /// What the tool says beside it, if anything.
    pub text: String,
}

/// Where the session works. Fixed at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    pub session_id: SessionId,
    /// Relative paths are resolved against this.
    pub root: PathBuf,
    pub additional: Vec<PathBuf>,
    /// Host-owned, made when first used; reachable without asking.
    pub scratch: PathBuf,
    /// What stays out of reach whatever is granted.
    pub guarded: Arc<Guarded>,
    /// What a model can load; their directories may be read without asking.
    pub skills: Arc<Skills>,
}

impl Workspace {
    /// The directories the session may touch, scratch included.
    pub fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.root).chain(&self.additional).chain(std::iter::once(&self.scratch))
    }
}

/// Where a call works.
#[derive(Clone, Debug)]
pub struct Site {
    pub workspace: Arc<Workspace>,
    /// Directories outside the workspace that the user granted for this call or session.
    pub granted: Arc<[PathBuf]>,
    /// The paths that were judged, links followed: a call that runs opens no others. `None` while it is
    /// planned.
    pub judged: Option<Arc<[PathBuf]>>,
    /// Those of them that the call may write.
    pub writes: Arc<[PathBuf]>,
    /// What a call that finds files by itself passes over.
    pub closed: Option<ReadRules>,
    /// Who does for the session what its editor keeps to itself; `None`: everything happens on this machine.
    pub client: Option<Arc<dyn Delegate>>,
    /// What the model has seen of files; tools that read or change one add to it.
    pub seen: Arc<SeenFiles>,
}

impl Site {
    /// The roots and nothing else, for who is no call of a model.
    pub fn of_roots(workspace: Arc<Workspace>) -> Self {
        Self {
            workspace,
            granted: Arc::default(),
            judged: None,
            writes: Arc::default(),
            closed: None,
            client: None,
            seen: Arc::default(),
        }
    }
}

/// How far a call may reach over the network, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkGrant {
    /// Its processes don't.
    Withheld,
    /// A rule or a person said so; that no question was asked is no grant.
    Granted,
    /// The user's own word names each host it reaches: a rule of theirs without a wildcard, or an answer. Opens
    /// hosts that are not of the public internet too.
    GrantedByName,
}

/// Whether the processes of a call may change anything but the session's scratch directory, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteGrant {
    /// It passed because it is known to read only: what holds commands takes that at its word.
    Withheld,
    /// A rule, an approval or a person let it pass.
    Granted,
}

/// Live progress of a call (what a command has printed so far). The sink decides how often it is passed on.
pub trait Progress: Send + Sync + Debug {
    /// Replaces what was shown before; called at most every 100 ms by a well-behaved tool.
    fn show(&self, presentation: Presentation);
    /// A chunk of the tool's own for all clients (`data-plan`).
    fn data(&self, name: &str, data: Value);
}

#[derive(Clone, Debug)]
pub struct ToolRuntime {
    pub call_id: CallId,
    pub site: Site,
    pub network: NetworkGrant,
    pub writes: WriteGrant,
    /// Told before a file is changed; `None` where no snapshots are kept.
    pub snapshots: Option<Arc<dyn SnapshotSink>>,
    /// What the result may take of the model's context; tools have bounds of their own beside it.
    pub result_bytes: usize,
    pub progress: Arc<dyn Progress>,
    /// For a tool that was asked for a model's answer; `None` where there is none.
    pub side_model: Option<Arc<dyn SideModel>>,
    pub cancel: CancellationToken,
}

pub trait Tool: Send + Sync + Debug {
    fn spec(&self) -> &ToolSpec;
    /// How rules name it.
    fn permission(&self) -> &str {
        &self.spec().id
    }
    /// What it is, as far as that may become something else under the same name: an answer for always is
    /// about this. `None`: it stays what it is.
    fn identity(&self) -> Option<ToolIdentity> {
        None
    }
    /// Whether its calls are for a person to answer: not offered where there is none.
    fn needs_person(&self) -> bool {
        false
    }
    /// Whether its results are pictures: not offered to a model that takes none.
    fn needs_images(&self) -> bool {
        false
    }
    /// Whether it is only offered once it was searched for, where there are many such tools.
    fn is_searchable(&self) -> bool {
        false
    }
    /// Not offered in a session without skills.
    fn needs_skills(&self) -> bool {
        false
    }
    /// Whether its calls tell `ToolRuntime::snapshots` what they change before they do. Of a tool that does
    /// not, and changes something, a rewind says that this is not known.
    fn tells_changes(&self) -> bool {
        false
    }
    /// What one call can change, where not all of its calls are alike: decides what runs side by side and what
    /// a rewind says of it. Whether it needs a permission is the spec's.
    fn effect_of(&self, _input: &Value) -> Effect {
        self.spec().effect
    }
    /// Understands the arguments without touching anything but reads for the preview. An `Err` is the tool
    /// error for the model: it names the field.
    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>>;
    /// Runs an allowed call. Must return soon after `cancel` fires (2.5 s at the latest) and leave no process
    /// behind.
    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome>;
    /// What the model has to know of earlier calls, and did not ask for; each once.
    fn news(&self, _session: &SessionId) -> Option<String> {
        None
    }
    /// The session is closed, or its host ends: what still runs for it ends. Must return within half a second.
    fn session_ended<'a>(&'a self, _session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}
