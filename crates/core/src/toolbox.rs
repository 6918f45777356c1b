//! The tools of one session, from all their sources. Knows nothing of permissions: what is offered is decided
//! by agent and model, what may run by the watchdog.

mod foreign;

use std::sync::Arc;

use futures_util::future::join_all;

use crate::agents::Agent;
use crate::hub::People;
use crate::ids::SessionId;
use crate::ports::model::ModelInfo;
use crate::ports::tool::{Tool, ToolSource, ToolSources, ToolSpec};

/// What a session has, and grows by between turns.
#[derive(Clone, Debug)]
pub(crate) struct Toolbox {
    sources: Vec<Arc<dyn ToolSource>>,
    tools: Arc<[Arc<dyn Tool>]>,
}

/// What a session has for tools that could not work without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offering {
    pub(crate) people: People,
    pub(crate) has_skills: bool,
}

/// Whether a look at the sources found something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    Same,
    Grown,
}

/// How the answer to a call of an unknown tool begins.
pub(crate) const NO_SUCH_TOOL: &str = "there is no tool";

impl Toolbox {
    /// Holds nothing until it first looks: a session that is only opened needs no schema.
    pub(crate) fn new(sources: &ToolSources) -> Self {
        Self { sources: sources.iter().cloned().collect(), tools: Arc::new([]) }
    }

    /// Appends what the sources have gained. What is there keeps its place, so that a provider's cache of
    /// earlier requests stays valid; a tool that its source has lost stays, too, and says so when it is called.
    /// Of two with one name the first stays.
    pub(crate) fn look(&mut self) -> Looked {
        let mut tools = self.tools.to_vec();
        for tool in self.sources.iter().flat_map(|source| source.tools().to_vec()) {
            if !tools.iter().any(|known| known.spec().id == tool.spec().id) {
                tools.push(tool);
            }
        }
        if tools.len() == self.tools.len() {
            return Looked::Same;
        }
        self.tools = tools.into();
        Looked::Grown
    }

    /// What this agent with this model may call, in order.
    pub(crate) fn offer(&self, agent: &Agent, model: &ModelInfo, session: Offering) -> OfferedTools {
        let can_work = |tool: &&Arc<dyn Tool>| {
            let has_person = !tool.needs_person() || session.people == People::Present;
            let has_skills = !tool.needs_skills() || session.has_skills;
            has_person && has_skills && (model.images || !tool.needs_images())
        };
        let specs = self.tools.iter().filter(can_work).map(|tool| tool.spec());
        let specs = specs.filter(|spec| agent.is_offered(spec)).cloned().collect();
        OfferedTools { tools: self.tools.clone(), specs }
    }

    pub(crate) async fn session_ended(&self, session: &SessionId) {
        join_all(self.tools.iter().map(|tool| tool.session_ended(session))).await;
    }
}

/// The tools of a turn: what the model is told of, and everything it may name all the same.
#[derive(Clone, Debug)]
pub(crate) struct OfferedTools {
    tools: Arc<[Arc<dyn Tool>]>,
    pub(crate) specs: Arc<[ToolSpec]>,
}

impl OfferedTools {
    /// The tool of that name; else the only one whose name differs by case or separators at most, or by what
    /// some models write before every name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        const BEFORE: [&str; 5] = ["functions.", "function.", "tools.", "tool.", "default_api."];
        let bare = || BEFORE.iter().find_map(|before| name.strip_prefix(before));
        self.find_named(name).or_else(|| self.find_named(bare()?))
    }

    fn find_named(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let exact = self.tools.iter().find(|tool| *tool.spec().id == *name);
        let mut alike = self.tools.iter().filter(|tool| plain(&tool.spec().id) == plain(name));
        let only = alike.next().filter(|_| alike.next().is_none());
        exact.or(only).cloned()
    }

    /// For the model: that there is no tool of that name, which one does what it asked for, and which there
    /// are.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let is_there = |tool: &str| self.specs.iter().any(|spec| *spec.id == *tool);
        let inner = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
        let own = self.specs.iter().find(|spec| plain(&spec.id) == plain(inner));
        let meant = own.map(|spec| (&*spec.id, "")).or_else(|| foreign::meant(name));
        let hint = match meant.filter(|(tool, _)| is_there(tool)) {
            Some((tool, how)) => format!(": use `{tool}`{how}"),
            None if foreign::SWITCHES.iter().any(|other| plain(other) == plain(inner)) => {
                ": only the user switches the mode; end your turn and ask for it".to_owned()
            }
            None => String::new(),
        };
        let known: Vec<&str> = self.specs.iter().map(|spec| &*spec.id).collect();
        format!("{NO_SUCH_TOOL} `{name}`{hint}; available: {}", known.join(", "))
    }
}

/// A name without what models write differently: case, `_`, `-`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
