//! The tools of one session, from all their sources. Knows nothing of permissions: agent and model decide what
//! is offered, the watchdog decides what may run.

mod foreign;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;

use crate::agents::Agent;
use crate::hub::People;
use crate::ids::SessionId;
use crate::ports::SessionServers;
use crate::ports::model::ModelInfo;
use crate::ports::tool::{Tool, ToolIdentity, ToolKind, ToolSource, ToolSources, ToolSpec};
use crate::tool_names::BUILTIN_TOOLS;
use crate::tool_search::{SearchableTools, TOOL_SEARCH, ToolSearch};

/// The tools of a session; it can gain some between turns.
#[derive(Clone, Debug)]
pub(crate) struct Toolbox {
    sources: Vec<Arc<dyn ToolSource>>,
    /// The session's own source, after those of the host.
    of_session: Option<Arc<dyn ToolSource>>,
    tools: Arc<[Arc<dyn Tool>]>,
    /// For each tool, the position of its source.
    from: Vec<usize>,
    /// The tools that are not listed if there are many.
    searchable: SearchableTools,
}

/// What a session has that some tools depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offering {
    pub(crate) people: People,
    pub(crate) has_skills: bool,
}

/// Whether reading the sources gave new tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    Same,
    Changed,
}

/// The beginning of the answer to a call of an unknown tool.
pub(crate) const NO_SUCH_TOOL: &str = "there is no tool";

impl Toolbox {
    /// Empty until the first look: a session that is merely opened needs no schemas.
    pub(crate) fn new(sources: &ToolSources) -> Self {
        let (of_session, tools, from) = (None, Arc::from([]), Vec::new());
        let searchable = SearchableTools::default();
        let search: Vec<Arc<dyn Tool>> = vec![Arc::new(ToolSearch(searchable.clone()))];
        let sources = sources.iter().chain(ToolSources::from(search).iter()).cloned().collect();
        Self { sources, of_session, tools, from, searchable }
    }

    /// Sets which searchable tools are listed, as an earlier process stored it.
    pub(crate) fn set_active(&self, names: Vec<Arc<str>>) {
        self.searchable.activate(names);
    }

    /// The active tools, in the order in which they were found.
    pub(crate) fn active(&self) -> Vec<Arc<str>> {
        self.searchable.active()
    }

    /// Sets the session's own source from the next look on; tools of a previous source keep their places.
    pub(crate) fn set_own(&mut self, servers: Arc<dyn SessionServers>) {
        self.searchable.set_servers(servers.clone());
        self.of_session = Some(servers);
    }

    /// Appends new tools of the sources. Known tools keep their places, so that a provider's cache of earlier
    /// requests stays valid. A tool that its source has lost stays, too, and says so when it is called; a tool
    /// that its source has made again replaces the old one. Of two tools with one name from different sources,
    /// the first stays.
    pub(crate) fn look(&mut self) -> Looked {
        let (mut tools, mut looked) = (self.tools.to_vec(), Looked::Same);
        let mut places: HashMap<Arc<str>, usize> =
            tools.iter().enumerate().map(|(at, tool)| (tool.spec().id.clone(), at)).collect();
        for (number, source) in self.sources.iter().chain(&self.of_session).enumerate() {
            for tool in source.tools().iter() {
                match places.get(&tool.spec().id) {
                    Some(at) if self.from[*at] != number || Arc::ptr_eq(&tools[*at], tool) => continue,
                    Some(at) => tools[*at] = tool.clone(),
                    None => {
                        places.insert(tool.spec().id.clone(), tools.len());
                        self.from.push(number);
                        tools.push(tool.clone());
                    }
                }
                looked = Looked::Changed;
            }
        }
        if looked == Looked::Changed {
            self.tools = tools.into();
            let searchable = self.tools.iter().filter(|tool| tool.is_searchable());
            self.searchable.set(searchable.map(|tool| tool.spec().clone()).collect());
        }
        looked
    }

    /// Adds a tool without a source, unless it is there already.
    pub(crate) fn add(&mut self, tool: Arc<dyn Tool>) -> Looked {
        if self.tools.iter().any(|known| known.spec().id == tool.spec().id) {
            return Looked::Same;
        }
        self.tools = self.tools.iter().cloned().chain([tool]).collect();
        self.from.push(usize::MAX);
        Looked::Changed
    }

    /// What this agent with this model may call, in order; nothing that an agent above it may not call.
    /// Searchable tools come last, in the order in which the model learned of them, so that earlier ones keep
    /// their places.
    pub(crate) fn offer(
        &self,
        agent: &Agent,
        above: &[Agent],
        model: &ModelInfo,
        session: Offering,
    ) -> OfferedTools {
        let can_work = |tool: &&Arc<dyn Tool>| {
            let has_person = !tool.needs_person() || session.people == People::Present;
            let has_skills = !tool.needs_skills() || session.has_skills;
            has_person && has_skills && (model.images || !tool.needs_images())
        };
        let is_offered = |spec: &&ToolSpec| {
            // Only a session that a person opened has a mode to change.
            let has_mode = above.is_empty() || spec.kind != ToolKind::SwitchMode;
            has_mode && above.iter().chain([agent]).all(|agent| agent.is_offered(spec))
        };
        let is_searched = self.searchable.is_needed();
        let is_search = |tool: &Arc<dyn Tool>| *tool.spec().id == *TOOL_SEARCH;
        let (appended, listed): (Vec<_>, Vec<_>) =
            self.tools.iter().filter(can_work).partition(|tool| tool.is_searchable() || is_search(tool));
        let specs = listed.into_iter().map(|tool| tool.spec());
        let specs = specs.filter(is_offered).cloned().collect();
        let appended = appended.into_iter().filter(|tool| is_searched || !is_search(tool));
        let search = self.searchable.search_spec();
        let spec = |tool| if is_search(tool) { &search } else { tool.spec() };
        let appended: Vec<&ToolSpec> = appended.map(spec).filter(is_offered).collect();
        // All searchable tools if they are few, else the search; each after the tools that the model knew
        // before.
        let told = appended.iter().filter(|spec| !is_searched || *spec.id == *TOOL_SEARCH);
        self.searchable.activate(told.map(|spec| spec.id.clone()));
        let found: HashMap<Arc<str>, ToolSpec> =
            appended.into_iter().map(|spec| (spec.id.clone(), spec.clone())).collect();
        OfferedTools {
            tools: self.tools.clone(),
            listed: specs,
            found: found.into(),
            searchable: self.searchable.clone(),
        }
    }

    /// The current identity of the tool with this name in rules; `None` for a tool that never changes, and if
    /// there is none.
    pub(crate) fn identity(&self, permission: &str) -> Option<ToolIdentity> {
        self.tools.iter().find(|tool| tool.permission() == permission)?.identity()
    }

    /// News for the model about earlier calls.
    pub(crate) fn news(&self, session: &SessionId) -> Option<String> {
        news_of(&self.tools, session)
    }

    pub(crate) async fn session_ended(&self, session: &SessionId) {
        join_all(self.tools.iter().map(|tool| tool.session_ended(session))).await;
    }
}

/// The tools of a turn: those that the model is told of, and those that it may call without being told.
#[derive(Clone, Debug)]
pub(crate) struct OfferedTools {
    tools: Arc<[Arc<dyn Tool>]>,
    listed: Arc<[ToolSpec]>,
    /// The tools that are listed once they are active.
    found: Arc<HashMap<Arc<str>, ToolSpec>>,
    searchable: SearchableTools,
}

fn news_of(tools: &[Arc<dyn Tool>], session: &SessionId) -> Option<String> {
    let news: Vec<String> = tools.iter().filter_map(|tool| tool.news(session)).collect();
    (!news.is_empty()).then(|| news.join("\n"))
}

impl OfferedTools {
    /// News for the model about earlier calls.
    pub(crate) fn news(&self, session: &SessionId) -> Option<String> {
        news_of(&self.tools, session)
    }

    /// The tools that the model is told of now; a search during the turn adds to them.
    pub(crate) fn specs(&self) -> Arc<[ToolSpec]> {
        if self.found.is_empty() {
            return self.listed.clone();
        }
        let active = self.searchable.active();
        let active = active.iter().filter_map(|name| self.found.get(name));
        self.listed.iter().chain(active).cloned().collect()
    }

    /// The tool with this name; else the only one whose name differs by case or separators at most, or by a
    /// prefix that some models put before every name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        const BEFORE: [&str; 7] =
            ["functions.", "function.", "tools.", "tool.", "default_api.", "mcp__", "mcp_"];
        let bare = || BEFORE.iter().find_map(|before| name.strip_prefix(before));
        self.find_named(name).or_else(|| self.find_named(bare()?))
    }

    fn find_named(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let exact = self.tools.iter().find(|tool| *tool.spec().id == *name);
        let mut alike = self.tools.iter().filter(|tool| plain(&tool.spec().id) == plain(name));
        let only = alike.next().filter(|_| alike.next().is_none());
        exact.or(only).cloned()
    }

    /// The text for the model about an unknown name: which of our tools does the same, or, if that is unknown,
    /// which tools there are.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let specs = self.specs();
        let is_there = |tool: &str| specs.iter().any(|spec| *spec.id == *tool);
        let inner = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
        let own = specs.iter().find(|spec| plain(&spec.id) == plain(inner));
        let meant = own.map(|spec| (&*spec.id, "")).or_else(|| foreign::meant(name));
        let hint = match meant.filter(|(tool, _)| is_there(tool)) {
            Some((tool, how)) => return format!("{NO_SUCH_TOOL} `{name}`: use `{tool}`{how}"),
            None if foreign::SWITCHES.iter().any(|other| plain(other) == plain(inner)) => {
                ": only the user switches the mode; end your turn and ask for it".to_owned()
            }
            None => String::new(),
        };
        let known: Vec<&str> = specs.iter().map(|spec| &*spec.id).collect();
        format!("{NO_SUCH_TOOL} `{name}`{hint}; available: {}", known.join(", "))
    }
}

/// Our tool with this name, or the one that does what another agent's tool of this name does.
pub(crate) fn own_name(name: &str) -> Option<&'static str> {
    let own = BUILTIN_TOOLS.into_iter().find(|own| plain(own) == plain(name));
    own.or_else(|| foreign::meant(name).map(|(own, _)| own))
}

/// A name without differences that models make: case, `_`, `-`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
