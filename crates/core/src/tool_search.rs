//! Finds tools by words if a session has too many to list them all in every request. A tool that was found once
//! can be called for the rest of the session. BM25 over name, description and names of arguments ranks them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::arguments::{accepted, left_out};
use crate::limits::{SEARCHED_TOOLS_FOUND, SEARCHED_TOOLS_SHOWN, SERVER_WORDS, SERVERS_NAMED};
use crate::ports::mcp::{ServerState, ServerStatus};
use crate::ports::tool::{
    Effect, Presentation, Shown, Site, Tool, ToolKind, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec,
};
use crate::ports::{BoxFuture, SessionServers};

/// The tools to search, and those already found. A copy refers to the same state.
#[derive(Clone, Debug, Default)]
pub struct SearchableTools(Arc<Mutex<SearchState>>);

/// Why a lock: the session changes the tools between turns, and calls of its turn search them.
#[derive(Debug, Default)]
struct SearchState {
    specs: Vec<ToolSpec>,
    /// Built at the first search.
    index: Option<Arc<ToolIndex>>,
    /// The tools found or listed so far, in that order.
    active: Vec<Arc<str>>,
    /// The servers of the tools; `None` if the host has no servers.
    servers: Option<Arc<dyn SessionServers>>,
    told: ServersInDescription,
}

/// What the description says about servers. It stays the same to the byte while the servers stay the same: a
/// provider's cache of earlier requests is worth more than the latest count.
#[derive(Debug, Default)]
struct ServersInDescription {
    names: Vec<String>,
    text: String,
}

impl SearchableTools {
    fn lock(&self) -> MutexGuard<'_, SearchState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the tools to search.
    pub fn set(&self, specs: Vec<ToolSpec>) {
        let mut state = self.lock();
        state.specs = specs;
        state.index = None;
    }

    /// Whether there are too many to list all of them.
    pub(crate) fn is_needed(&self) -> bool {
        self.lock().specs.len() > SEARCHED_TOOLS_SHOWN
    }

    pub(crate) fn active(&self) -> Vec<Arc<str>> {
        self.lock().active.clone()
    }

    pub(crate) fn activate(&self, names: impl IntoIterator<Item = Arc<str>>) {
        let mut state = self.lock();
        for name in names {
            if !state.active.contains(&name) {
                state.active.push(name);
            }
        }
    }

    pub(crate) fn set_servers(&self, servers: Arc<dyn SessionServers>) {
        self.lock().servers = Some(servers);
    }

    /// The description of the search for the model, which also names the servers.
    pub(crate) fn search_spec(&self) -> ToolSpec {
        let servers = self.with_tools();
        let mut state = self.lock();
        let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
        if state.told.names != names {
            let text =
                if servers.is_empty() { String::new() } else { format!(" There are {}.", counts(&servers)) };
            state.told = ServersInDescription { names, text };
        }
        ToolSpec { description: format!("{}{}", SPEC.description, state.told.text).into(), ..SPEC.clone() }
    }

    /// The current state of the servers.
    fn status(&self) -> Vec<ServerStatus> {
        let servers = self.lock().servers.clone();
        servers.map(|servers| servers.status()).unwrap_or_default()
    }

    fn with_tools(&self) -> Vec<ServerStatus> {
        self.status().into_iter().filter(|server| !server.tools.is_empty()).collect()
    }

    /// Returns the best matches and makes them active.
    pub fn find(&self, query: &str) -> Vec<ToolSpec> {
        self.best(query).0
    }

    /// The same, and how many more tools match.
    fn best(&self, query: &str) -> (Vec<ToolSpec>, usize) {
        let mut state = self.lock();
        let index = match &state.index {
            Some(index) => index.clone(),
            None => {
                let made = Arc::new(ToolIndex::of(&state.specs));
                state.index = Some(made.clone());
                made
            }
        };
        if let Some(named) = named(query, &state.specs) {
            drop(state);
            self.activate(named.iter().map(|spec| spec.id.clone()));
            return (named, 0);
        }
        let all = index.ranked(query);
        let best = all.iter().take(SEARCHED_TOOLS_FOUND);
        let found: Vec<ToolSpec> = best.map(|at| state.specs[*at].clone()).collect();
        drop(state);
        self.activate(found.iter().map(|spec| spec.id.clone()));
        let more = all.len() - found.len();
        (found, more)
    }
}

/// The tools of a query that only names some, in the form that models use with other agents (`select:one,two`):
/// then no others are wanted.
fn named(query: &str, specs: &[ToolSpec]) -> Option<Vec<ToolSpec>> {
    let names = query.trim().strip_prefix("select:").unwrap_or(query);
    let names = names.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty());
    let found = names.map(|name| specs.iter().find(|spec| *spec.id == *name).cloned());
    found.collect::<Option<Vec<_>>>().filter(|found| (1..=SEARCHED_TOOLS_FOUND).contains(&found.len()))
}

/// `github (43 tools), mail (2 tools)`.
fn counts(servers: &[ServerStatus]) -> String {
    let count = |server: &ServerStatus| {
        let tools = server.tools.len();
        format!("{} ({tools} {})", short(&server.name), if tools == 1 { "tool" } else { "tools" })
    };
    let named = servers.iter().take(SERVERS_NAMED).map(count);
    let more = servers.len().saturating_sub(SERVERS_NAMED);
    named.chain((more > 0).then(|| format!("{more} more servers"))).collect::<Vec<_>>().join(", ")
}

/// The servers whose tools can't be found now, and the reason, a line each.
fn unavailable(servers: &[ServerStatus]) -> Vec<String> {
    let line = |server: &ServerStatus| {
        let why = server.state.reason().map(|why| format!(": {}", short(why))).unwrap_or_default();
        format!("The server {} is not available: {}{why}", short(&server.name), server.state.as_str())
    };
    let lost = servers.iter().filter(|server| server.state != ServerState::Ready);
    lost.take(SERVERS_NAMED).map(line).collect()
}

/// A server's own text, cut to one line.
fn short(text: &str) -> String {
    crate::legible::visible(text).chars().take(SERVER_WORDS).collect()
}

/// How much a repeated word counts (BM25), and how much a long text reduces the score.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.75;
/// A word in the name counts more than one in the description.
const NAME_WEIGHT: f32 = 3.0;

/// Which words occur in which tools.
#[derive(Debug)]
struct ToolIndex {
    words: HashMap<String, Vec<(u32, f32)>>,
    lengths: Vec<f32>,
    average: f32,
}

impl ToolIndex {
    fn of(specs: &[ToolSpec]) -> Self {
        let mut words: HashMap<String, Vec<(u32, f32)>> = HashMap::new();
        let mut lengths = Vec::with_capacity(specs.len());
        for (at, spec) in (0_u32..).zip(specs) {
            let mut counts: HashMap<String, f32> = HashMap::new();
            let mut add = |text: &str, weight: f32| {
                for word in words_of(text) {
                    *counts.entry(word).or_default() += weight;
                }
            };
            add(&spec.id, NAME_WEIGHT);
            add(&spec.description, 1.0);
            let arguments = spec.parameters.get("properties").and_then(Value::as_object);
            arguments.into_iter().flatten().for_each(|(name, _)| add(name, 1.0));
            lengths.push(counts.values().sum());
            counts.into_iter().for_each(|(word, count)| words.entry(word).or_default().push((at, count)));
        }
        let average = lengths.iter().sum::<f32>() / (lengths.len().max(1) as f32);
        Self { words, lengths, average: average.max(1.0) }
    }

    /// The positions of the tools with a matching word, best first; ties keep their order.
    fn ranked(&self, query: &str) -> Vec<usize> {
        let all = self.lengths.len() as f32;
        let mut scores: HashMap<u32, f32> = HashMap::new();
        for word in words_of(query) {
            let Some(places) = self.words.get(&word) else { continue };
            let have = places.len() as f32;
            let rarity = (1.0 + (all - have + 0.5) / (have + 0.5)).ln();
            for (at, count) in places {
                let length = 1.0 - LENGTH + LENGTH * self.lengths[*at as usize] / self.average;
                *scores.entry(*at).or_default() +=
                    rarity * count * (SATURATION + 1.0) / (count + SATURATION * length);
            }
        }
        let mut ranked: Vec<(u32, f32)> = scores.into_iter().collect();
        ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        ranked.into_iter().map(|(at, _)| at as usize).collect()
    }
}

/// The words of a text in lower case, split at other characters and where the case changes; without a plural's
/// ending.
fn words_of(text: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut was_small = false;
    for character in text.chars() {
        let begins = !character.is_alphanumeric() || (was_small && character.is_uppercase());
        if begins && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
        was_small = character.is_lowercase();
    }
    words.push(word);
    let singular = |word: String| match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem.to_owned(),
        _ => word,
    };
    words.into_iter().filter(|word| !word.is_empty()).map(singular).collect()
}

/// The name of the search tool.
pub(crate) const TOOL_SEARCH: &str = "tool_search";

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    id: TOOL_SEARCH.into(),
    description:
        "Searches the tools of MCP servers, which are too many to be listed here. What is found can be \
                  called from then on."
            .into(),
    parameters: Arc::new(json!({
        "type": "object",
        "properties": { "query": { "type": "string", "description": "Words for what the tool should do." } },
        "required": ["query"],
        "additionalProperties": false,
    })),
    kind: ToolKind::Search,
    effect: Effect::SessionOnly,
    hidden: false,
});

#[derive(Debug)]
pub(crate) struct ToolSearch(pub(crate) SearchableTools);

fn query(input: &Value) -> Result<String, String> {
    let arguments = accepted(&SPEC, input).map_err(|problem| format!("{TOOL_SEARCH}: {problem}"))?;
    let query = arguments.get("query").and_then(Value::as_str).map(str::trim);
    let query = query.filter(|query| !query.is_empty());
    query.map(str::to_owned).ok_or_else(|| "tool_search: field `query` must be a text with words".to_owned())
}

impl ToolSearch {
    fn presentation(query: &str) -> Presentation {
        let shown: String = crate::legible::visible(query).chars().take(80).collect();
        Presentation { title: format!("Search tools for \"{shown}\""), ..SPEC.presentation() }
    }

    fn search(&self, query: &str) -> ToolOutcome {
        let (found, more) = self.0.best(query);
        let servers = self.0.with_tools();
        let line = |spec: &ToolSpec| format!("{}: {}", spec.id, spec.description);
        let mut lines: Vec<String> = found.iter().map(line).collect();
        lines.push(match (found.is_empty(), more) {
            (true, _) if servers.is_empty() => "No tool has any of these words; try others.".to_owned(),
            (true, _) => {
                format!("No tool has any of these words; try others. There are {}.", counts(&servers))
            }
            (false, 0) => "\nThese can be called now.".to_owned(),
            (false, more) => {
                format!("\nThese can be called now. {more} more have some of these words: say more exactly what you need.")
            }
        });
        lines.extend(unavailable(&self.0.status()));
        let text = lines.join("\n");
        let names: Vec<String> = found.iter().map(|spec| format!("- `{}`", spec.id)).collect();
        let names = if names.is_empty() { "Nothing was found.".to_owned() } else { names.join("\n") };
        let mut presentation = Self::presentation(query);
        presentation.content.push(Shown::Text { text: names });
        ToolOutcome::Output { data: Value::String(text), presentation }
    }
}

impl Tool for ToolSearch {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn plan(&self, input: &Value, _site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let note = left_out(&SPEC, input);
        let plan = |query: String| ToolPlan { note, ..ToolPlan::new(Vec::new(), Self::presentation(&query)) };
        let planned = query(input).map(plan);
        Box::pin(std::future::ready(planned))
    }

    fn run(&self, input: Value, _runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            match query(&input) {
                Ok(query) => self.search(&query),
                Err(text) => ToolOutcome::Error { text, presentation: None },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::mcp::{BegunArgument, ServerPrompt, WrittenPrompt};

    fn spec(id: &str, description: &str, arguments: &[&str]) -> ToolSpec {
        let properties: serde_json::Map<String, Value> =
            arguments.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        ToolSpec {
            id: id.into(),
            description: description.into(),
            parameters: Arc::new(json!({ "type": "object", "properties": properties })),
            ..SPEC.clone()
        }
    }

    fn found(specs: &[ToolSpec], query: &str) -> Vec<String> {
        let tools = SearchableTools::default();
        tools.set(specs.to_vec());
        tools.find(query).iter().map(|spec| spec.id.to_string()).collect()
    }

    #[test]
    fn names_come_before_descriptions_and_arguments() {
        let specs = [
            spec("git_status", "Shows what has changed", &["repo"]),
            spec("github_createIssue", "Opens a ticket", &["title", "labels"]),
            spec("mail_send", "Sends a letter about an issue", &["to"]),
            spec("other_tool", "Does something else", &["issueNumber"]),
        ];
        assert_eq!(found(&specs, "create issues")[0], "github_createIssue");
        assert_eq!(found(&specs, "ISSUE").len(), 3);
        assert_eq!(found(&specs, "label"), ["github_createIssue"]);
        assert_eq!(found(&specs, "nothing of it"), Vec::<String>::new());
    }

    #[test]
    fn what_was_found_stays_in_the_order_it_was_found() {
        let tools = SearchableTools::default();
        tools.set(vec![spec("a_one", "first", &[]), spec("b_two", "second", &[])]);
        tools.find("second");
        tools.find("first second");
        assert_eq!(tools.active(), ["b_two".into(), "a_one".into()] as [Arc<str>; 2]);
    }

    /// Servers with given states and numbers of tools.
    #[derive(Debug)]
    struct Several(Vec<ServerStatus>);

    impl crate::ports::tool::ToolSource for Several {
        fn tools(&self) -> Arc<[Arc<dyn Tool>]> {
            Arc::new([])
        }
    }

    impl SessionServers for Several {
        fn status(&self) -> Vec<ServerStatus> {
            self.0.clone()
        }

        fn settled(&self) -> BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }

        fn prompts(&self) -> Arc<[ServerPrompt]> {
            Arc::new([])
        }

        fn write_out(
            &self,
            _: &str,
            _: Vec<(String, String)>,
        ) -> BoxFuture<'static, Result<WrittenPrompt, String>> {
            Box::pin(std::future::ready(Err("it has no prompts".to_owned())))
        }

        fn suggestions(
            &self,
            _: &str,
            _: Vec<(String, String)>,
            _: BegunArgument<'_>,
        ) -> BoxFuture<'static, Vec<String>> {
            Box::pin(std::future::ready(Vec::new()))
        }

        fn resource_news(&self) -> Option<String> {
            None
        }

        fn log_in(
            &self,
            _name: &str,
            _client: Option<Arc<dyn crate::ports::Delegate>>,
        ) -> Result<(), String> {
            unreachable!()
        }

        fn close(&self) -> BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    fn server(name: &str, state: ServerState, tools: usize) -> ServerStatus {
        let tools = (0..tools).map(|number| format!("{name}_{number}").into()).collect();
        ServerStatus { name: name.to_owned(), about: String::new(), state, tools, prompts: Vec::new() }
    }

    fn with_servers(servers: Vec<ServerStatus>) -> ToolSearch {
        let tools = SearchableTools::default();
        let listed = servers.iter().flat_map(|server| &server.tools);
        tools.set(listed.map(|id| spec(id, "does something", &[])).collect());
        tools.set_servers(Arc::new(Several(servers)));
        ToolSearch(tools)
    }

    fn told(search: &ToolSearch, query: &str) -> String {
        match search.search(query) {
            ToolOutcome::Output { data: Value::String(text), .. } => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_model_learns_whose_tools_there_are_and_whose_are_missing() {
        let search = with_servers(vec![
            server("github", ServerState::Ready, 40),
            server("mail", ServerState::Failed("it ended\nwith 1".into()), 1),
            server("wiki", ServerState::WaitingForConsent("run `attache mcp allow`".into()), 0),
        ]);
        let spec = search.0.search_spec();
        assert!(
            spec.description.ends_with("There are github (40 tools), mail (1 tool)."),
            "{}",
            spec.description
        );
        let miss = told(&search, "nothing");
        assert!(miss.contains("try others. There are github (40 tools), mail (1 tool)."), "{miss}");
        assert!(miss.contains("\nThe server mail is not available: failed: it ended"), "{miss}");
        assert!(
            miss.ends_with("The server wiki is not available: waiting for consent: run `attache mcp allow`")
        );
        let hit = told(&search, "github");
        assert!(hit.contains("These can be called now. 30 more have some of these words"), "{hit}");
        assert!(told(&search, "mail").contains("These can be called now.\n"), "nothing is left out of one");
    }

    #[test]
    fn the_description_stays_while_the_servers_are_the_same() {
        let search = with_servers(vec![server("github", ServerState::Ready, 40)]);
        let first = search.0.search_spec();
        search.0.set_servers(Arc::new(Several(vec![server("github", ServerState::Ready, 41)])));
        assert_eq!(search.0.search_spec().description, first.description);
        search.0.set_servers(Arc::new(Several(vec![server("mail", ServerState::Ready, 41)])));
        assert_ne!(search.0.search_spec().description, first.description);
    }

    #[test]
    fn five_thousand_tools_are_searched_at_once() {
        let specs: Vec<ToolSpec> = (0..5_000)
            .map(|number| {
                spec(&format!("server_tool{number}"), &format!("does thing {number} with files"), &["path"])
            })
            .collect();
        let tools = SearchableTools::default();
        tools.set(specs);
        tools.find("warm");
        let began = std::time::Instant::now();
        let (found, more) = tools.best("thing 4711 files");
        assert_eq!(more, 5_000 - SEARCHED_TOOLS_FOUND);
        assert_eq!(&*found[0].id, "server_tool4711");
        assert!(found.len() == SEARCHED_TOOLS_FOUND);
        // Far more than the search needs, for slow machines and builds without optimization.
        assert!(began.elapsed() < std::time::Duration::from_millis(200), "{:?}", began.elapsed());
    }
}
