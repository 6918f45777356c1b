//! A world for one test: a disk, a scripted model, the tool family, and processes that come and go. Decides
//! nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_core::agents::{Agents, FoundAgent, ManifestDialect};
use attache_core::chunk::order::OrderChecker;
use attache_core::chunk::{Chunk, json};
use attache_core::events::{EventKind, RunState};
use attache_core::hooks::Hook;
use attache_core::hub::{
    AttachFrom, Attachment, Hub, HubError, ModelStandIn, NewSession, People, Ports, SessionHandle, Settings,
    Ticket, TurnOutcome,
};
use attache_core::ids::{Ids, MessageId, SessionId};
use attache_core::part::{Part, Role, ToolPart};
use attache_core::ports::client::{Answer, Client};
use attache_core::ports::projects::Projects;
use attache_core::ports::{
    Backend, Clock, Compaction, FileMover, Model, Pictures, Scratch, Surroundings, Telemetry, ToolServers,
};
use attache_core::prompt::Prompt;
use attache_core::traced_model::TracedModel;
use attache_core::turn::{NativeBackend, TurnEnd};
use attache_core::watchdog::{Approval, Containment};
use attache_models::ScriptModel;
use attache_testkit::fakes::client::PlannedClient;
use attache_testkit::fakes::clock::TokioClock;
use attache_testkit::fakes::disk::Disk;
use attache_testkit::fakes::hooks::FakeHooks;
use attache_testkit::fakes::model::Remembering;
use attache_testkit::fakes::store::MemoryStore;
use attache_testkit::fakes::tools::{Runs, family};

/// Longer than anything takes in paused time; beyond it a test hangs.
pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) struct World {
    pub(crate) disk: Arc<Mutex<Disk>>,
    pub(crate) model: Arc<Remembering>,
    pub(crate) runs: Runs,
    clock: Arc<dyn Clock>,
    settings: Settings,
    backend: Arc<dyn Backend>,
    compaction: Option<Arc<dyn Compaction>>,
    surroundings: Option<Arc<dyn Surroundings>>,
    servers: Option<Arc<dyn ToolServers>>,
    projects: Option<Arc<dyn Projects>>,
    files: Option<Arc<dyn FileMover>>,
    pictures: Option<Arc<dyn Pictures>>,
    scratch: Option<Arc<dyn Scratch>>,
    agents: Agents,
    pub(crate) hooks: Arc<FakeHooks>,
    telemetry: Option<Arc<dyn Telemetry>>,
    processes: Mutex<u64>,
}

/// One living process on the disk.
pub(crate) struct Process {
    pub(crate) hub: Hub,
    pub(crate) store: MemoryStore,
}

impl World {
    pub(crate) fn new(script: &str) -> Self {
        Self::with_model(Arc::new(ScriptModel::parse("script", script).unwrap()))
    }

    pub(crate) fn with_model(model: Arc<dyn Model>) -> Self {
        Self {
            disk: Arc::default(),
            model: Remembering::new(model),
            runs: Runs::default(),
            clock: Arc::new(TokioClock::start()),
            settings: Settings {
                model: None,
                agent: "build".into(),
                small_model: None,
                max_steps: 20,
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
            backend: Arc::new(NativeBackend),
            compaction: None,
            surroundings: None,
            servers: None,
            projects: None,
            files: None,
            pictures: None,
            scratch: None,
            agents: Agents::builtin(),
            hooks: Arc::default(),
            telemetry: None,
            processes: Mutex::default(),
        }
    }

    pub(crate) fn with_backend(mut self, backend: impl Backend + 'static) -> Self {
        self.backend = Arc::new(backend);
        self
    }

    pub(crate) fn with_compaction(mut self, compaction: Arc<dyn Compaction>) -> Self {
        self.compaction = Some(compaction);
        self
    }

    pub(crate) fn with_pictures(mut self, pictures: Arc<dyn Pictures>) -> Self {
        self.pictures = Some(pictures);
        self
    }

    pub(crate) fn with_surroundings(mut self, surroundings: Arc<dyn Surroundings>) -> Self {
        self.surroundings = Some(surroundings);
        self
    }

    pub(crate) fn with_servers(mut self, servers: impl ToolServers + 'static) -> Self {
        self.servers = Some(Arc::new(servers));
        self
    }

    pub(crate) fn with_projects(mut self, projects: Arc<dyn Projects>) -> Self {
        self.projects = Some(projects);
        self
    }

    pub(crate) fn with_files(mut self, files: Arc<dyn FileMover>) -> Self {
        self.files = Some(files);
        self
    }

    pub(crate) fn with_scratch(mut self, scratch: Arc<dyn Scratch>) -> Self {
        self.scratch = Some(scratch);
        self
    }

    /// The agents of these manifests beside the built-in ones.
    pub(crate) fn with_agents(mut self, manifests: &[(&str, &str)]) -> Self {
        let file = |(stem, text): &(&str, &str)| FoundAgent {
            path: format!("/home/agents/{stem}.md").into(),
            text: (*text).to_owned(),
            dialect: ManifestDialect::Own,
        };
        let files: Vec<_> = manifests.iter().map(file).collect();
        let loaded = self.agents.with_files(&files, &|_, name| Err(format!("there is no {name}")));
        assert_eq!((loaded.left_out.len(), loaded.notes.len()), (0, 0), "{loaded:?}");
        self.agents = loaded.agents;
        self
    }

    pub(crate) fn with_hooks(self, hooks: impl IntoIterator<Item = Hook>) -> Self {
        self.with_settings(|settings| settings.hooks = hooks.into_iter().collect())
    }

    pub(crate) fn with_telemetry(mut self, telemetry: Arc<dyn Telemetry>) -> Self {
        self.telemetry = Some(telemetry);
        self
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) fn with_max_steps(self, max_steps: u32) -> Self {
        self.with_settings(|settings| settings.max_steps = max_steps)
    }

    pub(crate) fn with_settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// What the next processes ask; the living ones keep theirs.
    pub(crate) fn change_model(&mut self, model: Arc<dyn Model>) {
        self.model = Remembering::new(model);
    }

    pub(crate) fn process(&self) -> Process {
        let mut number = self.processes.lock().unwrap();
        *number += 1;
        let store = MemoryStore::open(self.disk.clone(), *number, *number);
        let ids = Arc::new(Ids::new(self.clock.clone(), *number));
        let traced = |telemetry: &Arc<dyn Telemetry>| -> Arc<dyn Model> {
            let (telemetry, clock) = (telemetry.clone(), self.clock.clone());
            Arc::new(TracedModel::new(self.model.clone(), telemetry, clock, ids.clone()))
        };
        let model = self.telemetry.as_ref().map_or_else(|| self.model.clone() as Arc<dyn Model>, traced);
        let hub = Hub::new(Ports {
            store: Arc::new(store.clone()),
            leases: Arc::new(store.clone()),
            blobs: Arc::new(store.clone()),
            scratch: self.scratch.clone(),
            backend: self.backend.clone(),
            model,
            compaction: self.compaction.clone(),
            tools: family(&self.runs).into(),
            servers: self.servers.clone(),
            surroundings: self.surroundings.clone(),
            projects: self.projects.clone(),
            hooks: Some(self.hooks.clone()),
            files: self.files.clone(),
            pictures: self.pictures.clone(),
            agents: self.agents.clone(),
            telemetry: self.telemetry.clone(),
            clock: self.clock.clone(),
            ids,
            settings: self.settings.clone(),
        });
        Process { hub, store }
    }

    /// A process with one open session.
    pub(crate) async fn session(&self) -> (Process, SessionHandle) {
        let process = self.process();
        let session = process.create().await;
        (process, session)
    }

    /// The chunks of a message that were ever committed, in order.
    pub(crate) fn chunks_of(&self, session: &SessionId, message: &MessageId) -> Vec<Chunk> {
        let disk = self.disk.lock().unwrap();
        let segments = disk.archive.get(session).into_iter().flatten();
        segments.filter(|segment| segment.message_id == *message).flat_map(|s| decode(&s.chunks)).collect()
    }

    /// Parts of the assistant messages of a session, message by message.
    pub(crate) fn answers(&self, session: &SessionId) -> Vec<Vec<Part>> {
        self.messages(session, Role::Assistant)
    }

    pub(crate) fn messages(&self, session: &SessionId, role: Role) -> Vec<Vec<Part>> {
        let disk = self.disk.lock().unwrap();
        let rows = disk.conversation(session).into_iter().filter(|row| row.role == role);
        rows.map(|row| parts(&disk, &row.id)).collect()
    }

    pub(crate) fn prompts(&self, session: &SessionId) -> Vec<String> {
        self.messages(session, Role::User).iter().map(|parts| text_of(parts)).collect()
    }

    /// Everything is at rest: no lease, no live run, each answer in order.
    pub(crate) fn check_rest(&self, session: &SessionId) {
        let disk = self.disk.lock().unwrap();
        let lease = disk.leases.get(session).cloned().unwrap_or_default();
        assert_eq!(lease.owner, None, "the lease is still held");
        assert_eq!(lease.run, None, "a run is still live");
        let answers: Vec<_> = disk
            .conversation(session)
            .into_iter()
            .filter(|row| row.role == Role::Assistant)
            .map(|row| row.id.clone())
            .collect();
        drop(disk);
        for message in answers {
            check_order(&self.chunks_of(session, &message));
        }
    }
}

impl Process {
    pub(crate) async fn create(&self) -> SessionHandle {
        self.hub.create(NewSession { root: "/w".into(), place: Default::default() }).await.unwrap()
    }

    /// SIGKILL, as far as the disk and everybody else can see.
    pub(crate) fn kill(self) {
        self.store.kill();
    }
}

pub(crate) fn check_order(chunks: &[Chunk]) {
    let mut checker = OrderChecker::default();
    for chunk in chunks {
        if let Err(error) = checker.check(chunk) {
            panic!("{error}\n{chunks:#?}");
        }
    }
    checker.finish().unwrap();
}

pub(crate) fn decode(text: &str) -> Vec<Chunk> {
    text.split('\n').map(|line| json::decode(line).unwrap()).collect()
}

pub(crate) fn parts(disk: &Disk, message: &MessageId) -> Vec<Part> {
    disk.parts_of(message).iter().map(|row| serde_json::from_str(&row.data_json).unwrap()).collect()
}

pub(crate) fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

pub(crate) fn tools_of(parts: &[Part]) -> Vec<ToolPart> {
    parts.iter().filter_map(Part::tool).cloned().collect()
}

pub(crate) fn prompt(text: &str) -> Prompt {
    let text = Part::Text { text: text.into(), state: None, provider_metadata: None };
    Prompt { parts: vec![text], ..Prompt::default() }
}

pub(crate) fn prompt_with_id(text: &str, id: &str) -> Prompt {
    Prompt { message_id: Some(MessageId::new(id)), ..prompt(text) }
}

/// The answer of a prompt: `Err` also when the session ended without giving one.
pub(crate) async fn answer(ticket: Ticket) -> Result<TurnOutcome, HubError> {
    let answered = tokio::time::timeout(LONG, ticket.outcome).await.expect("the prompt was never answered");
    answered.unwrap_or_else(|_| Err(HubError::Internal("the session ended".into())))
}

pub(crate) async fn end_of(ticket: Ticket) -> TurnEnd {
    answer(ticket).await.unwrap().end
}

pub(crate) async fn say(session: &SessionHandle, text: &str) -> TurnEnd {
    end_of(session.prompt(prompt(text))).await
}

/// A client that gives these answers at once.
pub(crate) fn answering(answers: &[Answer]) -> Arc<PlannedClient> {
    PlannedClient::new(answers.iter().map(|answer| (Duration::from_millis(5), answer.clone())))
}

/// Takes part with a client and is ready for questions.
pub(crate) async fn join(session: &SessionHandle, client: Arc<dyn Client>) -> Attachment {
    let attachment = session.attach(Some(client), AttachFrom::Now).await.unwrap();
    attachment.participant.ready();
    attachment
}

/// What a reader was shown: (index, message, chunk).
pub(crate) type Shown = Arc<Mutex<Vec<(u64, MessageId, Chunk)>>>;

/// Reads everything live from now on, in a task of its own.
pub(crate) fn read(attachment: Attachment) -> (Shown, tokio::task::JoinHandle<()>) {
    let shown = Shown::default();
    let into = shown.clone();
    let task = tokio::spawn(async move {
        let mut attachment = attachment;
        while let Ok(segment) = attachment.live.next().await {
            let entries = segment.entries();
            into.lock()
                .unwrap()
                .extend(entries.map(|entry| (entry.index, entry.message_id.clone(), entry.chunk.clone())));
        }
    });
    (shown, task)
}

/// The titles of the notices that were shown.
pub(crate) fn notices(shown: &Shown) -> Vec<String> {
    let shown = shown.lock().unwrap();
    let notices = shown.iter().filter_map(|(_, _, chunk)| match chunk {
        Chunk::Data { name, data, .. } if name == "notice" => {
            Some(data["title"].as_str().unwrap().to_owned())
        }
        _ => None,
    });
    notices.collect()
}

/// Waits until the session's state is as wanted.
pub(crate) async fn until(session: &SessionHandle, wanted: impl Fn(&RunState) -> bool) {
    let waiting = async {
        while !wanted(&session.status().await.unwrap().state) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("the state never came");
}

/// Waits until something holds on the disk.
pub(crate) async fn until_stored(world: &World, holds: impl Fn(&Disk) -> bool) {
    let waiting = async {
        while !holds(&world.disk.lock().unwrap()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("it was never stored");
}

pub(crate) async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

/// The states a session went through, from events.
pub(crate) fn states(
    events: &mut tokio::sync::broadcast::Receiver<attache_core::events::HubEvent>,
) -> Vec<RunState> {
    let mut states = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let EventKind::Status(status) = event.kind {
            states.push(status.state);
        }
    }
    states
}
