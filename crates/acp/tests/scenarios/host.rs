//! The rooms composed as the binary composes them, on a temporary home, with a runtime of their own that can be
//! killed.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attache_acp::to_wire::ThoughtUpdates;
use attache_acp::{AgentServices, connect};
use attache_core::agents::{Agents, DEFAULT_AGENT, FoundAgent, ManifestDialect};
use attache_core::calendar::TimeZone;
use attache_core::compactor::Compactor;
use attache_core::hub::{Hub, ModelStandIn, People, Ports, Settings};
use attache_core::ids::Ids;
use attache_core::limits::MAX_STEPS;
use attache_core::ports::projects::{ProjectNotice, ProjectSettings, Projects};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxFuture, Clock, Compaction, Surroundings, ToolServers};
use attache_core::turn::NativeBackend;
use attache_core::watchdog::{Containment, Firmness, ManifestRule};
use attache_models::{Providers, ScriptModel};
use attache_rpc::limits::MAX_LINE_BYTES;
use attache_rpc::{Connection, duplex, json_lines};
use attache_store::{Durability, FileBlobs, SqliteStore, StoreLocation};
use attache_testkit::client::TestClient;
use attache_testkit::fakes::servers::FakeServers;
use attache_testkit::http_server::{Answer, HttpServer};
use attache_tools::{
    Equipment, HookProcesses, MachineSurroundings, SearchEndpoint, SearchProvider, SnapshotMover, UnheldHooks,
};
use tokio::runtime::Runtime;

use crate::grammar::Options;
use crate::sent::Sent;

/// One process' worth of agent.
pub(crate) struct Host {
    process: Process,
    agent: AgentServices,
    store: SqliteStore,
    connections: Vec<Connection>,
    /// Answers searches as long as the host lives.
    search: Option<HttpServer>,
}

/// A runtime that may also be dropped where waiting is not allowed: a failed scenario ends wherever it is.
struct Process(Option<Runtime>);

impl Process {
    fn start() -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        Self(Some(builder.worker_threads(1).enable_all().build().unwrap()))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().unwrap()
    }

    /// From a thread of its own: the caller may be in another runtime, where waiting for this one is not
    /// allowed.
    fn serve(&self, answer: Answer) -> HttpServer {
        let serving = || self.runtime().block_on(HttpServer::in_order([answer]));
        std::thread::scope(|scope| scope.spawn(serving).join().unwrap())
    }

    /// Returns when none of its tasks runs any more.
    fn kill(mut self) {
        let runtime = self.0.take().unwrap();
        std::thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(5))).join().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[derive(Debug)]
struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
    }

    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}

impl Host {
    pub(crate) fn start(home: &Path, script: &str, options: &Options, sent: &Sent) -> Self {
        let location = StoreLocation {
            database: home.join("sessions.db"),
            locks: home.join("locks"),
            blobs: home.join("blobs"),
        };
        let opened = SqliteStore::open(&location, Durability::Normal).unwrap();
        assert_eq!(opened.set_aside, None, "the database was found damaged");
        let store = opened.store;
        let mut providers = Providers::new();
        let model = Arc::new(ScriptModel::parse("script", script).unwrap());
        providers.insert("script", sent.listening(model));
        if let Some(script) = options.small_script() {
            providers.insert("small", Arc::new(ScriptModel::parse("small", &script).unwrap()));
        }
        let process = Process::start();
        let search = options.search.clone().map(|answer| process.serve(Answer::json(200, &answer)));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (model, blobs) = (Arc::new(providers), Arc::new(FileBlobs::new(location.blobs)));
        let compactor = Compactor { model: model.clone(), blobs: blobs.clone(), small_model: None };
        let equipment = equipment(search.as_ref());
        let mover = SnapshotMover::new(&equipment.turns);
        let sandbox = equipment.sandbox.clone();
        let ports = Ports {
            leases: Arc::new(store.clone()),
            blobs,
            scratch: None,
            backend: Arc::new(NativeBackend),
            model,
            compaction: options.compaction.then(|| Arc::new(compactor) as Arc<dyn Compaction>),
            tools: attache_tools::builtin(equipment).into(),
            servers: servers(options),
            surroundings: options.knowledge.then(|| knowledge(home)),
            projects: agent_files(options),
            hooks: Some(Arc::new(HookProcesses { sandbox, unheld: UnheldHooks::Refused })),
            files: Some(Arc::new(mover)),
            pictures: None,
            telemetry: None,
            agents: agents(options),
            ids: Arc::new(Ids::new(clock.clone(), RandomState::new().build_hasher().finish())),
            clock: clock.clone(),
            settings: Settings {
                model: None,
                agent: DEFAULT_AGENT.to_owned(),
                small_model: options.small_model().map(|name| ModelRef::new("small", name)),
                max_steps: options.max_steps.unwrap_or(MAX_STEPS),
                scratch: home.join("scratch"),
                guarded: Arc::default(),
                approval: options.approval,
                rules: options.rules.clone().into(),
                hooks: options.hooks.clone().into(),
                containment: if options.sandbox_off { Containment::ExplicitlyOff } else { Containment::None }
                    .into(),
                people: if options.headless { People::Absent } else { People::Present },
                stand_in: ModelStandIn::Allowed,
                platform: "linux x86_64".to_owned(),
            },
            store: Arc::new(store.clone()),
        };
        let thoughts = if options.drop_thoughts { ThoughtUpdates::Drop } else { ThoughtUpdates::Show };
        let host = Arc::new(Machine);
        let (hub, client_fs) = (Hub::new(ports), options.client_fs);
        let agent = AgentServices { hub, host, accounts: None, clock, version: "1.2.3", thoughts, client_fs };
        Self { process, agent, store, connections: Vec::new(), search }
    }

    /// A new client; its own tasks live on the caller's runtime.
    pub(crate) fn connect(&mut self) -> TestClient {
        let (ours, (reader, writer)) = duplex(64 * 1024);
        let (source, sink) = json_lines(ours, MAX_LINE_BYTES);
        let entered = self.process.runtime().enter();
        let connection = connect(self.agent.clone(), source, sink, attache_rpc::Options::default());
        drop(entered);
        self.connections.push(connection);
        TestClient::connect(reader, writer)
    }

    /// As when the editor leaves: runs are aborted, calls closed, questions and the queue kept.
    pub(crate) async fn stop(self) {
        let hub = self.agent.hub.clone();
        self.process.runtime().spawn(async move { hub.shutdown().await }).await.unwrap();
        for connection in self.connections {
            connection.drain(Duration::from_millis(250)).await;
        }
        drop(self.agent);
        self.store.shutdown();
    }

    /// Nothing more is done, wherever it was.
    pub(crate) fn kill(self) {
        self.process.kill();
        drop((self.agent, self.connections, self.search));
        self.store.shutdown();
    }
}

fn agents(options: &Options) -> Agents {
    let mut agents = Agents::builtin();
    for rule in &options.pinned {
        agents.add_permission(DEFAULT_AGENT, ManifestRule { rule: rule.clone(), firmness: Firmness::Pinned });
    }
    agents
}

/// What a host found in files of agents.
#[derive(Debug)]
struct AgentFiles(ProjectSettings);

impl Projects for AgentFiles {
    fn settings(&self, _root: &Path) -> BoxFuture<'static, ProjectSettings> {
        let found = self.0.clone();
        Box::pin(async move { found })
    }
}

/// A server that offers prompts and no tools.
fn servers(options: &Options) -> Option<Arc<dyn ToolServers>> {
    let servers = FakeServers::new(&[]);
    servers.offer_prompts(&options.prompts);
    (!options.prompts.is_empty()).then(|| Arc::new(servers) as Arc<dyn ToolServers>)
}

fn agent_files(options: &Options) -> Option<Arc<dyn Projects>> {
    let found = |(name, text): &(String, String)| FoundAgent {
        path: format!("/agents/{name}.md").into(),
        text: text.clone(),
        dialect: ManifestDialect::Own,
    };
    let files: Vec<FoundAgent> = options.agents.iter().map(found).collect();
    let loaded = agents(options).with_files(&files, &|_, _| Err("there is no such file".to_owned()));
    let notice = |title: &str, told: &[String]| {
        let (title, description) = (title.to_owned(), told.join("; "));
        (!told.is_empty()).then_some(ProjectNotice { title, description })
    };
    let notices = [notice("Left out", &loaded.left_out), notice("Not understood", &loaded.notes)];
    let notices = notices.into_iter().flatten().collect();
    let settings = ProjectSettings { agents: Some(loaded.agents), notices, ..ProjectSettings::default() };
    (!files.is_empty()).then(|| Arc::new(AgentFiles(settings)) as Arc<dyn Projects>)
}

/// The user's own files lie where the host keeps everything else.
fn knowledge(home: &Path) -> Arc<dyn Surroundings> {
    Arc::new(MachineSurroundings::new(Equipment::bare().sandbox, Some(home.join("user"))))
}

fn equipment(search: Option<&HttpServer>) -> Equipment {
    let mut equipment = Equipment::bare();
    equipment.web_search =
        search.map(|server| SearchEndpoint::new(SearchProvider::Searxng, &server.url(), None).unwrap());
    equipment
}

/// What the adapter asks of the machine, answered as the binary answers it.
#[derive(Debug)]
struct Machine;

impl attache_acp::Host for Machine {
    fn compare_directories(
        &self,
        one: &Path,
        other: &Path,
    ) -> BoxFuture<'static, attache_acp::SameDirectory> {
        let [one, other] = [one, other].map(std::fs::canonicalize);
        let same = matches!((one, other), (Ok(one), Ok(other)) if one == other);
        Box::pin(async move {
            if same { attache_acp::SameDirectory::Same } else { attache_acp::SameDirectory::Different }
        })
    }

    fn check_places(
        &self,
        _session: &attache_core::ids::SessionId,
        _directories: Vec<PathBuf>,
    ) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn check_directory(&self, path: &Path) -> BoxFuture<'static, Result<(), String>> {
        let path: PathBuf = path.to_owned();
        Box::pin(async move {
            match std::fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() => Ok(()),
                Ok(_) => Err("is not a directory".to_owned()),
                Err(_) => Err("does not exist".to_owned()),
            }
        })
    }

    fn take_warnings(&self) -> Vec<attache_acp::Warning> {
        Vec::new()
    }
}
