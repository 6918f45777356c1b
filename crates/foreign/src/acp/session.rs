//! One session of ours at an ACP agent: starts the agent when it is needed, and finds or opens the session at
//! its side. Runs no turns.

use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol_schema::v1::{AgentCapabilities, SessionId as TheirId};
use attache_acp_client::{AgentAbility, ClientFailure, OpenedSession, SessionStart};
use attache_core::ids::SessionId;
use attache_core::ports::foreign::{AgentNews, AgentWord, ChosenOptions, KeptState};
use attache_core::ports::mcp::ServerEntry;
use attache_core::ports::tool::Workspace;
use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::sync::watch;

use super::child::{self, Child};
use super::choices::{AgentChoice, AgentChoices};
use super::servers::passed_on;
use super::{AcpSettings, failed};
use crate::ForeignError;

/// Of one session of ours.
#[derive(Debug)]
pub(super) struct AgentSession {
    id: SessionId,
    settings: Arc<AcpSettings>,
    /// What the agent said it can, for all sessions.
    learned: Arc<Mutex<Option<AgentCapabilities>>>,
    pub(super) choices: Arc<Mutex<AgentChoices>>,
    /// In dollars, as the agent said last of its session; `None`: it has not said since the session was taken
    /// up.
    cost: Mutex<Option<f64>>,
    /// Whether it is being started; once that is over, it is known what can be chosen of it.
    pub(super) opened: watch::Sender<StartStage>,
    /// Why a lock: the first prompt waits for the start that the opening began.
    slot: tokio::sync::Mutex<ChildSlot>,
}

/// How far the start of an agent is that nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartStage {
    UnderWay,
    Over,
}

#[derive(Debug, Default)]
struct ChildSlot {
    child: Option<Child>,
    theirs: Option<Theirs>,
}

/// The session at the agent's side.
#[derive(Debug)]
struct Theirs {
    id: TheirId,
    knows: Knows,
    begun_with: BegunWith,
}

/// What the agent's session has of our conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knows {
    Nothing,
    /// Everything but the message that is answered now.
    Conversation,
}

/// What the first prompt of the agent's session begins with. Its title is made of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BegunWith {
    /// Words of the person.
    Prompt,
    /// The conversation that it did not know.
    Handover,
}

/// As it is kept with our session.
const BEGUN_WITH: &str = "begun_with";
const HANDOVER: &str = "handover";

/// What a session of the agent needs.
#[derive(Clone, Debug)]
pub(super) struct SessionWish {
    pub(super) root: PathBuf,
    /// Where it works, once a turn is there: what is held is held to this.
    pub(super) workspace: Option<Arc<Workspace>>,
    pub(super) additional: Vec<PathBuf>,
    pub(super) servers: Vec<ServerEntry>,
    pub(super) options: ChosenOptions,
    /// The session that goes on, as `kept_value` made it.
    pub(super) kept: Option<KeptState>,
    pub(super) news: AgentNews,
}

/// Ready for a prompt.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) child: Child,
    pub(super) theirs: TheirId,
    pub(super) knows: Knows,
    pub(super) begun_with: BegunWith,
}

impl AgentSession {
    pub(super) fn new(
        id: SessionId,
        settings: Arc<AcpSettings>,
        learned: Arc<Mutex<Option<AgentCapabilities>>>,
    ) -> Self {
        Self {
            id,
            settings,
            learned,
            choices: Arc::default(),
            cost: Mutex::default(),
            opened: watch::Sender::new(StartStage::Over),
            slot: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn settings(&self) -> &AcpSettings {
        &self.settings
    }

    /// What is kept with our session so that another process finds the agent's.
    pub(super) fn kept_value(&self, ready: &Ready) -> Value {
        let mut kept = json!({ "session": ready.theirs, "of": self.id.as_str() });
        match ready.begun_with {
            BegunWith::Prompt => {}
            BegunWith::Handover => kept[BEGUN_WITH] = HANDOVER.into(),
        }
        kept
    }

    /// A copy of our session has what the first one kept: one session of the agent is not shared.
    fn kept(&self, kept: &KeptState) -> Option<(TheirId, BegunWith)> {
        let of = kept.value.get("of")?.as_str()?;
        let session = kept.value.get("session")?.as_str()?;
        let begun_with = match kept.value.get(BEGUN_WITH).and_then(Value::as_str) {
            Some(HANDOVER) => BegunWith::Handover,
            Some(_) | None => BegunWith::Prompt,
        };
        (of == self.id.as_str()).then(|| (TheirId::new(session), begun_with))
    }

    /// The agent, with a session that has the conversation or nothing of it.
    pub(super) async fn ready(&self, wish: &SessionWish) -> Result<Ready, ForeignError> {
        let mut slot = self.slot.lock().await;
        if slot.child.as_ref().is_some_and(|child| child.client.is_closed()) {
            *slot = ChildSlot::default();
        }
        let child = match &slot.child {
            Some(child) => child.clone(),
            None => {
                let choices = self.choices.clone();
                let child = child::start(
                    &self.settings,
                    (&wish.root, wish.workspace.clone()),
                    choices,
                    wish.news.clone(),
                )
                .await?;
                let capabilities = child.client.agent().agent_capabilities.clone();
                *self.learned.lock().unwrap_or_else(PoisonError::into_inner) = Some(capabilities);
                slot.child.insert(child).clone()
            }
        };
        child.link.set_news(wish.news.clone());
        let wanted = wish.kept.as_ref().and_then(|kept| self.kept(kept));
        let fits = slot.theirs.as_ref().is_some_and(|theirs| match theirs.knows {
            // A new one is told the conversation, whatever that is.
            Knows::Nothing => true,
            Knows::Conversation => wanted.as_ref().is_some_and(|(wanted, _)| *wanted == theirs.id),
        });
        if !fits {
            slot.theirs = None;
            let theirs = self.opened(&child, wish, wanted).await?;
            slot.theirs = Some(theirs);
        }
        let Some(theirs) = &slot.theirs else { return Err(ForeignError::new("the agent has no session")) };
        let ready = Ready {
            child: child.clone(),
            theirs: theirs.id.clone(),
            knows: theirs.knows,
            begun_with: theirs.begun_with,
        };
        self.choose(&ready, &wish.options).await?;
        Ok(ready)
    }

    /// From the first prompt on, the agent's session is one of this conversation.
    pub(super) async fn prompted(&self, begun_with: BegunWith) {
        if let Some(theirs) = &mut self.slot.lock().await.theirs {
            (theirs.knows, theirs.begun_with) = (Knows::Conversation, begun_with);
        }
    }

    /// The process was killed: the next prompt starts another.
    pub(super) async fn lost(&self) {
        *self.slot.lock().await = ChildSlot::default();
    }

    /// What the agent's session had cost when it said so last; from now on it is this.
    pub(super) fn cost_before(&self, now: Option<f64>) -> Option<f64> {
        let mut cost = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now?;
        cost.replace(now)
    }

    /// Goes on with the agent's session where that is possible, else opens a new one.
    async fn opened(
        &self,
        child: &Child,
        wish: &SessionWish,
        wanted: Option<(TheirId, BegunWith)>,
    ) -> Result<Theirs, ForeignError> {
        let passed = passed_on(&wish.servers, &child.client.agent().agent_capabilities.mcp_capabilities);
        if !passed.left_out.is_empty() {
            child.link.tell(AgentWord::Notice {
                severity: "warning",
                title: format!(
                    "The agent `{}` does not reach all MCP servers of the editor",
                    self.settings.name
                ),
                description: Some(passed.left_out.join(", ")),
            });
        }
        let mut place = SessionStart::new(&wish.root);
        if child.client.agent().agent_capabilities.session_capabilities.additional_directories.is_some() {
            place.additional.clone_from(&wish.additional);
        }
        place.servers = passed.servers;
        if let Some((wanted, begun_with)) = wanted {
            match self.again(child, &wanted, &place).await {
                Some(Ok(opened)) => {
                    let theirs = self.took(child, opened, Knows::Conversation);
                    return Ok(Theirs { begun_with, ..theirs });
                }
                Some(Err(failure)) if child.client.is_closed() => return Err(self.failed(child, &failure)),
                Some(Err(failure)) => child.link.tell(AgentWord::Notice {
                    severity: "warning",
                    title: format!("The agent `{}` has lost this session", self.settings.name),
                    description: Some(format!("It is told the conversation so far. ({failure})")),
                }),
                None => {}
            }
        }
        child.link.set_session(None);
        let opened = child.client.new_session(&place).await;
        let opened = opened.map_err(|failure| self.failed(child, &failure))?;
        Ok(self.took(child, opened, Knows::Nothing))
    }

    /// `None` for an agent that keeps no sessions.
    async fn again(
        &self,
        child: &Child,
        wanted: &TheirId,
        place: &SessionStart,
    ) -> Option<Result<OpenedSession, ClientFailure>> {
        child.link.set_session(Some(wanted.clone()));
        if child.client.can(AgentAbility::Resume) {
            return Some(child.client.resume_session(wanted.clone(), place).await);
        }
        if child.client.can(AgentAbility::Load) {
            // What it replays is stored here already; without a turn nobody takes it.
            return Some(child.client.load_session(wanted.clone(), place).await);
        }
        None
    }

    fn took(&self, child: &Child, opened: OpenedSession, knows: Knows) -> Theirs {
        let OpenedSession { session_id, modes, config_options, .. } = opened;
        *self.cost.lock().unwrap_or_else(PoisonError::into_inner) = match knows {
            Knows::Nothing => Some(0.0),
            Knows::Conversation => None,
        };
        child.link.set_session(Some(session_id.clone()));
        let is_changed = {
            let mut choices = self.choices.lock().unwrap_or_else(PoisonError::into_inner);
            // What it says of its commands comes by itself, before or behind its answer.
            let now = AgentChoices { modes, options: config_options, commands: choices.commands.clone() };
            let is_changed = *choices != now;
            *choices = now;
            is_changed
        };
        if is_changed {
            child.link.tell(AgentWord::OptionsChanged);
        }
        Theirs { id: session_id, knows, begun_with: BegunWith::Prompt }
    }

    /// Tells the agent what was chosen of its options and does not hold yet.
    async fn choose(&self, ready: &Ready, chosen: &ChosenOptions) -> Result<(), ForeignError> {
        let mut told: Vec<AgentChoice> = Vec::new();
        loop {
            let next = self.choices.lock().unwrap_or_else(PoisonError::into_inner).next(chosen, &told);
            let Some(choice) = next else { return Ok(()) };
            let (client, theirs) = (&ready.child.client, ready.theirs.clone());
            let taken = match choice.clone() {
                AgentChoice::Mode(mode) => {
                    let set = client.set_mode(theirs, &mode).await;
                    set.map(|()| self.changed(|choices| choices.took_mode(&mode)))
                }
                AgentChoice::Option { id, value } => {
                    let set = client.set_config_option(theirs, &id, value).await;
                    set.map(|options| self.changed(|choices| choices.options = options))
                }
            };
            if let Err(failure) = taken {
                if ready.child.client.is_closed() {
                    return Err(self.failed(&ready.child, &failure));
                }
                ready.child.link.tell(AgentWord::Notice {
                    severity: "warning",
                    title: format!("The agent `{}` does not take what was chosen", self.settings.name),
                    description: Some(failure.to_string()),
                });
            }
            told.push(choice);
        }
    }

    fn changed(&self, change: impl FnOnce(&mut AgentChoices)) {
        change(&mut self.choices.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn failed(&self, child: &Child, failure: &ClientFailure) -> ForeignError {
        failed(&self.settings, failure, child.client.auth_methods())
    }

    /// Ends the agent.
    pub(super) async fn end(&self) {
        let slot = std::mem::take(&mut *self.slot.lock().await);
        if let Some(child) = slot.child {
            child.client.leave().await;
        }
    }
}
