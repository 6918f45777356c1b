//! One task owns one session: it admits prompts, starts turns, asks people and answers callers. It never runs a model itself.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::choices::Chosen;
use crate::events::{Event, EventKind, RunState, Status};
use crate::hub::{self, AttachFrom, Attachment, HubError, QueuedMessage, TurnOutcome};
use crate::ids::{MessageId, SessionId};
use crate::journal::Journal;
use crate::ports::model::ThoughtLevel;
use crate::ports::store::{ModelRef, SessionPatch, SessionRecord, SessionRow};
use crate::ports::{Client, Delegate};
use crate::prompt::Prompt;
use crate::session::activity::{Activity, Happened};
use crate::session::approval::InForce;
use crate::session::lease::LeaseState;
use crate::session::run::Running;
use crate::session::seats::Seats;
use crate::session::setting::Setting;
use crate::session::surroundings::Uncommitted;
use crate::session::title::Titling;
use crate::session::waiting::Queue;
use crate::turn::usage::Spent;
use crate::watchdog::{Approval, Rules};

mod activity;
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
mod seats;
pub(crate) mod setting;
mod surroundings;
mod title;
mod waiting;

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

pub(crate) struct Session {
    hub: Arc<hub::Shared>,
    id: SessionId,
    row: SessionRow,
    spent: Spent,
    rules: Rules,
    in_force: InForce,
    /// The roots beside the first, as the latest new, load or resume in this process named them; those of the row until then.
    additional: Option<Vec<PathBuf>>,
    /// Directories outside the roots, granted by "always" answers.
    granted: Vec<PathBuf>,
    journal: Journal,
    lease: LeaseState,
    last_seq: i64,
    queue: Queue,
    activity: Activity,
    /// Kept while agent and model stay the same.
    setting: Option<Arc<Setting>>,
    uncommitted: Uncommitted,
    titling: Titling,
    /// The model that is missed, once everybody was told so.
    missed: Option<ModelRef>,
    /// Digest of the system prompt that is known to be stored.
    stored_prompt: Option<String>,
    seats: Seats,
    status: Status,
    /// For the seats we hand out.
    commands: mpsc::WeakUnboundedSender<Command>,
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
        lease: LeaseState::of(&record),
        last_seq: 0,
        queue: Queue::default(),
        activity: Activity::default(),
        setting: None,
        uncommitted: Uncommitted::default(),
        titling: Titling::default(),
        missed: None,
        stored_prompt: None,
        seats: Seats::default(),
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
            let (mending, following) = (self.mending(), self.activity.is_following());
            tokio::select! {
                biased;
                command = inbox.recv() => {
                    let Some(command) = command else { break };
                    if self.obey(command).await == Then::Stop {
                        break;
                    }
                }
                happened = self.activity.next() => match happened {
                    Happened::Returned(returned) => self.turn_returned(returned).await,
                    Happened::Answered(seat, answer) => self.take_answer(seat, answer).await,
                },
                made = self.titling.made() => self.take_title(made).await,
                () = lease::changed(&self.hub, following) => self.follow().await,
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
        self.hub.histories.forget(&self.id);
        // It was made from the row as it was.
        self.setting = None;
    }

    fn current_status(&self) -> Status {
        let retrying = self.activity.running().and_then(Running::retrying);
        Status { state: retrying.unwrap_or_else(|| self.status.state.clone()), ..self.status.clone() }
    }

    pub(crate) fn set_state(&mut self, state: RunState) {
        let now = self.hub.parts.clock.now_ms();
        let message_id = self.activity.live_run().map(|live| live.user_message_id.clone());
        self.status = Status { started_at: message_id.is_some().then_some(now), message_id, state };
        self.publish(EventKind::Status(self.status.clone()));
    }

    pub(crate) fn publish(&self, kind: EventKind) {
        // Nobody listening is fine.
        drop(self.hub.events.send(Event { session_id: self.id.clone(), kind }));
    }
}

fn answer<T>(reply: Reply<T>, result: Result<T, HubError>) {
    // A caller that went away needs no answer.
    drop(reply.send(result));
}
