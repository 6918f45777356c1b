//! A world for one test: a disk, a scripted model, processes on it and clients that connect to them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use attache_acp::to_wire::ThoughtUpdates;
use attache_acp::{Accounts, AgentServices, ClientFs, Host, SameDirectory, Warning, connect};
use attache_core::agents::Agents;
use attache_core::hub::{Hub, ModelStandIn, People, Ports, Settings};
use attache_core::ids::Ids;
use attache_core::ports::{BoxFuture, Clock, Model, Tool};
use attache_core::turn::NativeBackend;
use attache_core::watchdog::{Approval, Containment};
use attache_models::ScriptModel;
use attache_rpc::limits::MAX_LINE_BYTES;
use attache_rpc::{Connection, Options, duplex, json_lines};
use attache_testkit::client::TestClient;
use attache_testkit::fakes::clock::TokioClock;
use attache_testkit::fakes::disk::Disk;
use attache_testkit::fakes::store::MemoryStore;
use attache_testkit::fakes::tools::{Runs, family};
use serde_json::{Value, json};

pub struct World {
    disk: Arc<Mutex<Disk>>,
    model: Arc<dyn Model>,
    accounts: Option<Arc<dyn Accounts>>,
    pub runs: Runs,
    /// Beside the family of fakes.
    pub tools: Vec<Arc<dyn Tool>>,
    clock: Arc<dyn Clock>,
    processes: Mutex<u64>,
}

/// One living process with its hub.
pub struct Process {
    pub hub: Hub,
    store: MemoryStore,
    clock: Arc<dyn Clock>,
    accounts: Option<Arc<dyn Accounts>>,
    pub client_fs: ClientFs,
    /// What the host has to tell.
    pub warnings: Arc<Mutex<Vec<Warning>>>,
    /// Directories that were removed.
    pub gone: Arc<Mutex<Vec<PathBuf>>>,
}

/// One connection and its client.
pub struct Line {
    pub client: TestClient,
    pub connection: Connection,
}

impl World {
    pub fn new(script: &str) -> Self {
        Self::with_model(Arc::new(ScriptModel::parse("script", script).unwrap()), None)
    }

    pub fn with_model(model: Arc<dyn Model>, accounts: Option<Arc<dyn Accounts>>) -> Self {
        Self {
            disk: Arc::default(),
            model,
            accounts,
            runs: Runs::default(),
            tools: Vec::new(),
            clock: Arc::new(TokioClock::start()),
            processes: Mutex::default(),
        }
    }

    /// The same disk under a host with another model.
    pub fn another_model(self, model: Arc<dyn Model>) -> Self {
        Self { model, ..self }
    }

    pub fn process(&self) -> Process {
        let mut number = self.processes.lock().unwrap();
        *number += 1;
        let store = MemoryStore::open(self.disk.clone(), *number, *number);
        let hub = Hub::new(Ports {
            store: Arc::new(store.clone()),
            leases: Arc::new(store.clone()),
            blobs: Arc::new(store.clone()),
            scratch: None,
            backend: Arc::new(NativeBackend),
            model: self.model.clone(),
            compaction: None,
            tools: family(&self.runs).iter().chain(&self.tools).cloned().collect(),
            files: None,
            servers: None,
            surroundings: None,
            projects: None,
            hooks: None,
            pictures: None,
            telemetry: None,
            agents: Agents::builtin(),
            clock: self.clock.clone(),
            ids: Arc::new(Ids::new(self.clock.clone(), *number)),
            settings: Settings {
                model: None,
                agent: "build".into(),
                small_model: None,
                max_steps: 5,
                scratch: "/scratch".into(),
                guarded: Arc::default(),
                approval: Approval::Ask,
                rules: Arc::default(),
                hooks: Arc::default(),
                containment: Containment::None.into(),
                people: People::Present,
                stand_in: ModelStandIn::Allowed,
                platform: "test".into(),
            },
        });
        let (clock, accounts) = (self.clock.clone(), self.accounts.clone());
        Process {
            hub,
            store,
            clock,
            accounts,
            client_fs: ClientFs::Auto,
            warnings: Arc::default(),
            gone: Arc::default(),
        }
    }

    pub fn messages(&self) -> usize {
        self.disk.lock().unwrap().messages.len()
    }
}

impl Process {
    /// SIGKILL, as far as the disk and everybody else can see.
    pub fn kill(self) {
        self.store.kill();
    }

    /// What a connection to this process is given.
    pub fn services(&self) -> AgentServices {
        AgentServices {
            hub: self.hub.clone(),
            host: Arc::new(TestHost { warnings: self.warnings.clone(), gone: self.gone.clone() }),
            accounts: self.accounts.clone(),
            clock: self.clock.clone(),
            version: "0.0.0",
            thoughts: ThoughtUpdates::Show,
            client_fs: self.client_fs,
        }
    }

    /// A connection that has not been initialized.
    pub fn connect_raw(&self) -> Line {
        let (ours, theirs) = duplex(64 * 1024);
        let (source, sink) = json_lines(ours, MAX_LINE_BYTES);
        let connection = connect(self.services(), source, sink, Options::default());
        Line { client: TestClient::connect(theirs.0, theirs.1), connection }
    }

    pub async fn connect(&self) -> Line {
        self.connect_with(json!({ "session": { "notices": {} } })).await
    }

    /// A connection of a client that can do this.
    pub async fn connect_with(&self, capabilities: Value) -> Line {
        let line = self.connect_raw();
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        line.client.expect("initialize", params).await;
        line
    }

    /// A connection with a new session.
    pub async fn session(&self) -> (Line, String) {
        let line = self.connect().await;
        let id = line.new_session().await;
        (line, id)
    }
}

impl Line {
    pub async fn new_session(&self) -> String {
        let result = self.client.expect("session/new", json!({ "cwd": "/w", "mcpServers": [] })).await;
        result["sessionId"].as_str().unwrap().to_owned()
    }

    pub async fn load(&self, session: &str) -> Value {
        let params = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
        self.client.expect("session/load", params).await
    }

    pub async fn resume(&self, session: &str) -> Value {
        self.client.expect("session/resume", json!({ "sessionId": session, "cwd": "/w" })).await
    }

    /// Prompts and waits; gives the stop reason.
    pub async fn say(&self, session: &str, text: &str) -> String {
        let result = self.client.expect("session/prompt", prompt(session, text)).await;
        result["stopReason"].as_str().unwrap().to_owned()
    }

    /// The kinds of updates of a session so far, runs of the same kind counted once.
    pub fn kinds(&self, session: &str) -> Vec<String> {
        kinds(&self.client.updates(session))
    }
}

/// Titles come when they come; they are left out.
pub fn kinds(updates: &[Value]) -> Vec<String> {
    let kinds = updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap().to_owned());
    let mut kinds: Vec<String> = kinds.filter(|kind| kind != "session_info_update").collect();
    kinds.dedup();
    kinds
}

pub fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

pub fn prompt_with_id(session: &str, text: &str, id: &str) -> Value {
    let mut params = prompt(session, text);
    params["_meta"] = json!({ "attache/messageId": id });
    params
}

/// Every directory exists but `/missing` and those that a test removed; `/link` leads to `/w`.
#[derive(Debug)]
struct TestHost {
    warnings: Arc<Mutex<Vec<Warning>>>,
    gone: Arc<Mutex<Vec<PathBuf>>>,
}

impl Host for TestHost {
    fn compare_directories(&self, one: &Path, other: &Path) -> BoxFuture<'static, SameDirectory> {
        let real =
            |path: &Path| if path == Path::new("/link") { PathBuf::from("/w") } else { path.to_owned() };
        let same = real(one) == real(other);
        Box::pin(async move { if same { SameDirectory::Same } else { SameDirectory::Different } })
    }

    fn check_places(
        &self,
        _session: &attache_core::ids::SessionId,
        _directories: Vec<PathBuf>,
    ) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn check_directory(&self, path: &Path) -> BoxFuture<'static, Result<(), String>> {
        let missing =
            path.starts_with("/missing") || self.gone.lock().unwrap().iter().any(|gone| gone == path);
        let checked = if missing { Err(format!("{} does not exist", path.display())) } else { Ok(()) };
        Box::pin(async move { checked })
    }

    fn take_warnings(&self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings.lock().unwrap())
    }
}
