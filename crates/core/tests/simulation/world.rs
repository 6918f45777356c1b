//! The processes, clients and readers of one simulation, and the records they keep.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_core::agents::Agents;
use attache_core::chunk::json::encode_into;
use attache_core::hub::{Attachment, Hub, ModelStandIn, People, Ports, SessionHandle, Settings, Ticket};
use attache_core::ids::{CallId, Ids, SessionId};
use attache_core::ports::client::{Answer, Ask, Client};
use attache_core::ports::{BoxFuture, Clock};
use attache_core::turn::NativeBackend;
use attache_core::watchdog::{Approval, Containment};
use attache_testkit::fakes::clock::TokioClock;
use attache_testkit::fakes::disk::Disk;
use attache_testkit::fakes::model::SeededModel;
use attache_testkit::fakes::random::Random;
use attache_testkit::fakes::store::MemoryStore;
use attache_testkit::fakes::tools::{Runs, family};

use crate::observed::{Answered, Observed, PromptLog, ReaderLog, Seen, SessionOpening};

pub(crate) struct World {
    pub(crate) disk: Arc<Mutex<Disk>>,
    pub(crate) runs: Runs,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) records: Arc<Mutex<Records>>,
}

/// What is written down while the simulation runs.
#[derive(Default)]
pub(crate) struct Records {
    pub(crate) readers: Vec<ReaderLog>,
    pub(crate) prompts: Vec<PromptLog>,
    pub(crate) allowed: BTreeSet<CallId>,
    pub(crate) always: BTreeSet<(SessionId, String)>,
    pub(crate) openings: u64,
    /// Sessions that were closed in a process at some time.
    pub(crate) closed: BTreeSet<(u64, SessionId)>,
}

pub(crate) struct Process {
    pub(crate) number: u64,
    pub(crate) hub: Hub,
    pub(crate) store: MemoryStore,
    /// Open sessions, by place in the list of sessions.
    pub(crate) open: Arc<Mutex<Vec<Option<Open>>>>,
}

#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) handle: SessionHandle,
    pub(crate) opening: SessionOpening,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            disk: Arc::default(),
            runs: Runs::default(),
            clock: Arc::new(TokioClock::start()),
            records: Arc::default(),
        }
    }

    pub(crate) fn start(&self, number: u64, random: &mut Random) -> Process {
        let store = MemoryStore::open(self.disk.clone(), number, random.number());
        let hub = Hub::new(Ports {
            store: Arc::new(store.clone()),
            leases: Arc::new(store.clone()),
            blobs: Arc::new(store.clone()),
            scratch: None,
            backend: Arc::new(NativeBackend),
            model: SeededModel::new(random.number()),
            compaction: None,
            tools: family(&self.runs).into(),
            files: None,
            servers: None,
            surroundings: None,
            projects: None,
            hooks: None,
            pictures: None,
            telemetry: None,
            agents: Agents::builtin(),
            clock: self.clock.clone(),
            ids: Arc::new(Ids::new(self.clock.clone(), random.number())),
            settings: Settings {
                model: None,
                agent: "build".into(),
                small_model: None,
                max_steps: 6,
                scratch: "/scratch".into(),
                guarded: Arc::default(),
                approval: Approval::Ask,
                rules: Arc::default(),
                hooks: Arc::default(),
                containment: Containment::None.into(),
                people: People::Present,
                stand_in: ModelStandIn::Allowed,
                platform: "simulated".into(),
            },
        });
        Process { number, hub, store, open: Arc::default() }
    }

    pub(crate) fn observe(self) -> Observed {
        let records = std::mem::take(&mut *self.records.lock().unwrap());
        Observed {
            disk: self.disk.lock().unwrap().clone(),
            readers: records.readers,
            prompts: records.prompts,
            runs: self.runs.all(),
            allowed: records.allowed,
            always: records.always,
            closed: records.closed,
        }
    }

    /// Waits for the answer of a prompt and writes it down.
    pub(crate) fn watch(&self, ticket: Ticket, log: PromptLog) {
        let records = self.records.clone();
        let place = {
            let mut records = records.lock().unwrap();
            records.prompts.push(log);
            records.prompts.len() - 1
        };
        tokio::spawn(async move {
            let answer = match ticket.outcome.await {
                Ok(Ok(outcome)) => Answered::Outcome(outcome),
                Ok(Err(error)) => Answered::Error(error.to_string()),
                Err(_) => Answered::Ended,
            };
            records.lock().unwrap().prompts[place].answers.push(answer);
        });
    }

    /// Reads as a client does, with pauses, and writes down what it is shown. Aborting the task is leaving.
    pub(crate) fn reader(
        &self,
        session: SessionId,
        opening: SessionOpening,
        attachment: Attachment,
        mut random: Random,
    ) -> tokio::task::AbortHandle {
        let records = self.records.clone();
        let place = {
            let log = ReaderLog {
                session,
                opening,
                start: attachment.live.cursor(),
                replayed: Vec::new(),
                seen: Vec::new(),
                whole: true,
            };
            let mut records = records.lock().unwrap();
            records.readers.push(log);
            records.readers.len() - 1
        };
        // Made here: a task that is aborted before its first step has left too.
        let leaving = Leaving { records: records.clone(), place };
        let task = tokio::spawn(async move {
            let Attachment { replay, mut live, participant, .. } = attachment;
            if let Some(mut replay) = replay {
                while let Ok(Some(segment)) = replay.next().await {
                    let mut records = records.lock().unwrap();
                    records.readers[place].replayed.push(segment.message_id.clone());
                }
            }
            if !random.one_in(5) {
                participant.ready();
            }
            while let Ok(segment) = live.next().await {
                for entry in segment.entries() {
                    let mut chunk = String::new();
                    encode_into(entry.chunk, &mut chunk).unwrap();
                    let seen = Seen { index: entry.index, message_id: entry.message_id.clone(), chunk };
                    records.lock().unwrap().readers[place].seen.push(seen);
                }
                if random.one_in(4) {
                    tokio::time::sleep(Duration::from_millis(random.below(60))).await;
                }
            }
            drop(leaving);
        });
        task.abort_handle()
    }
}

/// A reader that stops before the end has not seen the whole.
struct Leaving {
    records: Arc<Mutex<Records>>,
    place: usize,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(log) = self.records.lock().unwrap().readers.get_mut(self.place) {
            log.whole = false;
        }
    }
}

/// Answers as its seed decides, after a while or never.
#[derive(Debug)]
pub(crate) struct SeededClient {
    random: Mutex<Random>,
    records: RecordsHandle,
}

#[derive(Clone)]
struct RecordsHandle(Arc<Mutex<Records>>);

impl std::fmt::Debug for RecordsHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("records")
    }
}

impl SeededClient {
    pub(crate) fn new(world: &World, seed: u64) -> Arc<Self> {
        let records = RecordsHandle(world.records.clone());
        Arc::new(Self { random: Mutex::new(Random::new(seed)), records })
    }
}

impl Client for SeededClient {
    fn ask(&self, ask: Arc<Ask>) -> BoxFuture<'static, Answer> {
        let (choice, pause) = {
            let mut random = self.random.lock().unwrap();
            (random.below(10), Duration::from_millis(random.below(80)))
        };
        let records = self.records.clone();
        Box::pin(async move {
            tokio::time::sleep(pause).await;
            let answer = match choice {
                0..=3 => Answer::AllowOnce,
                4 => Answer::AllowAlways,
                5 | 6 => Answer::RejectOnce,
                7 => Answer::Cancelled,
                8 => Answer::Gone,
                _ => std::future::pending().await,
            };
            let mut records = records.0.lock().unwrap();
            if matches!(answer, Answer::AllowOnce | Answer::AllowAlways) {
                records.allowed.insert(ask.call_id.clone());
            }
            if answer == Answer::AllowAlways {
                let path = ask.input.get("path").and_then(|path| path.as_str()).unwrap_or_default();
                records.always.insert((ask.session_id.clone(), path.to_string()));
            }
            answer
        })
    }
}
