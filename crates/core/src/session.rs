//! One task owns one session: it admits prompts, starts turns, asks people and answers callers. It never runs a model itself.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::choices::Chosen;
use crate::events::{Event, EventKind, RunState, Status};
use crate::hub::{self, AttachFrom, Attachment, HubError, QueuedMessage, TurnOutcome};
use crate::ids::{MessageId, SessionId};
use crate::journal::Journal;
use crate::ports::model::ThoughtLevel;
use crate::ports::store::{Epoch, LiveRun, ModelRef, Owner, SessionPatch, SessionRecord, SessionRow};
use crate::ports::{Client, Delegate};
use crate::prompt::Prompt;
use crate::session::approval::InForce;
use crate::session::ask::{Asking, Seated};
use crate::session::lease::Unsettled;
use crate::session::run::Running;
use crate::session::setting::Setting;
use crate::session::surroundings::Uncommitted;
use crate::session::title::Titling;
use crate::turn::usage::Spent;
use crate::watchdog::{Approval, Rules};

mod admit;
pub(crate) mod approval;
mod ask;
mod attach;
mod choose;
mod end;
pub(crate) mod history;
mod lease;
mod leave;
pub(crate) mod queue;
mod recover;
mod remains;
mod run;
pub(crate) mod setting;
mod surroundings;
mod title;

/// What the client of a prompt does itself for its turn, if anything.
pub(crate) type ClientSide = Option<Arc<dyn Delegate>>;

type Reply<T> = oneshot::Sender<Result<T, HubError>>;

/// Everything a session can be told. Handled one after the other, in the order given.
#[derive(Debug)]
pub(crate) enum Command {
    /// Settle what an earlier owner left behind, if anything.
    Recover(Reply<()>),
    /// The same for a session that from now on has exactly these directories beside its root.
    WorkIn {
        additional: Vec<PathBuf>,
        reply: Reply<()>,
    },
    Prompt {
        client: Option<Arc<dyn Client>>,
        prompt: Prompt,
        accept: oneshot::Sender<MessageId>,
        answer: Reply<TurnOutcome>,
    },
    Cancel,
    CancelPrompt(MessageId),
    Attach {
        client: Option<Arc<dyn Client>>,
        from: AttachFrom,
        reply: Reply<Attachment>,
    },
    SeatReady(u64),
    SeatLeft(u64),
    SetMode {
        agent: String,
        reply: Reply<Chosen>,
    },
    SetModel {
        model: ModelRef,
        reply: Reply<Chosen>,
    },
    SetThought {
        level: Option<ThoughtLevel>,
        reply: Reply<Chosen>,
    },
    SetApproval {
        approval: Approval,
        reply: Reply<Chosen>,
    },
    /// What can be chosen has become another.
    ChoicesChanged,
    Patch {
        patch: Box<SessionPatch>,
        reply: Reply<()>,
    },
    Status(oneshot::Sender<Status>),
    QueueList(Reply<Vec<QueuedMessage>>),
    QueueCancel {
        message_id: MessageId,
        reply: Reply<()>,
    },
    QueueEdit {
        message_id: MessageId,
        prompt: Prompt,
        reply: Reply<()>,
    },
    Notice {
        severity: &'static str,
        title: String,
        description: Option<String>,
    },
    Close(Reply<()>),
    Shutdown(Reply<()>),
}

/// A message that waits for its turn.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) message_id: MessageId,
    pub(crate) queued_at: i64,
    /// In memory only: it is gone after a restart, as the protocol wants it.
    pub(crate) runtime_context: Vec<(Option<String>, String)>,
    /// Of whoever sent it; gone after a restart as well.
    pub(crate) client: ClientSide,
}

pub(crate) struct Session {
    pub(crate) hub: Arc<hub::Shared>,
    pub(crate) id: SessionId,
    pub(crate) row: SessionRow,
    pub(crate) spent: Spent,
    pub(crate) rules: Rules,
    pub(crate) in_force: InForce,
    /// The roots beside the first, as the latest new, load or resume in this process named them; those of the row until then.
    pub(crate) additional: Option<Vec<PathBuf>>,
    /// Directories outside the roots, granted by "always" answers.
    pub(crate) granted: Vec<PathBuf>,
    pub(crate) journal: Journal,
    /// The lease, while it is ours.
    pub(crate) lease: Option<Epoch>,
    /// The epoch of what is in memory; `None` when that may be stale whatever the epoch says.
    pub(crate) known: Option<Epoch>,
    /// The store could not be brought into order; tried again by itself.
    pub(crate) unsettled: Unsettled,
    pub(crate) last_seq: i64,
    pub(crate) waiting: VecDeque<Queued>,
    /// Waiting messages whose callers were told that they failed. They must not run later: they are taken from the stored
    /// queue as soon as the store can be written again.
    pub(crate) withdrawn: HashSet<MessageId>,
    /// Who waits for the end of a message's turn.
    pub(crate) callers: HashMap<MessageId, Vec<Reply<TurnOutcome>>>,
    pub(crate) running: Option<Running>,
    pub(crate) asking: Option<Asking>,
    /// A turn of another process that we follow through the log.
    pub(crate) following: Option<LiveRun>,
    /// Kept while agent and model stay the same.
    pub(crate) setting: Option<Arc<Setting>>,
    pub(crate) uncommitted: Uncommitted,
    pub(crate) titling: Titling,
    /// The model that is missed, once everybody was told so.
    pub(crate) missed: Option<ModelRef>,
    /// Digest of the system prompt that is known to be stored.
    pub(crate) stored_prompt: Option<String>,
    pub(crate) seats: BTreeMap<u64, Seated>,
    pub(crate) next_seat: u64,
    pub(crate) status: Status,
    /// For the seats we hand out.
    pub(crate) commands: mpsc::WeakUnboundedSender<Command>,
}

/// What the task does after a command.
#[derive(PartialEq, Eq)]
enum Then {
    GoOn,
    Stop,
}

/// Starts the task of a session; it ends when the session is closed.
pub(crate) fn start(hub: Arc<hub::Shared>, record: SessionRecord) -> mpsc::UnboundedSender<Command> {
    let (commands, inbox) = mpsc::unbounded_channel();
    let parts = &hub.parts;
    let id = record.row.id.clone();
    let journal = Journal::new(
        id.clone(),
        record.next_index,
        parts.store.clone(),
        parts.clock.clone(),
        parts.ids.clone(),
    );
    let mut session = Session {
        id,
        rules: Rules::default(),
        in_force: InForce::default(),
        additional: None,
        granted: Vec::new(),
        row: record.row.clone(),
        spent: Spent::default(),
        journal,
        lease: None,
        known: None,
        last_seq: 0,
        unsettled: Unsettled::default(),
        waiting: VecDeque::new(),
        withdrawn: HashSet::new(),
        callers: HashMap::new(),
        running: None,
        asking: None,
        following: None,
        setting: None,
        uncommitted: Uncommitted::default(),
        titling: Titling::default(),
        missed: None,
        stored_prompt: None,
        seats: BTreeMap::new(),
        next_seat: 1,
        status: Status::idle(),
        commands: commands.downgrade(),
        hub,
    };
    session.adopt(record);
    tokio::spawn(session.live(inbox));
    commands
}

impl Session {
    async fn live(mut self, mut inbox: mpsc::UnboundedReceiver<Command>) {
        loop {
            let mending = self.mending();
            tokio::select! {
                biased;
                command = inbox.recv() => {
                    let Some(command) = command else { break };
                    if self.obey(command).await == Then::Stop {
                        break;
                    }
                }
                returned = Running::returned(&mut self.running) => self.turn_returned(returned).await,
                answer = Asking::answered(&mut self.asking) => self.take_answer(answer).await,
                made = self.titling.made() => self.take_title(made).await,
                () = lease::changed(&self.hub, self.following.is_some()) => self.follow().await,
                () = lease::pause(mending) => self.mend().await,
            }
        }
        // Whoever still waits learns that the session is closed: their channel ends.
    }

    async fn obey(&mut self, command: Command) -> Then {
        match command {
            Command::Recover(reply) => {
                let recovered = self.recover().await;
                answer(reply, recovered);
            }
            Command::WorkIn { additional, reply } => {
                let works = self.work_in(additional).await;
                answer(reply, works);
            }
            Command::Prompt { client, prompt, accept, answer } => {
                let client = client.and_then(|client| client.delegate());
                self.admit(prompt, client, accept, answer).await;
            }
            Command::Cancel => self.cancel().await,
            Command::CancelPrompt(message_id) => self.cancel_prompt(message_id).await,
            Command::Attach { client, from, reply } => {
                let attached = self.attach(client, from).await;
                answer(reply, attached);
            }
            Command::SeatReady(number) => self.seat_ready(number),
            Command::SeatLeft(number) => self.seat_left(number),
            Command::SetMode { agent, reply } => {
                let chosen = self.set_mode(agent).await;
                answer(reply, chosen);
            }
            Command::SetModel { model, reply } => {
                let chosen = self.set_model(model).await;
                answer(reply, chosen);
            }
            Command::SetThought { level, reply } => {
                let chosen = self.set_thought(level).await;
                answer(reply, chosen);
            }
            Command::SetApproval { approval, reply } => {
                let chosen = self.set_approval(approval).await;
                answer(reply, chosen);
            }
            Command::ChoicesChanged => self.tell_choices().await,
            Command::Patch { patch, reply } => {
                let patched = self.patch(*patch).await;
                answer(reply, patched);
            }
            Command::Status(reply) => drop(reply.send(self.current_status())),
            Command::QueueList(reply) => {
                let listed = self.queue_list().await;
                answer(reply, listed);
            }
            Command::QueueCancel { message_id, reply } => {
                let cancelled = self.queue_cancel(&message_id).await;
                answer(reply, cancelled);
            }
            Command::QueueEdit { message_id, prompt, reply } => {
                let edited = self.queue_edit(&message_id, prompt).await;
                answer(reply, edited);
            }
            Command::Notice { severity, title, description } => {
                self.notice(severity, title, description).await
            }
            Command::Close(reply) => {
                self.close().await;
                answer(reply, Ok(()));
                return Then::Stop;
            }
            Command::Shutdown(reply) => {
                self.shut_down().await;
                answer(reply, Ok(()));
                return Then::Stop;
            }
        }
        Then::GoOn
    }

    /// Takes what the store says as the state of this session.
    pub(crate) fn adopt(&mut self, record: SessionRecord) {
        self.rules = Rules::from_json(&record.row.permissions);
        self.granted = record.row.metadata.granted_directories();
        self.spent.set(record.row.totals.cost_usd);
        self.row = record.row;
        self.enforce_approval();
        self.last_seq = record.last_seq;
        // While somebody holds the lease more may be written under the same epoch.
        self.known = (record.owner == Owner::Nobody).then_some(record.epoch);
        self.hub.histories.forget(&self.id);
        // It was made from the row as it was.
        self.setting = None;
    }

    fn current_status(&self) -> Status {
        let retrying = self.running.as_ref().and_then(Running::retrying);
        Status { state: retrying.unwrap_or_else(|| self.status.state.clone()), ..self.status.clone() }
    }

    pub(crate) fn set_state(&mut self, state: RunState) {
        let now = self.hub.parts.clock.now_ms();
        let message_id = self.live_run().map(|live| live.user_message_id.clone());
        self.status = Status { started_at: message_id.is_some().then_some(now), message_id, state };
        self.publish(EventKind::Status(self.status.clone()));
    }

    pub(crate) fn publish(&self, kind: EventKind) {
        // Nobody listening is fine.
        drop(self.hub.events.send(Event { session_id: self.id.clone(), kind }));
    }

    /// The turn under way, here or elsewhere.
    pub(crate) fn live_run(&self) -> Option<&LiveRun> {
        let running = self.running.as_ref().map(|running| &running.live);
        running.or(self.asking.as_ref().map(|asking| &asking.live)).or(self.following.as_ref())
    }

    pub(crate) fn is_active(&self) -> bool {
        self.running.is_some() || self.asking.is_some()
    }
}

fn answer<T>(reply: Reply<T>, result: Result<T, HubError>) {
    // A caller that went away needs no answer.
    drop(reply.send(result));
}
