//! A tool as the loop sees it: what it is, what a call would touch, how it runs. Failure is an answer to the
//! model.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::client::Question;
use super::{BoxFuture, Delegate, SideModel, SnapshotSink};
use crate::ids::{CallId, SessionId};
use crate::scope::Guarded;
use crate::seen::SeenFiles;
use crate::skills::Skills;
use crate::watchdog::{Commands, ReadRules};

mod access;
mod identity;
mod presentation;
mod source;

pub use access::{Access, CommandAccess, CommandNature};
pub use identity::ToolIdentity;
pub use presentation::{DeniedWithin, Location, OutcomeMetadata, Presentation, Shown, ToolKind};
pub use source::{FixedTools, ToolSource, ToolSources};

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
    /// What the model is told of it.
    pub description: Arc<str>,
    /// JSON Schema of the arguments; every agent's offer shares it.
    pub parameters: Arc<Value>,
    /// How its calls are drawn.
    pub kind: ToolKind,
    /// What its calls can change.
    pub effect: Effect,
    /// Shown by other means (`todo` is a plan): clients get no tool call for it.
    pub hidden: bool,
}

impl ToolSpec {
    /// One that is shown; `parameters` is the JSON Schema of its arguments.
    pub fn new(id: &str, description: &str, parameters: Value, kind: ToolKind, effect: Effect) -> Self {
        let (id, description) = (id.into(), description.into());
        Self { id, description, parameters: Arc::new(parameters), kind, effect, hidden: false }
    }

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

/// A call that has been understood: what it would touch and how it looks before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPlan {
    /// What the call would touch.
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
    /// A call that would run once its accesses pass.
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

/// The envelope: one result per call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOutcome {
    /// `data` is what the model gets (a string, or JSON).
    Output {
        /// A string, or JSON.
        data: Value,
        /// How the call looks now.
        presentation: Presentation,
    },
    /// A picture for the model. Its bytes are kept for it, and clients are shown it, by the loop.
    Picture {
        /// What was found.
        found: FoundPicture,
        /// How the call looks now.
        presentation: Presentation,
    },
    /// The call failed, which the model is told.
    Error {
        /// What was wrong, and what to do: for the model.
        text: String,
        /// How the call looks now; `None`: as before.
        presentation: Option<Presentation>,
    },
}

/// A picture as a tool found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPicture {
    /// Where it was found.
    pub path: PathBuf,
    /// By its content.
    pub mime: &'static str,
    /// The whole file.
    pub bytes: Vec<u8>,
    /// What the tool says beside it, if anything.
    pub text: String,
}

/// Where the session works. Fixed at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Whose it is.
    pub session_id: SessionId,
    /// Relative paths are resolved against this.
    pub root: PathBuf,
    /// Directories that the session may touch beside the root.
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
    /// The directories of the session.
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

/// Everything that a call gets to run with.
#[derive(Clone, Debug)]
pub struct ToolRuntime {
    /// Which call it is.
    pub call_id: CallId,
    /// Where it works.
    pub site: Site,
    /// How far it may reach over the network.
    pub network: NetworkGrant,
    /// Whether its processes may change anything.
    pub writes: WriteGrant,
    /// Which commands its agent may run at all, whatever people answer.
    pub commands: Commands,
    /// Told before a file is changed; `None` where no snapshots are kept.
    pub snapshots: Option<Arc<dyn SnapshotSink>>,
    /// What the result may take of the model's context; tools have bounds of their own beside it.
    pub result_bytes: usize,
    /// Where it tells how far it has come.
    pub progress: Arc<dyn Progress>,
    /// For a tool that was asked for a model's answer; `None` where there is none.
    pub side_model: Option<Arc<dyn SideModel>>,
    /// Fires when the call is to end.
    pub cancel: CancellationToken,
}

/// Something that a model can call.
pub trait Tool: Send + Sync + Debug {
    /// What it is. The same as long as the process runs.
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
        self.without_person().is_some()
    }
    /// For such a tool: the answer to a call of it where there is none, whatever its arguments are.
    fn without_person(&self) -> Option<&'static str> {
        None
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
