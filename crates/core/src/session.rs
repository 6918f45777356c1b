//! One task owns one session: it admits prompts, starts turns, asks people and answers callers. It never runs a
//! model itself.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::events::{EventKind, HubEvent, RunState, Runs, SessionStatus};
use crate::hub::{self, HubError};
use crate::ids::SessionId;
use crate::journal::Journal;
use crate::ports::Delegate;
use crate::ports::store::{SessionRecord, SessionRow};
use crate::session::activity::{Activity, Happened};
use crate::session::authority::SessionAuthority;
use crate::session::children::Children;
pub(crate) use crate::session::command::SessionCommand;
use crate::session::foreign::ToldAgent;
use crate::session::history::ConversationState;
use crate::session::inbox::Inbox;
use crate::session::knowledge::SessionKnowledge;
use crate::session::lease::LeaseState;
use crate::session::lineage::Lineage;
use crate::session::measures::TurnMeasures;
use crate::session::participants::Participants;
use crate::session::project::SessionProject;
use crate::session::run::Running;
use crate::session::servers::OwnServers;
use crate::session::setup::{KeptSetup, NamedDirectories};
use crate::session::surroundings::UntoldNews;
use crate::session::title::Titling;
use crate::session::waiting::PromptQueue;
use crate::snapshot::SnapshotShelf;
use crate::toolbox::Toolbox;

mod activity;
mod admit;
mod approval;
mod ask;
mod attach;
pub(crate) mod authority;
mod child_questions;
mod children;
mod choose;
mod command;
pub(crate) mod commands;
pub(crate) mod consent;
mod end;
mod foreign;
pub(crate) mod history;
mod hooks;
mod inbox;
pub(crate) mod inspection;
mod knowledge;
mod lease;
mod leave;
mod lineage;
mod measures;
mod participants;
mod project;
pub(crate) mod queue;
mod recover;
mod rewind;
mod rewound_calls;
mod run;
mod server_prompts;
pub(crate) mod servers;
mod setup;
mod surroundings;
mod take_in;
pub(crate) mod title;
pub(crate) mod turning_back;
mod waiting;

/// The client of a prompt, if it does some work for its turn itself.
pub(crate) type ClientSide = Option<Arc<dyn Delegate>>;

type Reply<T> = oneshot::Sender<Result<T, HubError>>;

pub(crate) struct Session {
    hub: Arc<hub::Shared>,
    id: SessionId,
    row: SessionRow,
    measures: TurnMeasures,
    authority: SessionAuthority,
    lineage: Lineage,
    directories: NamedDirectories,
    journal: Journal,
    lease: LeaseState,
    conversation: ConversationState,
    queue: PromptQueue,
    activity: Activity,
    children: Children,
    toolbox: Toolbox,
    servers: OwnServers,
    knowledge: SessionKnowledge,
    project: SessionProject,
    setup: KeptSetup,
    news: UntoldNews,
    foreign: ToldAgent,
    titling: Titling,
    /// Keeps contents of files; `None` on a host without snapshots.
    snapshots: Option<Arc<SnapshotShelf>>,
    participants: Participants,
    status: SessionStatus,
    inbox: Inbox,
}

/// What the task does after a command.
#[derive(PartialEq, Eq)]
enum Then {
    GoOn,
    Stop,
}

/// Starts the task of a session; it ends when the session is closed.
pub(crate) fn start(hub: Arc<hub::Shared>, record: SessionRecord) -> mpsc::UnboundedSender<SessionCommand> {
    let (commands, arriving) = mpsc::unbounded_channel();
    let ports = &hub.ports;
    let id = record.row.id.clone();
    let journal = Journal::new(
        id.clone(),
        record.next_index,
        ports.store.clone(),
        ports.clock.clone(),
        ports.ids.clone(),
    );
    let shelf = || Arc::new(SnapshotShelf::new(ports.blobs.clone(), &id));
    let snapshots = ports.files.as_ref().map(|_| shelf());
    let mut session = Session {
        id,
        measures: TurnMeasures::default(),
        authority: SessionAuthority::default(),
        lineage: Lineage::default(),
        directories: NamedDirectories::default(),
        row: record.row.clone(),
        journal,
        lease: LeaseState::of(&record),
        conversation: ConversationState::default(),
        queue: PromptQueue::default(),
        activity: Activity::default(),
        children: Children::default(),
        toolbox: Toolbox::new(&ports.tools),
        servers: OwnServers::default(),
        knowledge: SessionKnowledge::default(),
        project: SessionProject::default(),
        setup: KeptSetup::default(),
        news: UntoldNews::default(),
        foreign: ToldAgent::default(),
        titling: Titling::default(),
        snapshots,
        participants: Participants::default(),
        status: SessionStatus::idle(),
        inbox: Inbox::new(commands.downgrade(), arriving),
        hub,
    };
    session.adopt(record);
    session.publish_authority();
    tokio::spawn(session.live());
    commands
}

impl Session {
    async fn live(mut self) {
        loop {
            let mending = self.mending();
            let followed = self.activity.is_following().then(|| self.hub.clone());
            tokio::select! {
                biased;
                command = self.inbox.next() => {
                    let Some(command) = command else { break };
                    if self.obey(command).await == Then::Stop {
                        break;
                    }
                }
                happened = self.activity.next() => self.take_note(happened).await,
                (call_id, number, answer) = self.children.questions.answered() => {
                    self.child_question_answered(&call_id, number, answer).await;
                }
                made = self.titling.made() => self.take_title(made).await,
                found = self.knowledge.found() => self.take_knowledge(found),
                () = lease::changed(followed) => self.follow().await,
                () = lease::pause(mending) => self.mend().await,
            }
            if self.is_done_with() {
                self.close().await;
                break;
            }
        }
        // Callers that still wait learn that the session is closed, because their channels end.
    }

    async fn take_note(&mut self, happened: Happened) {
        match happened {
            Happened::Returned(returned) => self.turn_returned(returned).await,
            Happened::Answered(seat, answer) => self.take_answer(seat, answer).await,
        }
    }

    async fn obey(&mut self, command: SessionCommand) -> Then {
        match command {
            SessionCommand::Recover(reply) => {
                self.learn_surroundings().await;
                let recovered = self.recover().await;
                answer(reply, recovered);
            }
            SessionCommand::WorkIn { place, reply } => {
                self.learn_surroundings().await;
                let works = self.work_in(place).await;
                answer(reply, works);
            }
            SessionCommand::Prompt { client, prompt, accept, answer } => {
                let client = client.and_then(|client| client.delegate());
                self.admit(prompt, client, accept, answer).await;
            }
            SessionCommand::Cancel => self.cancel().await,
            SessionCommand::CancelPrompt(message_id) => self.cancel_prompt(message_id).await,
            SessionCommand::Attach { client, from, reply } => {
                let attached = self.attach(client, from).await;
                answer(reply, attached);
            }
            SessionCommand::ParticipantReady(number) => self.participant_ready(number),
            SessionCommand::ParticipantLeft(number) => self.participant_left(number),
            SessionCommand::SetMode { agent, reply } => {
                let chosen = self.set_mode(agent).await;
                answer(reply, chosen);
            }
            SessionCommand::SetModel { model, reply } => {
                let chosen = self.set_model(model).await;
                answer(reply, chosen);
            }
            SessionCommand::SetThought { level, reply } => {
                let chosen = self.set_thought(level).await;
                answer(reply, chosen);
            }
            SessionCommand::SetApproval { approval, reply } => {
                let chosen = self.set_approval(approval).await;
                answer(reply, chosen);
            }
            SessionCommand::SetOption { id, value, reply } => {
                let chosen = self.set_option(id, value).await;
                answer(reply, chosen);
            }
            SessionCommand::ChoicesChanged => self.tell_choices().await,
            SessionCommand::AgentCommandsChanged => self.list_commands(),
            SessionCommand::Patch { patch, reply } => {
                let patched = self.patch(*patch).await;
                answer(reply, patched);
            }
            SessionCommand::Status(reply) => drop(reply.send(self.current_status())),
            SessionCommand::Complete { text, reply } => self.complete_command(&text, reply),
            SessionCommand::QueueList(reply) => {
                let listed = self.queue_list().await;
                answer(reply, listed);
            }
            SessionCommand::QueueCancel { message_id, reply } => {
                let cancelled = self.queue_cancel(&message_id).await;
                answer(reply, cancelled);
            }
            SessionCommand::QueueEdit { message_id, prompt, reply } => {
                let edited = self.queue_edit(&message_id, prompt).await;
                answer(reply, edited);
            }
            SessionCommand::Rewind { message_id, client, reply } => {
                let client = client.and_then(|client| client.delegate());
                let rewound = self.rewind(&message_id, client).await;
                answer(reply, rewound);
            }
            SessionCommand::Unrewind { client, reply } => {
                let client = client.and_then(|client| client.delegate());
                let unrewound = self.unrewind(client).await;
                answer(reply, unrewound);
            }
            SessionCommand::Consent { request, consent, reply } => {
                let decided = self.decide(request, consent).await;
                answer(reply, decided);
                self.tell_choices().await;
            }
            SessionCommand::Notice { severity, title, description } => {
                self.notice(severity, title, description).await
            }
            SessionCommand::PromptsChanged => self.list_server_prompts(),
            SessionCommand::TaskTerms(reply) => {
                let terms = self.task_terms();
                answer(reply, terms);
            }
            SessionCommand::BackgroundStarted { task, cancel, reply } => {
                let started = self.background_started(task, cancel).await;
                answer(reply, started);
            }
            SessionCommand::BackgroundEnded { session, text, when_done } => {
                self.background_ended(&session, text, when_done).await;
            }
            SessionCommand::AskForChild(question) => self.ask_for_child(*question).await,
            SessionCommand::WithdrawForChild(call_id) => self.withdraw_for_child(&call_id).await,
            SessionCommand::StoreAuthority => self.store_authority_of_child().await,
            SessionCommand::CloseUnattended => self.participants.close_when_alone(),
            SessionCommand::Close(reply) => {
                self.close().await;
                answer(reply, Ok(()));
                return Then::Stop;
            }
            SessionCommand::Shutdown(reply) => {
                self.shut_down().await;
                answer(reply, Ok(()));
                return Then::Stop;
            }
        }
        Then::GoOn
    }

    /// Reads the project's settings and finds the sessions that this one works for.
    async fn learn_surroundings(&mut self) {
        self.learn_project().await;
        self.learn_lineage().await;
    }

    /// Takes the stored state as the state of this session.
    pub(crate) fn adopt(&mut self, record: SessionRecord) {
        if record.row.metadata.child_of().is_none() {
            self.authority.adopt(&record.row);
        }
        self.measures.adopt_cost(record.row.totals.cost_usd);
        self.toolbox.set_active(record.row.metadata.active_tools());
        self.row = record.row;
        self.news.forget_unstored();
        self.enforce_approval();
        self.conversation.set_last_seq(record.last_seq);
        self.hub.histories.forget(&self.id);
        // The setup was made from the previous row.
        self.setup.forget();
    }

    fn current_status(&self) -> SessionStatus {
        let retrying = self.activity.running().and_then(Running::retrying);
        SessionStatus { state: retrying.unwrap_or_else(|| self.status.state.clone()), ..self.status.clone() }
    }

    pub(crate) fn set_state(&mut self, state: RunState) {
        let now = self.hub.ports.clock.now_ms();
        let message_id = self.activity.live_run().map(|live| live.user_message_id.clone());
        let started_at = message_id.is_some().then_some(now);
        self.status = SessionStatus { started_at, message_id, state, runs: Runs::Here };
        self.publish(EventKind::Status(self.status.clone()));
    }

    pub(crate) fn publish(&self, kind: EventKind) {
        // It is fine if there is no listener.
        drop(self.hub.events.send(HubEvent { session_id: self.id.clone(), kind }));
    }
}

fn answer<T>(reply: Reply<T>, result: Result<T, HubError>) {
    // A caller that is gone needs no answer.
    drop(reply.send(result));
}
