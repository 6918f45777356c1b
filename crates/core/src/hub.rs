//! The hub: finds or starts the task of a session and gives out handles to it. The hub itself holds no
//! conversation.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::choices::{Choices, Chosen, CurrentChoices, Replaced};
use crate::events::HubEvent;
use crate::ids::{MessageId, SessionId};
use crate::journal::reader::Subscription;
use crate::journal::replay::Replay;
use crate::limits::{EVENTS_BEHIND, HISTORIES_BYTES, OPEN_TRIES};
use crate::metadata::SessionMeta;
use crate::ports::projects::{ConsentRequest, ProjectSettings};
use crate::ports::store::{
    Batch, Change, ModelRef, Owner, SessionQuery, SessionRow, Store, StoreError, UsageTotals,
};
use crate::session::authority::SessionAuthority;
use crate::session::{self, SessionCommand};
use crate::slash_commands::CommandsFeed;
use crate::task::slots::TaskSlots;
use crate::turn::TurnEnd;

mod ending;
mod error;
mod exporting;
mod handle;
pub(crate) mod histories;
mod model_of_new;
mod participant;
mod place;
mod removal;
mod settings;
mod shown;
mod stored;
mod tasks;
mod watched;

pub use error::HubError;
pub use handle::{SessionHandle, SessionReply};
use histories::Histories;
pub use participant::Participant;
pub use place::{NewSession, SessionPlace};
pub use removal::StoredSessions;
pub use settings::{ModelStandIn, People, Ports, Settings};
pub use stored::FoundSession;

pub use crate::fork::ForkPoint;

/// Where a reader of a session starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachFrom {
    /// The whole conversation from the rows, then the live run.
    Beginning,
    /// Only a run in flight, from its first chunk.
    LiveRun,
    /// Only what comes from now on (for a session that was just made).
    Now,
}

/// A reader's place in a session: what to replay first, then the live entries.
#[derive(Debug)]
pub struct Attachment {
    /// Present for `AttachFrom::Beginning`.
    pub replay: Option<Replay>,
    /// Everything that is said from now on.
    pub live: Subscription,
    /// Entries below this index belong to the answer of a load; later ones come after that answer.
    pub head: u64,
    /// The current choices of the session.
    pub chosen: Chosen,
    /// The slash commands that a client can offer.
    pub commands: CommandsFeed,
    /// Dropping this removes the client from the session.
    pub participant: Participant,
}

/// How a prompt ended. A client has to send every entry below `after_index` before it answers the prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnOutcome {
    /// The prompt that was answered.
    pub message_id: MessageId,
    /// How the turn ended.
    pub end: TurnEnd,
    /// One past the last entry of the turn.
    pub after_index: u64,
}

/// A prompt that was submitted: it has its place in the queue, its end comes later.
#[derive(Debug)]
pub struct Ticket {
    /// The id of the stored message, as soon as it is stored. Connections use it to know their own messages.
    pub accepted: oneshot::Receiver<MessageId>,
    /// How its turn ended, once it has.
    pub outcome: oneshot::Receiver<Result<TurnOutcome, HubError>>,
}

/// A queued message as a client may see it.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedMessage {
    /// The message that waits.
    pub message_id: MessageId,
    /// When it began to wait, in milliseconds since 1970.
    pub queued_at: i64,
    /// What it says.
    pub parts: Vec<crate::part::Part>,
}

/// Finds and starts sessions; cheap to clone, all clones are one hub.
#[derive(Clone, Debug)]
pub struct Hub {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) ports: Ports,
    pub(crate) choices: CurrentChoices,
    pub(crate) events: broadcast::Sender<HubEvent>,
    pub(crate) histories: Histories,
    /// Why a lock: connections open and close sessions at the same time. Held for look-ups only.
    open: Mutex<HashMap<SessionId, mpsc::UnboundedSender<SessionCommand>>>,
    /// What open sessions allow their children. Why a lock: sessions come and go. Held for look-ups only.
    authorities: Mutex<HashMap<SessionId, SessionAuthority>>,
    pub(crate) task_slots: Arc<TaskSlots>,
    /// Held while reading sessions to find a similar id.
    comparing_ids: tokio::sync::Mutex<()>,
    /// Set by `shutdown`, under the lock of `open`: a session opened after that could get a second task.
    ending: AtomicBool,
}

impl Shared {
    pub(crate) fn open_sessions(
        &self,
    ) -> MutexGuard<'_, HashMap<SessionId, mpsc::UnboundedSender<SessionCommand>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error when no provider can be used.
    pub(crate) fn no_model(&self) -> HubError {
        HubError::NoModel(self.ports.model.provider_problems())
    }

    /// The error for a chosen model that can't be used now or does not exist.
    pub(crate) fn unusable_model(&self, model: &ModelRef) -> HubError {
        let model = model.without_variant();
        if let Some(why) = self.ports.model.why_not(&model) {
            return HubError::UnusableModel { model, why };
        }
        HubError::Invalid(self.choices.get().unknown_model(&model.to_string()))
    }

    fn gather_choices(ports: &Ports) -> Choices {
        let foreign = ports.agents.all().filter_map(|agent| ports.backend.abilities(agent)).collect();
        Choices::gather(&*ports.model, ports.settings.model.as_ref(), foreign)
    }

    /// Looks again for usable models. Every open session tells its clients if the choices changed.
    pub(crate) async fn refresh_choices(self: &Arc<Self>) {
        self.ports.model.look_again().await;
        self.gather_anew();
        let Some(late) = self.ports.model.late_answers() else { return };
        let shared = Arc::downgrade(self);
        tokio::spawn(async move {
            late.await;
            if let Some(shared) = shared.upgrade() {
                shared.gather_anew();
            }
        });
    }

    fn gather_anew(&self) {
        match self.choices.replace(|| Self::gather_choices(&self.ports)) {
            Replaced::Same => {}
            Replaced::Changed => {
                for commands in self.open_sessions().values() {
                    // If the session is gone, it needs no news.
                    drop(commands.send(SessionCommand::ChoicesChanged));
                }
            }
        }
    }
}

impl Hub {
    /// A hub of these parts. It starts nothing until a session is opened.
    pub fn new(ports: Ports) -> Self {
        let choices = CurrentChoices::new(Shared::gather_choices(&ports));
        let (events, _) = broadcast::channel(EVENTS_BEHIND);
        Self {
            shared: Arc::new(Shared {
                ports,
                choices,
                events,
                histories: Histories::new(HISTORIES_BYTES),
                open: Mutex::default(),
                authorities: Mutex::default(),
                task_slots: Arc::default(),
                comparing_ids: tokio::sync::Mutex::default(),
                ending: AtomicBool::new(false),
            }),
        }
    }

    /// What sessions can currently choose from.
    pub fn choices(&self) -> &CurrentChoices {
        &self.shared.choices
    }

    /// Reads the choices again, after a login or logout.
    pub async fn refresh_choices(&self) {
        self.shared.refresh_choices().await;
    }

    /// Turn and status events of all sessions, for any number of subscribers.
    pub fn events(&self) -> broadcast::Receiver<HubEvent> {
        self.shared.events.subscribe()
    }

    /// Stores a new session and opens it.
    pub async fn create(&self, new: NewSession) -> Result<SessionHandle, HubError> {
        self.create_as(self.shared.ports.ids.session(), new).await
    }

    /// The same with a given id, which must be unused.
    pub async fn create_as(&self, id: SessionId, new: NewSession) -> Result<SessionHandle, HubError> {
        let ports = &self.shared.ports;
        let now = ports.clock.now_ms();
        let of_project = match &ports.projects {
            Some(projects) => projects.settings(&new.root).await,
            None => ProjectSettings::default(),
        };
        let agent = of_project.agent.unwrap_or_else(|| ports.settings.agent.clone());
        let agents = of_project.agents.as_ref().unwrap_or(&ports.agents);
        let model = match of_project.model {
            Some(model) => Some(model),
            None if self.needs_no_model(agents, &agent) => self.known_default_model(),
            None => Some(self.default_model().await?),
        };
        let mut metadata = SessionMeta::default();
        if !new.place.additional.is_empty() {
            metadata.set_additional_directories(&new.place.additional);
        }
        let row = SessionRow {
            id: id.clone(),
            agent,
            workspace_root: new.root,
            model,
            parent_id: None,
            parent_message_id: None,
            permissions: Value::Array(Vec::new()),
            metadata,
            totals: UsageTotals::default(),
            created_at: now,
            updated_at: now,
            archived_at: None,
        };
        self.commit(Batch {
            session_id: id.clone(),
            fence: None,
            changes: vec![Change::CreateSession(Box::new(row))],
        })
        .await?;
        self.open_in(&id, &new.place).await
    }

    /// Opens a stored session, or returns the open one. Settles what a crashed owner left unfinished.
    pub async fn open(&self, id: &SessionId) -> Result<SessionHandle, HubError> {
        self.open_with(id, SessionCommand::Recover).await
    }

    /// The same; from then on the session has exactly these directories beside its root, and these servers.
    pub async fn open_in(&self, id: &SessionId, place: &SessionPlace) -> Result<SessionHandle, HubError> {
        self.open_with(id, |reply| SessionCommand::WorkIn { place: place.clone(), reply }).await
    }

    async fn open_with(
        &self,
        id: &SessionId,
        first: impl Fn(oneshot::Sender<Result<(), HubError>>) -> SessionCommand,
    ) -> Result<SessionHandle, HubError> {
        for _ in 0..OPEN_TRIES {
            let handle = self.find_or_start(id).await?;
            match handle.ask(&first).await {
                Ok(recovered) => return recovered.map(|()| handle),
                // Another client closed it in the meantime: open it again.
                Err(HubError::Closed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(HubError::Closed(id.clone()))
    }

    /// What to ask the user about the session's project; at most once for the same content.
    pub async fn consent_to_ask(&self, id: &SessionId) -> Option<ConsentRequest> {
        let projects = self.shared.ports.projects.as_ref()?;
        let root = self.root(id).await.ok()?;
        projects.consent_to_ask(&root).await
    }

    /// The root of a stored session, open or not.
    pub async fn root(&self, id: &SessionId) -> Result<PathBuf, HubError> {
        let record = self.shared.ports.store.session(id).await?;
        match record {
            Some(record) => Ok(record.row.workspace_root),
            None => Err(self.shared.unknown_session(id).await),
        }
    }

    async fn find_or_start(&self, id: &SessionId) -> Result<SessionHandle, HubError> {
        if let Some(commands) = self.living(id) {
            return Ok(SessionHandle { id: id.clone(), commands });
        }
        let record =
            self.shared.ports.store.session(id).await?.ok_or_else(|| HubError::unknown_session(id))?;
        let mut open = self.shared.open_sessions();
        if self.shared.ending.load(Ordering::SeqCst) {
            return Err(HubError::Closed(id.clone()));
        }
        // Holds the lock to the end: another connection may be opening the same session.
        let commands = match open.get(id).filter(|commands| !commands.is_closed()) {
            Some(commands) => commands.clone(),
            None => {
                let commands = session::start(self.shared.clone(), record);
                open.insert(id.clone(), commands.clone());
                commands
            }
        };
        Ok(SessionHandle { id: id.clone(), commands })
    }

    /// Stored sessions, the latest first.
    pub async fn list(&self, query: SessionQuery) -> Result<Vec<SessionRow>, HubError> {
        Ok(self.shared.ports.store.list_sessions(query).await?)
    }

    /// Copies the visible messages of a session into a new one; refused while a turn is under way.
    pub async fn fork(&self, id: &SessionId, new: NewSession) -> Result<SessionHandle, HubError> {
        self.fork_at(id, &ForkPoint::End, new).await
    }

    /// The same, up to a given point.
    pub async fn fork_at(
        &self,
        id: &SessionId,
        point: &ForkPoint,
        new: NewSession,
    ) -> Result<SessionHandle, HubError> {
        let Some(stored) = self.shared.ports.store.session(id).await? else {
            return Err(self.shared.unknown_session(id).await);
        };
        let live = stored.live_run.is_some() && stored.owner != Owner::Other;
        if live || self.living(id).is_some() {
            // Opening it settles what a crashed owner left unfinished.
            let status = self.open(id).await?.status().await?;
            if status.is_active() {
                return Err(HubError::Busy(id.clone()));
            }
        }
        let place = new.place.clone();
        let copy = crate::fork::copy(&self.shared.ports, id, point, new).await?;
        self.open_in(&copy, &place).await
    }

    async fn commit(&self, batch: Batch) -> Result<(), HubError> {
        Ok(commit(&*self.shared.ports.store, batch).await?)
    }
}

/// Commits one batch and waits for it.
pub(crate) async fn commit(store: &dyn Store, batch: Batch) -> Result<(), StoreError> {
    let (done, committed) = oneshot::channel();
    store.commit(batch, Box::new(move |result| drop(done.send(result))));
    committed.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the writer has stopped".into())))
}
