//! One simulated story: actions in random order at random times, then everything comes to rest.

use std::time::Duration;

use attache_core::hub::{AttachFrom, NewSession};
use attache_core::ids::{MessageId, SessionId};
use attache_core::part::Part;
use attache_core::prompt::{Arrival, Prompt};
use attache_testkit::fakes::random::Random;
use tokio::task::AbortHandle;

use crate::observed::{Observed, PromptLog, SessionOpening};
use crate::world::{Open, Process, SeededClient, World};

/// Longer than anything but a question takes; the store is mended within half a minute.
const REST: Duration = Duration::from_secs(90);

/// Whether somebody takes turns back and brings them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewinds {
    Some,
    None,
}

struct Story {
    world: World,
    random: Random,
    /// Decides about rewinds alone: without them a seed tells the story that it always told.
    rewinding: Option<Random>,
    processes: Vec<Process>,
    started: u64,
    sessions: Vec<SessionId>,
    readers: Vec<AbortHandle>,
    prompted: u64,
    /// Messages sent under an id of ours: (session, id, text).
    sent: Vec<(SessionId, MessageId, String)>,
    faults: bool,
}

pub(crate) async fn tell(seed: u64, rewinds: Rewinds) -> Observed {
    let mut random = Random::new(seed);
    let faults = random.one_in(3);
    let mut story = Story {
        world: World::new(),
        random,
        rewinding: (rewinds == Rewinds::Some).then(|| Random::new(!seed)),
        processes: Vec::new(),
        started: 0,
        sessions: Vec::new(),
        readers: Vec::new(),
        prompted: 0,
        sent: Vec::new(),
        faults,
    };
    story.begin().await;
    for _ in 0..8 + story.random.below(24) {
        story.act().await;
        story.perhaps_rewind();
        let pause = match story.random.below(6) {
            0 | 1 => 0,
            2 | 3 => story.random.below(6),
            4 => story.random.below(40),
            _ => story.random.below(400),
        };
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    story.come_to_rest().await;
    story.world.observe()
}

impl Story {
    async fn begin(&mut self) {
        self.start_process();
        let sessions = 1 + self.random.below(2);
        for _ in 0..sessions {
            let process = &self.processes[0];
            let new = NewSession { root: "/w".into(), place: Default::default() };
            let handle = process.hub.create(new).await.unwrap();
            self.sessions.push(handle.id().clone());
            let opening = next_opening(&self.world, process.number);
            process.open.lock().unwrap().push(Some(Open { handle, opening }));
        }
        self.attach(0, 0).await;
    }

    fn start_process(&mut self) {
        self.started += 1;
        let process = self.world.start(self.started, &mut self.random);
        process.open.lock().unwrap().resize(self.sessions.len(), None);
        self.processes.push(process);
    }

    async fn act(&mut self) {
        if self.processes.is_empty() {
            self.start_process();
        }
        let process = self.random.below(self.processes.len() as u64) as usize;
        let session = self.random.below(self.sessions.len() as u64) as usize;
        let action = self.random.below(40);
        if std::env::var_os("TEST_SIM_SEED").is_some() {
            let now = self.world.clock.now_ms() % 1_000_000;
            let number = self.processes[process].number;
            let lease = self.world.disk.lock().unwrap().leases.get(&self.sessions[session]).cloned();
            eprintln!("{now}: process {number} session {session} action {action} {lease:?}");
        }
        match action {
            0..=13 => self.prompt(process, session),
            14..=17 => self.with_open(process, session, |open| open.handle.cancel()),
            18..=22 => self.attach(process, session).await,
            23 | 24 => self.detach(),
            25 | 26 => self.close(process, session),
            27 | 28 => self.open(process, session),
            29 => self.kill(process),
            30 if self.processes.len() < 2 => self.start_process(),
            31 => self.shut_down(process).await,
            32 | 33 => self.cancel_one(process, session),
            34 | 35 => self.choose(process, session),
            36 => self.with_open(process, session, |open| open.handle.notice("info", "x".into(), None)),
            37..=39 if self.faults => {
                let nth = self.random.below(6);
                self.processes[process].store.fail_commit(nth);
            }
            _ => {}
        }
    }

    fn opened(&self, process: usize, session: usize) -> Option<Open> {
        self.processes[process].open.lock().unwrap().get(session).cloned().flatten()
    }

    fn with_open(&self, process: usize, session: usize, act: impl FnOnce(&Open)) {
        match self.opened(process, session) {
            Some(open) => act(&open),
            None => self.open(process, session),
        }
    }

    fn prompt(&mut self, process: usize, session: usize) {
        let Some(open) = self.opened(process, session) else { return self.open(process, session) };
        let id = self.sessions[session].clone();
        let of_session: Vec<_> = self.sent.iter().filter(|(sent_in, ..)| *sent_in == id).cloned().collect();
        let again = !of_session.is_empty() && self.random.one_in(6);
        let (message_id, text) = if again {
            let (_, message_id, text) = self.random.pick(&of_session).clone();
            (Some(message_id), text)
        } else {
            self.prompted += 1;
            let text = format!("prompt {}", self.prompted);
            let message_id = self.random.one_in(2).then(|| MessageId::new(format!("msg_{}", self.prompted)));
            if let Some(message_id) = &message_id {
                self.sent.push((id.clone(), message_id.clone(), text.clone()));
            }
            (message_id, text)
        };
        let part = Part::Text { text: text.clone(), state: None, provider_metadata: None };
        let arrival = if self.random.one_in(5) { Arrival::Steers } else { Arrival::Waits };
        let prompt = Prompt { parts: vec![part], message_id, arrival, ..Prompt::default() };
        let ticket = open.handle.prompt(prompt);
        let log = PromptLog {
            session: id,
            opening: open.opening,
            text,
            arrival,
            resent: again,
            killed: false,
            left: false,
            answers: Vec::new(),
        };
        self.world.watch(ticket, log);
    }

    async fn attach(&mut self, process: usize, session: usize) {
        let Some(open) = self.opened(process, session) else { return self.open(process, session) };
        let from = *self.random.pick(&[AttachFrom::Beginning, AttachFrom::LiveRun, AttachFrom::Now]);
        let client = SeededClient::new(&self.world, self.random.number());
        let attached = open.handle.attach(Some(client), from);
        // A store that fails keeps somebody from attaching; nothing may hang, though.
        let Ok(attached) = tokio::time::timeout(REST, attached).await else { panic!("attach hangs") };
        if let Ok(attachment) = attached {
            let random = Random::new(self.random.number());
            let session = self.sessions[session].clone();
            self.readers.push(self.world.reader(session, open.opening, attachment, random));
        }
    }

    fn detach(&mut self) {
        if !self.readers.is_empty() {
            let place = self.random.below(self.readers.len() as u64) as usize;
            self.readers.swap_remove(place).abort();
        }
    }

    fn open(&self, process: usize, session: usize) {
        let process = &self.processes[process];
        let (hub, open, id) = (process.hub.clone(), process.open.clone(), self.sessions[session].clone());
        let opening = next_opening(&self.world, process.number);
        tokio::spawn(async move {
            if let Ok(handle) = hub.open(&id).await {
                open.lock().unwrap()[session].get_or_insert(Open { handle, opening });
            }
        });
    }

    fn close(&mut self, process: usize, session: usize) {
        let open = self.processes[process].open.lock().unwrap()[session].take();
        if let Some(open) = open {
            self.leave(open.opening);
            // Whoever opened it at the same time shares the task that ends now.
            let closed = (open.opening.process, self.sessions[session].clone());
            self.world.records.lock().unwrap().closed.insert(closed);
            tokio::spawn(async move { drop(open.handle.close().await) });
        }
    }

    fn leave(&self, opening: SessionOpening) {
        let mut records = self.world.records.lock().unwrap();
        records.prompts.iter_mut().filter(|log| log.opening == opening).for_each(|log| log.left = true);
        records.readers.iter_mut().filter(|log| log.opening == opening).for_each(|log| log.whole = false);
    }

    fn kill(&mut self, process: usize) {
        let process = self.processes.swap_remove(process);
        process.store.kill();
        let mut records = self.world.records.lock().unwrap();
        let number = process.number;
        records
            .prompts
            .iter_mut()
            .filter(|log| log.opening.process == number)
            .for_each(|log| log.killed = true);
        records
            .readers
            .iter_mut()
            .filter(|log| log.opening.process == number)
            .for_each(|log| log.whole = false);
    }

    async fn shut_down(&mut self, process: usize) {
        let process = self.processes.swap_remove(process);
        let open: Vec<_> = process.open.lock().unwrap().iter().flatten().cloned().collect();
        for open in open {
            self.leave(open.opening);
        }
        let down = tokio::time::timeout(REST, process.hub.shutdown()).await;
        assert!(down.is_ok(), "shutdown hangs");
        process.store.kill();
    }

    fn cancel_one(&mut self, process: usize, session: usize) {
        let ids: Vec<_> = self.sent.iter().map(|(_, id, _)| id.clone()).collect();
        if ids.is_empty() {
            return;
        }
        let id = self.random.pick(&ids).clone();
        if self.random.one_in(2) {
            self.with_open(process, session, |open| open.handle.cancel_prompt(id));
        } else {
            self.with_open(process, session, |open| {
                let handle = open.handle.clone();
                tokio::spawn(async move { drop(handle.cancel_queued(id).await) });
            });
        }
    }

    /// To any prompt that we know, whether it waits, runs or is hidden already; or what was rewound last comes
    /// back.
    fn perhaps_rewind(&mut self) {
        let ids: Vec<_> = self.sent.iter().map(|(session, id, _)| (session.clone(), id.clone())).collect();
        let Some(random) = self.rewinding.as_mut().filter(|_| !ids.is_empty() && !self.processes.is_empty())
        else {
            return;
        };
        if !random.one_in(6) {
            return;
        }
        let (session, id) = random.pick(&ids).clone();
        let (goes_back, process) = (!random.one_in(3), random.below(self.processes.len() as u64) as usize);
        let session = self.sessions.iter().position(|known| *known == session).unwrap_or_default();
        let Some(open) = self.opened(process, session) else { return };
        tokio::spawn(async move {
            match goes_back {
                true => drop(open.handle.rewind(None, id).await),
                false => drop(open.handle.unrewind(None).await),
            }
        });
    }

    fn choose(&mut self, process: usize, session: usize) {
        let agent = self.random.pick(&["build", "build", "plan", "nothing"]).to_string();
        self.with_open(process, session, |open| {
            let handle = open.handle.clone();
            tokio::spawn(async move { drop(handle.set_mode(agent).await) });
        });
    }

    /// Faults end, somebody opens every session, whatever hangs is cancelled; then everything has time to
    /// settle.
    async fn come_to_rest(&mut self) {
        if self.processes.is_empty() {
            self.start_process();
        }
        for process in &self.processes {
            process.store.fail_commit(u64::MAX);
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        for process in 0..self.processes.len() {
            for session in 0..self.sessions.len() {
                // Settles what a process left that died unseen.
                self.open(process, session);
            }
        }
        for round in 0..40 {
            for process in 0..self.processes.len() {
                for session in 0..self.sessions.len() {
                    self.with_open(process, session, |open| open.handle.cancel());
                }
            }
            tokio::time::sleep(Duration::from_secs(if round < 30 { 1 } else { 10 })).await;
        }
        tokio::time::sleep(REST).await;
    }
}

fn next_opening(world: &World, process: u64) -> SessionOpening {
    let mut records = world.records.lock().unwrap();
    records.openings += 1;
    SessionOpening { process, number: records.openings }
}
