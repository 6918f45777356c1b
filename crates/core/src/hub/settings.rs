//! What a host composes its hub of, and the values it read from its configuration. Made once.

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

/// What the hub is composed of; the host makes it once.
#[derive(Clone, Debug)]
pub struct Ports {
    /// Where sessions are stored.
    pub store: Arc<dyn Store>,
    /// Which process may write to which of them.
    pub leases: Arc<dyn Leases>,
    /// Where attachments are stored.
    pub blobs: Arc<dyn Blobs>,
    /// `None`: what sessions leave in their scratch directories is the host's own business.
    pub scratch: Option<Arc<dyn Scratch>>,
    /// Runs the turns of all sessions.
    pub backend: Arc<dyn Backend>,
    /// What answers.
    pub model: Arc<dyn Model>,
    /// `None`: a conversation that no longer fits its model ends its turn.
    pub compaction: Option<Arc<dyn Compaction>>,
    /// What every session has.
    pub tools: ToolSources,
    /// `None`: sessions have no servers, and those that clients ask for are told of.
    pub servers: Option<Arc<dyn ToolServers>>,
    /// `None`: the system prompt says nothing of version control.
    pub surroundings: Option<Arc<dyn Surroundings>>,
    /// `None`: projects have no configuration of their own.
    pub projects: Option<Arc<dyn Projects>>,
    /// Moves files with a rewind. `None`: no snapshots of files are kept.
    pub files: Option<Arc<dyn FileMover>>,
    /// `None`: nothing runs hooks here, whatever is configured.
    pub hooks: Option<Arc<dyn HookRunner>>,
    /// `None`: pictures are sent as they came.
    pub pictures: Option<Arc<dyn Pictures>>,
    /// `None`: nothing is measured. The model that is given here tells of its calls (`TracedModel`).
    pub telemetry: Option<Arc<dyn Telemetry>>,
    /// Those that every session has.
    pub agents: Agents,
    /// Tells the time, and where the user lives.
    pub clock: Arc<dyn Clock>,
    /// Makes ids of sessions, messages and calls.
    pub ids: Arc<Ids>,
    /// What the configuration says.
    pub settings: Settings,
}

impl Ports {
    /// What a program starts from that has sessions in it: what can be absent is. Add tools and whatever else
    /// there is with `Ports { tools, ..Ports::bare(…) }`. `seed` makes ids: a number of no other process.
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
    /// For titles. `None`: the small model of the session's provider; without one the first line of the first
    /// prompt stays.
    pub small_model: Option<ModelRef>,
    /// The agent of new sessions.
    pub agent: String,
    /// Model calls per turn at most.
    pub max_steps: u32,
    /// Sessions' scratch directories are made below it.
    pub scratch: PathBuf,
    /// What no session reaches.
    pub guarded: Arc<Guarded>,
    /// Rules of the configuration, for every session.
    pub rules: Arc<[Rule]>,
    /// Hooks of the configuration, for every session.
    pub hooks: Hooks,
    /// How much happens without asking in sessions for which nothing else was chosen.
    pub approval: Approval,
    /// What holds commands here when no question is asked.
    pub containment: HostContainment,
    /// Whether anybody can be asked.
    pub people: People,
    /// Whether another model answers while the one that was chosen can't be used.
    pub stand_in: ModelStandIn,
    /// What the system prompt says of the machine (`linux x86_64`).
    pub platform: String,
}

impl Settings {
    /// Of a host without a configuration: whatever is more than reading asks, and nothing holds commands.
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

/// What becomes of a prompt whose model can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelStandIn {
    /// Another model answers, and a notice says so: people read it and choose.
    Allowed,
    /// The prompt is refused with the reason: a script reads no notice.
    Refused,
}

/// Whether anybody can be asked on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum People {
    /// Now or later: an open question waits for them.
    Present,
    /// Headless: what would be asked is denied.
    Absent,
    /// A program answers, always with no: it counts what was not permitted beforehand. For the model nobody is
    /// there.
    OnlyAProgram,
}
