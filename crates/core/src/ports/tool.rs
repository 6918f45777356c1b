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

/// Whether a call can change anything; decides which calls may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Runs at the same time as other calls of this kind.
    ReadOnly,
    /// Changes only the session's own state: its tasks, what it has started. Needs no permission, but runs in
    /// order.
    SessionOnly,
    /// Changes something outside of the conversation.
    Mutates,
}

/// Describes a tool. Cheap to clone: clones share the long fields.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// The name for models, rules and clients; unique in a session. At most 64 letters, digits, `_` and `-`:
    /// every provider accepts that.
    pub id: Arc<str>,
    /// The description for the model.
    pub description: Arc<str>,
    /// JSON Schema of the arguments; every agent's offer shares it.
    pub parameters: Arc<Value>,
    /// How clients show its calls.
    pub kind: ToolKind,
    /// What its calls can change.
    pub effect: Effect,
    /// Clients get no tool call for it, because they see it in another form (`todo` is a plan).
    pub hidden: bool,
}

impl ToolSpec {
    /// A tool whose calls are shown; `parameters` is the JSON Schema of its arguments.
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

/// A call whose arguments are understood: what it would touch and how it looks before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPlan {
    /// What the call would touch.
    pub accesses: Vec<Access>,
    /// Title, kind, locations, diff preview.
    pub presentation: Presentation,
    /// What a person is asked instead of running the call; the call runs only if no person can answer.
    pub questions: Vec<Question>,
    /// The agent that the session would change to: a person decides, even if rules would let the call pass.
    pub proposes: Option<Arc<str>>,
    /// Why the call would fail. The model gets this instead of a run, but only if the accesses pass, because it
    /// may tell what a file holds.
    pub problem: Option<String>,
    /// A text for the model beside the result of the call.
    pub note: Option<String>,
}

impl ToolPlan {
    /// A call that runs once its accesses pass.
    pub fn new(accesses: Vec<Access>, presentation: Presentation) -> Self {
        Self { accesses, presentation, questions: Vec::new(), proposes: None, problem: None, note: None }
    }

    /// A call that proposes another mode.
    pub fn proposing(agent: &str, presentation: Presentation) -> Self {
        Self { proposes: Some(agent.into()), ..Self::new(Vec::new(), presentation) }
    }

    /// A call that is known to fail, with the accesses that reading needed to find that out.
    pub fn failing(read: Vec<Access>, presentation: Presentation, problem: String) -> Self {
        Self { problem: Some(problem), ..Self::new(read, presentation) }
    }

    /// A call whose output is what a person says.
    pub fn asking(questions: Vec<Question>, presentation: Presentation) -> Self {
        Self { questions, ..Self::new(Vec::new(), presentation) }
    }
}

/// The one result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOutcome {
    /// `data` is what the model gets (a string, or JSON).
    Output {
        /// A string, or JSON.
        data: Value,
        /// How clients show the call now.
        presentation: Presentation,
    },
    /// A picture for the model. The loop stores its bytes and shows it to clients.
    Picture {
        /// What was found.
        found: FoundPicture,
        /// How clients show the call now.
        presentation: Presentation,
    },
    /// The call failed, and the model learns so.
    Error {
        /// What was wrong, and what to do: for the model.
        text: String,
        /// How clients show the call now; `None`: as before.
        presentation: Option<Presentation>,
    },
}

/// A picture that a tool found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPicture {
    /// Its path.
    pub path: PathBuf,
    /// Detected from its content.
    pub mime: &'static str,
    /// The whole file.
    pub bytes: Vec<u8>,
    /// The tool's text beside it; may be empty.
    pub text: String,
}

/// Where the session works. Fixed at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// The directory that relative paths start from.
    pub root: PathBuf,
    /// Directories that the session may touch beside the root.
    pub additional: Vec<PathBuf>,
    /// Owned by the host and created at first use; calls reach it without a question.
    pub scratch: PathBuf,
    /// Paths that stay out of reach, whatever the user grants.
    pub guarded: Arc<Guarded>,
    /// The skills that a model can load; calls may read their directories without a question.
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
    /// The paths that rules judged, with links followed: a running call opens no others. `None` during
    /// planning.
    pub judged: Option<Arc<[PathBuf]>>,
    /// Those of the judged paths that the call may write.
    pub writes: Arc<[PathBuf]>,
    /// What a call that searches for files has to skip.
    pub closed: Option<ReadRules>,
    /// Does for the session what its editor keeps to itself; `None`: this machine does everything.
    pub client: Option<Arc<dyn Delegate>>,
    /// What the model has seen of files; tools that read or change one add to it.
    pub seen: Arc<SeenFiles>,
}

impl Site {
    /// Only the roots, for code that is not a call of a model.
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

/// How far a call may reach over the network, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkGrant {
    /// Its processes have no network.
    Withheld,
    /// A rule or a person granted it; that no question was asked is not a grant.
    Granted,
    /// The user named each host that it reaches: a rule of theirs without a wildcard, or an answer. Opens hosts
    /// that are not of the public internet too.
    GrantedByName,
}

/// Whether the processes of a call may change anything beyond the session's scratch directory, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteGrant {
    /// No: the call passed because it is known to read only, and the sandbox enforces that.
    Withheld,
    /// Yes: a rule, an approval or a person allowed the call.
    Granted,
}

/// Live progress of a call (what a command has printed so far). The sink decides how often clients get it.
pub trait Progress: Send + Sync + Debug {
    /// Replaces what was shown before; called at most every 100 ms by a well-behaved tool.
    fn show(&self, presentation: Presentation);
    /// A chunk of the tool's own for all clients (`data-plan`).
    fn data(&self, name: &str, data: Value);
}

/// Everything that a call needs to run.
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
    /// How much of the model's context the result may take; a tool may have smaller bounds of its own.
    pub result_bytes: usize,
    /// Receives its progress.
    pub progress: Arc<dyn Progress>,
    /// For a tool whose server asks a model for an answer; `None` if there is no such model.
    pub side_model: Option<Arc<dyn SideModel>>,
    /// Cancelled when the call has to end.
    pub cancel: CancellationToken,
}

/// Something that a model can call.
pub trait Tool: Send + Sync + Debug {
    /// Its description; does not change while the process runs.
    fn spec(&self) -> &ToolSpec;
    /// The name that rules use.
    fn permission(&self) -> &str {
        &self.spec().id
    }
    /// What identifies the tool if its definition can change under the same name: an "always" answer applies to
    /// this. `None`: it never changes.
    fn identity(&self) -> Option<ToolIdentity> {
        None
    }
    /// Whether a person has to answer its calls: it is not offered if there is none.
    fn needs_person(&self) -> bool {
        self.without_person().is_some()
    }
    /// For such a tool: the result of any call if there is no person.
    fn without_person(&self) -> Option<&'static str> {
        None
    }
    /// Whether its results are pictures: it is not offered to a model that accepts none.
    fn needs_images(&self) -> bool {
        false
    }
    /// Whether it is offered only after a search, if there are many such tools.
    fn is_searchable(&self) -> bool {
        false
    }
    /// Whether it is left out of sessions without skills.
    fn needs_skills(&self) -> bool {
        false
    }
    /// Whether its calls tell `ToolRuntime::snapshots` what they will change. A rewind reports the changes of
    /// other mutating tools as unknown.
    fn tells_changes(&self) -> bool {
        false
    }
    /// What one call can change, for tools whose calls differ: decides which calls run at the same time and
    /// what a rewind says about it. Whether calls need a permission is up to the spec.
    fn effect_of(&self, _input: &Value) -> Effect {
        self.spec().effect
    }
    /// Understands the arguments and touches nothing, except that it may read for the preview. `Err` is the
    /// tool error for the model and names the field.
    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>>;
    /// Runs an allowed call. Must return soon after `cancel` fires (2.5 s at the latest) and leave no process
    /// behind.
    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome>;
    /// What the model has to know about earlier calls without having asked; each piece of news is returned
    /// once.
    fn news(&self, _session: &SessionId) -> Option<String> {
        None
    }
    /// The session is closed or its host ends: stops what still runs for it. Must return within half a second.
    fn session_ended<'a>(&'a self, _session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}
