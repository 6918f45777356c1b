//! The backend of a host: turns of its own agents run in the loop, those of others by the agent that they are
//! of. Knows no way to an agent.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use attache_core::agents::Agent;
use attache_core::ids::SessionId;
use attache_core::ports::BoxFuture;
use attache_core::ports::backend::{
    Backend, BackendTurn, InterruptedTurn, ResumedTurn, TurnContext, TurnLeftovers, TurnResult, TurnStart,
};
use attache_core::ports::foreign::{Abilities, AgentCommand, AgentOption, SessionOpening};
use attache_core::turn::{FailureKind, NativeBackend, TurnEnd};

use crate::agent::ForeignAgent;
use crate::turn::ForeignTurn;

type AgentsByKey = HashMap<Arc<str>, Arc<dyn ForeignAgent>>;

/// The agents of a host that live elsewhere, by their keys. Cheap to clone; a project's are added when it is
/// opened.
#[derive(Clone, Default)]
pub struct ForeignAgents {
    /// Why a lock: projects add theirs while sessions look theirs up. Held for a look only.
    known: Arc<RwLock<AgentsByKey>>,
}

impl fmt::Debug for ForeignAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForeignAgents")
    }
}

impl ForeignAgents {
    /// Has this one under this key, unless there is one already: what is known by a key is always the same.
    pub fn add(&self, key: Arc<str>, make: impl FnOnce() -> Arc<dyn ForeignAgent>) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert_with(make);
    }

    fn get(&self, agent: &Agent) -> Option<Arc<dyn ForeignAgent>> {
        let key = agent.foreign_key()?;
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn all(&self) -> Vec<Arc<dyn ForeignAgent>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// Passes each turn on by its agent.
#[derive(Clone, Debug, Default)]
pub struct ForeignBackends {
    native: NativeBackend,
    agents: ForeignAgents,
}

impl ForeignBackends {
    /// The loop, and these agents.
    pub fn new(agents: ForeignAgents) -> Self {
        Self { native: NativeBackend, agents }
    }
}

impl Backend for ForeignBackends {
    fn turn(&self, context: TurnContext) -> Box<dyn BackendTurn> {
        if context.setup.agent.foreign_key().is_none() {
            return self.native.turn(context);
        }
        match self.agents.get(&context.setup.agent) {
            Some(agent) => Box::new(ForeignTurn::new(context, agent)),
            None => Box::new(LostTurn(context)),
        }
    }

    fn turn_again(
        &self,
        context: TurnContext,
        interrupted: InterruptedTurn,
    ) -> BoxFuture<'static, Option<ResumedTurn>> {
        if context.setup.agent.foreign_key().is_none() {
            return self.native.turn_again(context, interrupted);
        }
        let agent = self.agents.get(&context.setup.agent).filter(|agent| agent.can_resume());
        let again = agent.and_then(|agent| ForeignTurn::again(context, agent));
        let again = again.map(|(turn, ask)| (Box::new(turn) as Box<dyn BackendTurn>, ask));
        Box::pin(std::future::ready(again))
    }

    fn abilities(&self, agent: &Agent) -> Option<Abilities> {
        Some(self.agents.get(agent)?.abilities())
    }

    fn options(&self, agent: &Agent, session: &SessionId) -> Vec<AgentOption> {
        self.agents.get(agent).map(|agent| agent.options(session)).unwrap_or_default()
    }

    fn commands(&self, agent: &Agent, session: &SessionId) -> Vec<AgentCommand> {
        self.agents.get(agent).map(|agent| agent.commands(session)).unwrap_or_default()
    }

    fn open(&self, agent: &Agent, opening: SessionOpening) {
        if let Some(agent) = self.agents.get(agent) {
            agent.open(opening);
        }
    }

    fn opened(&self, agent: &Agent, session: &SessionId) -> BoxFuture<'static, ()> {
        match self.agents.get(agent) {
            Some(agent) => agent.opened(session),
            None => Box::pin(std::future::ready(())),
        }
    }

    fn forget(&self, session: &SessionId) {
        self.agents.all().iter().for_each(|agent| agent.forget(session));
    }
}

/// The turn of an agent that this host does not know: a session outlived its configuration.
#[derive(Debug)]
struct LostTurn(TurnContext);

impl BackendTurn for LostTurn {
    fn run(&mut self, _start: TurnStart) -> BoxFuture<'_, TurnResult> {
        let agent = &self.0.setup.agent.id;
        let message = format!("the agent `{agent}` is not configured here any more; choose another mode");
        let end = TurnEnd::failed(FailureKind::Model, message);
        Box::pin(std::future::ready(TurnResult::Ended(end)))
    }

    fn leftovers(self: Box<Self>) -> TurnLeftovers {
        TurnLeftovers::reread(self.0.conversation)
    }
}
