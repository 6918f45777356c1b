//! Connects the crates according to the settings: store, models, tools, hub. Decides nothing beyond what the
//! configuration says.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use attache_core::agents::Agents;
use attache_core::compactor::Compactor;
use attache_core::hooks::HookOwner;
use attache_core::hub::{Hub, ModelStandIn, People, Ports, Settings};
use attache_core::ids::{Ids, SessionId};
use attache_core::ports::tool::Workspace;
use attache_core::ports::{Clock, FileMover, Model, Telemetry};
use attache_core::traced_model::TracedModel;
use attache_core::watchdog::{Containment, HostContainment};
use attache_foreign::ForeignBackends;
use attache_mcp::{HostServers, McpSettings, Variables};
use attache_models::Http;
use attache_sandbox::LazySandbox;
use attache_serve::ServerMetrics;
use attache_store::{FileBlobs, ReadOnlyStore, SetAside, SqliteStore, StoreLocation};
use attache_telemetry::OtlpExporter;
use attache_tools::{
    Equipment, FileTurns, HookProcesses, MachineSurroundings, ScratchDirectories, SnapshotMover, UnheldHooks,
};
use jiff::tz::TimeZone;

use crate::catalogue::CurrentCatalogue;
use crate::config::{Config, ConfigErrors, ConfiguredRule, ProcessEnvironment, Sourced};
use crate::connect::TOKEN_VARIABLE;
use crate::credentials::{Credentials, KeyPlace, Patience, ServerLogins};
use crate::damage::{DAMAGED, FOREIGN_JOURNAL, what_became_of, what_was_foreign};
use crate::dirs::Dirs;
use crate::foreign_agents::{AgentMachine, ForeignHost};
use crate::projects::HostProjects;
use crate::providers::{LiveProviders, Opener};
use crate::serve::MeteredModel;
use crate::troubles::Troubles;
use crate::usage_error::WrongUsage;
use crate::when;

/// Everything that we read once, and that models come from.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    pub(crate) config: Arc<Config>,
    pub(crate) dirs: Dirs,
    pub(crate) credentials: Credentials,
    pub(crate) opener: Opener,
    pub(crate) troubles: Troubles,
    /// The variables that entries of MCP servers may refer to.
    pub(crate) variables: Variables,
    /// Counts the calls of models, in a server.
    pub(crate) metrics: Option<ServerMetrics>,
    /// What we need to make agents that run elsewhere.
    pub(crate) foreign: ForeignHost,
    /// The environment's token for a server elsewhere.
    pub(crate) token: Option<BearerText>,
}

/// A secret text; `Debug` does not show it.
#[derive(Clone)]
pub(crate) struct BearerText(pub(crate) String);

impl std::fmt::Debug for BearerText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BearerText")
    }
}

impl Sources {
    pub(crate) fn new(config: Config, dirs: Dirs, environment: &ProcessEnvironment) -> Self {
        let credentials = Credentials::new(environment, &dirs);
        let troubles = Troubles::default();
        let opener = Opener {
            catalogue: CurrentCatalogue::new(&dirs, troubles.clone()),
            troubles: troubles.clone(),
            http: Http::default(),
            keyring: credentials.keyring,
            idle: config.limits.stream_idle.value,
        };
        let variables = Variables::new(environment.iter()).with_own_keys(config.key_variables(environment));
        let token = environment.text(TOKEN_VARIABLE).map(|text| BearerText(text.to_owned()));
        let machine = AgentMachine {
            environment: environment.iter().collect(),
            packages: dirs.packages.clone(),
            sandbox: Arc::default(),
        };
        let foreign = ForeignHost::new(variables.clone(), machine);
        let config = Arc::new(config);
        Self { config, dirs, credentials, opener, troubles, variables, metrics: None, foreign, token }
    }

    /// The providers in their current state.
    pub(crate) fn live(&self) -> Result<LiveProviders, ConfigErrors> {
        LiveProviders::open(self.config.clone(), self.credentials.clone(), self.opener.clone())
    }
}

/// The connected crates. Dropping it ends the store's threads.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) hub: Hub,
    pub(crate) providers: LiveProviders,
    pub(crate) store: SqliteStore,
    pub(crate) clock: Arc<dyn Clock>,
    /// How commands are confined, in the hub's terms.
    pub(crate) containment: HostContainment,
    /// `None` unless the user wants it.
    pub(crate) telemetry: Option<Arc<OtlpExporter>>,
}

#[derive(Debug)]
struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as i64)
    }

    fn zone(&self) -> TimeZone {
        when::zone()
    }
}

pub(crate) fn system_clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// For the random digits of ids. The standard library seeds its hashers from the operating system, which is
/// enough to keep processes apart.
pub(crate) fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Setup {
    /// `trace` is the file for this process's traffic; `people` answer its questions.
    pub(crate) fn open(
        sources: &Sources,
        trace: Option<&Path>,
        stand_in: ModelStandIn,
        people: People,
    ) -> Result<Self> {
        let (config, dirs) = (&sources.config, &sources.dirs);
        let projects = HostProjects::new(config, dirs, &sources.foreign);
        check_agent(&config.agent, &projects)?;
        let providers = sources.live()?;
        let web_search = crate::web_search::endpoint(sources)?;
        dirs.create()?;
        let (store, set_aside) = open_store(sources)?;
        set_aside.iter().for_each(note_damage);
        let files_of_ours =
            [trace, set_aside.as_ref().map(|set_aside| &*set_aside.path)].into_iter().flatten();
        let guarded = crate::guarded::guarded(config, dirs, files_of_ours);
        // With links resolved, so that sessions' own files differ from what is hidden around them.
        let scratch = dirs.scratch.canonicalize().unwrap_or_else(|_| dirs.scratch.clone());
        let sandbox = crate::sandbox::open(config, &scratch)?;
        let sandbox = sources.foreign.machine.sandbox.get_or_init(|| sandbox).clone();
        let clock = system_clock();
        let containment = containment(sources, &sandbox);
        let blobs = Arc::new(FileBlobs::new(dirs.blobs.clone()));
        let ids = Arc::new(Ids::new(clock.clone(), seed()));
        let telemetry = crate::telemetry::exporter(sources);
        let model = traced(metered(Arc::new(providers.clone()), sources), telemetry.as_ref(), &clock, &ids);
        let small_model = config.small_model.as_ref().map(|model| model.value.clone());
        let compactor = Compactor { model: model.clone(), blobs: blobs.clone(), small_model };
        let turns = FileTurns::default();
        let mover = SnapshotMover::new(&turns);
        let hub = Hub::new(Ports {
            leases: Arc::new(store.clone()),
            blobs,
            scratch: Some(Arc::new(ScratchDirectories::below(scratch.clone()))),
            backend: Arc::new(ForeignBackends::new(sources.foreign.agents.clone())),
            model,
            compaction: Some(Arc::new(compactor)),
            tools: attache_tools::builtin(Equipment { sandbox: sandbox.clone(), web_search, turns }).into(),
            servers: Some(Arc::new(mcp_servers(sources, &sandbox))),
            surroundings: Some(Arc::new(surroundings(sources, &sandbox))),
            projects: Some(Arc::new(projects)),
            files: config.snapshots.value.then(|| Arc::new(mover) as Arc<dyn FileMover>),
            hooks: Some(Arc::new(HookProcesses { sandbox: sandbox.clone(), unheld: unheld(config) })),
            pictures: Some(Arc::new(attache_tools::PictureFitter::default())),
            telemetry: telemetry.clone().map(|telemetry| telemetry as Arc<dyn Telemetry>),
            agents: sources.foreign.with(&Agents::builtin(), &config.agents, &config.file),
            ids,
            clock: clock.clone(),
            settings: Settings {
                guarded: Arc::new(guarded),
                containment: containment.clone(),
                people,
                stand_in,
                ..settings(config, scratch)
            },
            store: Arc::new(store.clone()),
        });
        Ok(Self { hub, providers, store, clock, containment, telemetry })
    }
}

/// The model itself, or wrapped to count its calls.
fn metered(model: Arc<dyn Model>, sources: &Sources) -> Arc<dyn Model> {
    match &sources.metrics {
        Some(metrics) => Arc::new(MeteredModel { inner: model, metrics: metrics.clone() }),
        None => model,
    }
}

fn surroundings(sources: &Sources, sandbox: &LazySandbox) -> MachineSurroundings {
    let user_directory = sources.dirs.config_file.parent().map(Path::to_owned);
    MachineSurroundings::new(sandbox.clone(), user_directory)
        .with_skill_paths(sources.config.skill_paths.value.clone())
}

fn note_damage(set_aside: &SetAside) {
    crate::answer::note(&format!("attache: {DAMAGED}: {}", what_became_of(set_aside)));
}

/// What the configuration says; leaves the machine's and the caller's part at its defaults.
fn settings(config: &Config, scratch: PathBuf) -> Settings {
    Settings {
        model: config.model.as_ref().map(|model| model.value.clone()),
        agent: config.agent.value.clone(),
        small_model: config.small_model.as_ref().map(|model| model.value.clone()),
        max_steps: config.limits.max_steps.value,
        rules: config.rules.iter().map(ConfiguredRule::rule).collect(),
        hooks: config.hooks.iter().map(|hook| hook.hook(HookOwner::User)).collect(),
        approval: config.approval.value,
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        ..Settings::usual(scratch)
    }
}

/// The model itself, or wrapped to send spans of its calls.
fn traced(
    model: Arc<dyn Model>,
    telemetry: Option<&Arc<OtlpExporter>>,
    clock: &Arc<dyn Clock>,
    ids: &Arc<Ids>,
) -> Arc<dyn Model> {
    match telemetry {
        Some(telemetry) => Arc::new(TracedModel::new(model, telemetry.clone(), clock.clone(), ids.clone())),
        None => model,
    }
}

/// The servers of this host; none starts before a session wants it.
pub(crate) fn mcp_servers(sources: &Sources, sandbox: &LazySandbox) -> HostServers {
    HostServers::new(McpSettings {
        entries: crate::config::enabled_servers(&sources.config.servers),
        names: sources.config.servers.iter().map(|server| server.entry.name.clone()).collect(),
        sandbox: sandbox.clone(),
        variables: sources.variables.clone(),
        logins: Arc::new(ServerLogins::new(&sources.credentials, Patience::None, KeyPlace::KeyringElseFile)),
    })
}

/// This directory as a session would have it, for commands that only look; `name` replaces the session's id.
pub(crate) fn looking_workspace(sources: &Sources, root: &Path, name: &str) -> Workspace {
    let (config, dirs) = (&sources.config, &sources.dirs);
    let scratch = dirs.scratch.canonicalize().unwrap_or_else(|_| dirs.scratch.clone());
    Workspace {
        session_id: SessionId::new(name),
        root: root.to_owned(),
        additional: Vec::new(),
        scratch: scratch.join(name),
        guarded: Arc::new(crate::guarded::guarded(config, dirs, std::iter::empty()).as_it_is_now()),
        skills: Arc::default(),
    }
}

/// Without a sandbox no hook runs unasked, unless the user wants no sandbox.
fn unheld(config: &Config) -> UnheldHooks {
    match config.sandbox.value {
        crate::config::SandboxSetting::Off => UnheldHooks::Run,
        crate::config::SandboxSetting::Auto | crate::config::SandboxSetting::Require => UnheldHooks::Refused,
    }
}

/// The agent of new sessions here, if it runs elsewhere: it has its own model. Blocks.
pub(crate) fn foreign_agent_here(sources: &Sources) -> Option<String> {
    let projects = HostProjects::new(&sources.config, &sources.dirs, &sources.foreign);
    let settings = projects.settings_now(&std::env::current_dir().ok()?);
    let wanted = settings.agent.unwrap_or_else(|| sources.config.agent.value.clone());
    let agents = settings.agents.unwrap_or_default();
    let is_foreign = agents.primary(&wanted).is_some_and(|agent| agent.foreign_key().is_some());
    is_foreign.then_some(wanted)
}

/// The agent of new sessions: built in, the user's, or of the project in which this process was started. A
/// session of a project without that agent begins with the default one, and says so.
fn check_agent(agent: &Sourced<String>, projects: &HostProjects) -> Result<()> {
    let Sourced { value: id, origin } = agent;
    if Agents::builtin().primary(id).is_some() {
        return Ok(());
    }
    let here = std::env::current_dir().unwrap_or_default();
    let known = projects.settings_now(&here).agents.unwrap_or_default();
    match known.primary(id) {
        Some(_) => Ok(()),
        None => Err(WrongUsage::of(origin, format!("{origin}: {}", projects.unknown_agent(&here, id)))),
    }
}

/// How commands are confined: known from the start if they are not, else found out at the first question.
fn containment(sources: &Sources, sandbox: &LazySandbox) -> HostContainment {
    let wanted = sources.config.sandbox.value;
    let (found, troubles) = (sandbox.clone(), sources.troubles.clone());
    match wanted {
        crate::config::SandboxSetting::Off => Containment::ExplicitlyOff.into(),
        crate::config::SandboxSetting::Auto | crate::config::SandboxSetting::Require => {
            HostContainment::found_by(move || {
                crate::sandbox::tell_shortfall(wanted, &found, &troubles);
                crate::sandbox::containment(wanted, found.level())
            })
        }
    }
}

/// Opens the session database of this configuration, and reports a damaged one.
pub(crate) fn open_store(sources: &Sources) -> Result<(SqliteStore, Option<SetAside>)> {
    let (config, dirs) = (&sources.config, &sources.dirs);
    let opened = SqliteStore::open(&store_location(config, dirs), config.durability.value)?;
    if let Some(set_aside) = &opened.set_aside {
        sources.troubles.report(DAMAGED, what_became_of(set_aside));
    }
    if let Some(moved_to) = &opened.foreign_journal {
        let text = what_was_foreign(moved_to);
        crate::answer::note(&format!("attache: {FOREIGN_JOURNAL}: {text}"));
        sources.troubles.report(FOREIGN_JOURNAL, text);
    }
    Ok((opened.store, opened.set_aside))
}

/// The same, but read-only; `None` if there is no database.
pub(crate) fn look_into_store(config: &Config, dirs: &Dirs) -> Result<Option<ReadOnlyStore>> {
    Ok(ReadOnlyStore::open(&store_location(config, dirs))?)
}

fn store_location(config: &Config, dirs: &Dirs) -> StoreLocation {
    let database = config.store.value.clone();
    let beside = database.parent().map(PathBuf::from).unwrap_or_default();
    StoreLocation { database, locks: beside.join("locks"), blobs: dirs.blobs.clone() }
}
