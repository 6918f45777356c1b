//! What a host composes its hub of, and the values it read from its configuration. Made once.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agents::Agents;
use crate::hooks::Hooks;
use crate::ids::Ids;
use crate::ports::store::{Blobs, Leases, ModelRef, Store};
use crate::ports::tool::ToolSources;
use crate::ports::{
    Backend, Clock, Compaction, FileMover, HookRunner, Model, Pictures, Projects, Scratch, Surroundings,
    Telemetry, ToolServers,
};
use crate::scope::Guarded;
use crate::watchdog::{Approval, HostContainment, Rule};

/// What the hub is composed of; the host makes it once.
#[derive(Clone, Debug)]
pub struct Ports {
    pub store: Arc<dyn Store>,
    pub leases: Arc<dyn Leases>,
    pub blobs: Arc<dyn Blobs>,
    /// `None`: what sessions leave in their scratch directories is the host's own business.
    pub scratch: Option<Arc<dyn Scratch>>,
    /// Runs the turns of all sessions.
    pub backend: Arc<dyn Backend>,
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
    pub agents: Agents,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<Ids>,
    pub settings: Settings,
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
    pub people: People,
    /// What the system prompt says of the machine (`linux x86_64`).
    pub platform: String,
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
