//! The parts a host gives to its hub, and the values that it read from its configuration. The host makes them
//! once.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agents::{Agents, DEFAULT_AGENT};
use crate::hooks::Hooks;
use crate::ids::Ids;
use crate::limits::USUAL_STEPS;
use crate::ports::store::{Blobs, Leases, ModelRef, Store};
use crate::ports::tool::ToolSources;
use crate::ports::{
    Backend, Clock, Compaction, FileMover, HookRunner, Model, Pictures, Projects, Scratch, Surroundings,
    Telemetry, ToolServers,
};
use crate::scope::Guarded;
use crate::turn::NativeBackend;
use crate::watchdog::{Approval, Containment, HostContainment, Rule};

/// The parts of the hub; the host makes this once.
#[derive(Clone, Debug)]
pub struct Ports {
    /// Where sessions are stored.
    pub store: Arc<dyn Store>,
    /// Which process may write to which session.
    pub leases: Arc<dyn Leases>,
    /// Where attachments are stored.
    pub blobs: Arc<dyn Blobs>,
    /// `None`: the host itself cleans up the scratch directories of sessions.
    pub scratch: Option<Arc<dyn Scratch>>,
    /// Runs the turns of all sessions.
    pub backend: Arc<dyn Backend>,
    /// The models.
    pub model: Arc<dyn Model>,
    /// `None`: a turn ends when its conversation no longer fits the model.
    pub compaction: Option<Arc<dyn Compaction>>,
    /// The tools of every session.
    pub tools: ToolSources,
    /// `None`: sessions have no servers; a notice names those that a client asks for.
    pub servers: Option<Arc<dyn ToolServers>>,
    /// `None`: the system prompt does not mention version control.
    pub surroundings: Option<Arc<dyn Surroundings>>,
    /// `None`: projects have no configuration of their own.
    pub projects: Option<Arc<dyn Projects>>,
    /// Restores files at a rewind. `None`: no file snapshots are kept.
    pub files: Option<Arc<dyn FileMover>>,
    /// `None`: no hook runs here, whatever is configured.
    pub hooks: Option<Arc<dyn HookRunner>>,
    /// `None`: pictures are sent unchanged.
    pub pictures: Option<Arc<dyn Pictures>>,
    /// `None`: nothing is measured. To report calls of models, wrap the model in `TracedModel`.
    pub telemetry: Option<Arc<dyn Telemetry>>,
    /// The agents of every session.
    pub agents: Agents,
    /// Tells the time and the user's time zone.
    pub clock: Arc<dyn Clock>,
    /// Makes the ids of sessions, messages and calls.
    pub ids: Arc<Ids>,
    /// What the configuration says.
    pub settings: Settings,
}

impl Ports {
    /// The minimum for a program that embeds sessions: everything optional is absent. Add tools and other parts
    /// with `Ports { tools, ..Ports::bare(…) }`. `seed` seeds the ids: use a number that no other process uses.
    pub fn bare<S: Store + Leases + 'static>(
        store: Arc<S>,
        blobs: Arc<dyn Blobs>,
        model: Arc<dyn Model>,
        clock: Arc<dyn Clock>,
        seed: u64,
        scratch: PathBuf,
    ) -> Self {
        Self {
            leases: store.clone(),
            store,
            blobs,
            scratch: None,
            backend: Arc::new(NativeBackend),
            model,
            compaction: None,
            tools: ToolSources::new(Vec::new()),
            servers: None,
            surroundings: None,
            projects: None,
            files: None,
            hooks: None,
            pictures: None,
            telemetry: None,
            agents: Agents::builtin(),
            ids: Arc::new(Ids::new(clock.clone(), seed)),
            clock,
            settings: Settings::usual(scratch),
        }
    }
}

/// Values the host read from its configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `None`: the first available model.
    pub model: Option<ModelRef>,
    /// The model for titles. `None`: the small model of the session's provider; if there is none, the title
    /// stays the first line of the first prompt.
    pub small_model: Option<ModelRef>,
    /// The agent of new sessions.
    pub agent: String,
    /// The most model calls per turn.
    pub max_steps: u32,
    /// The directory for the scratch directories of sessions.
    pub scratch: PathBuf,
    /// Paths that no session may reach.
    pub guarded: Arc<Guarded>,
    /// Rules of the configuration, for every session.
    pub rules: Arc<[Rule]>,
    /// Hooks of the configuration, for every session.
    pub hooks: Hooks,
    /// The approval level of sessions for which the user chose none.
    pub approval: Approval,
    /// What contains commands on this host when no question is asked.
    pub containment: HostContainment,
    /// Whether a person can answer questions.
    pub people: People,
    /// Whether another model may answer while the chosen one can't be used.
    pub stand_in: ModelStandIn,
    /// The machine, for the system prompt (`linux x86_64`).
    pub platform: String,
}

impl Settings {
    /// For a host without a configuration: everything beyond reading asks, and nothing contains commands.
    pub fn usual(scratch: PathBuf) -> Self {
        Self {
            model: None,
            small_model: None,
            agent: DEFAULT_AGENT.to_owned(),
            max_steps: USUAL_STEPS,
            scratch,
            guarded: Arc::default(),
            rules: Arc::default(),
            hooks: Arc::default(),
            approval: Approval::Ask,
            containment: Containment::None.into(),
            people: People::Present,
            stand_in: ModelStandIn::Allowed,
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// What happens to a prompt whose model can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelStandIn {
    /// Another model answers, and a notice says so: people read it and can choose.
    Allowed,
    /// The prompt is refused with the reason: a script reads no notices.
    Refused,
}

/// Whether a person can answer questions on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum People {
    /// Yes, now or later: an open question waits for them.
    Present,
    /// No (headless): calls that would ask are denied.
    Absent,
    /// A program answers every question with no and counts what was not permitted beforehand. The model is told
    /// that no person is there.
    OnlyAProgram,
}
