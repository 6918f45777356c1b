//! One tool of a server, as a session's loop sees it. Whatever its server says of it, it may do anything: rules
//! name it `mcp:SERVER:TOOL`, and without one its user is asked.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use attache_core::ports::BoxFuture;
use attache_core::ports::mcp::ServerState;
use attache_core::ports::tool::{
    Effect, OutcomeMetadata, Presentation, Shown, Site, Tool, ToolIdentity, ToolOutcome, ToolPlan,
    ToolRuntime, ToolSpec,
};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use crate::client::{CallFailure, ServerClient};
use crate::handler::{Caller, ProgressNews};
use crate::limits::{PROGRESS_LINES, PROGRESS_PAUSE};
use crate::listing::{ListedAction, ListedTool, shortened};
use crate::names::{digest, sanitised};
use crate::resources::ResourceWish;
use crate::result::{self, fenced};
use crate::sampling::SamplingBudget;
use crate::schema;
use crate::server::ServerView;
use crate::subscriptions::ReadResources;

#[derive(Debug)]
pub(crate) struct McpTool {
    spec: ToolSpec,
    permission: String,
    server: String,
    listed: ListedTool,
    view: watch::Receiver<ServerView>,
    session: Arc<SessionShare>,
    identity: ToolIdentity,
}

/// State that a session keeps of one server beside its tools.
#[derive(Debug, Default)]
pub(crate) struct SessionShare {
    pub(crate) read: ReadResources,
    /// State that all its servers share.
    pub(crate) budget: Arc<SamplingBudget>,
}

/// The last lines that a server has said of a call, until they are shown.
#[derive(Debug, Default)]
struct LiveLines {
    /// Why a lock: those who add and who shows are two futures. Held for a line only.
    lines: Mutex<VecDeque<String>>,
    news: Notify,
}

impl LiveLines {
    fn add(&self, line: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(line);
        if lines.len() > PROGRESS_LINES {
            lines.pop_front();
        }
        self.news.notify_one();
    }

    fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// What is new at once, then as often as anybody can look. Never ends.
    async fn show(&self, show: impl Fn(String)) -> Infallible {
        loop {
            self.news.notified().await;
            show(self.text());
            tokio::time::sleep(PROGRESS_PAUSE).await;
        }
    }
}

impl McpTool {
    /// `name`: as models call it. `reached`: how its server is, in words that hold no key.
    pub(crate) fn new(
        name: String,
        server: &str,
        reached: &str,
        listed: ListedTool,
        view: watch::Receiver<ServerView>,
        session: Arc<SessionShare>,
    ) -> Self {
        let spec = ToolSpec {
            id: name.into(),
            description: listed.description.as_str().into(),
            parameters: listed.schema.clone(),
            kind: listed.kind,
            // A server may call anything read-only.
            effect: Effect::Mutates,
            hidden: false,
        };
        let identity = ToolIdentity::of(reached, &listed.description, &listed.schema);
        let permission = permission(server, &listed.name);
        Self { spec, permission, server: server.to_owned(), listed, view, session, identity }
    }

    pub(crate) fn listed(&self) -> &ListedTool {
        &self.listed
    }

    fn presentation(&self) -> Presentation {
        let title = format!("{}: {}", shortened(&self.server, 40), self.listed.title);
        Presentation { title, ..self.spec.presentation() }
    }

    /// The server, or why it can't be called.
    fn client(&self) -> Result<ServerClient, String> {
        let view = self.view.borrow();
        if let Some(client) = &view.client {
            let is_there = view.tools.iter().any(|tool| tool.name == self.listed.name);
            return match is_there {
                true => Ok(client.clone()),
                false => {
                    Err(format!("the mcp server {} no longer has the tool {}", self.server, self.listed.name))
                }
            };
        }
        let why = match &view.state {
            ServerState::Connecting => "it is still connecting",
            ServerState::Ready => "it was closed",
            ServerState::Failed(why) | ServerState::WaitingForConsent(why) => why,
        };
        Err(format!("mcp server {} is unavailable: {why}", self.server))
    }

    async fn call(&self, input: Value, runtime: ToolRuntime) -> ToolOutcome {
        let mut presentation = self.presentation();
        let client = match self.client() {
            Ok(client) => client,
            Err(text) => return ToolOutcome::Error { text, presentation: Some(presentation) },
        };
        let began = Instant::now();
        let live = LiveLines::default();
        let show = |news: ProgressNews| live.add(news.line());
        let caller = Caller {
            call_id: runtime.call_id.clone(),
            client: runtime.site.client.clone(),
            side_model: runtime.side_model.clone(),
            budget: self.session.budget.clone(),
            questions: Arc::default(),
        };
        let calling = async {
            match self.listed.action {
                ListedAction::Call => client.call(&self.listed, &input, &caller, show).await,
                ListedAction::Resources => match ResourceWish::of(&input) {
                    Ok(wish) => client.resources(wish, &self.session.read, &caller).await,
                    Err(problem) => Err(CallFailure::Refused(problem.to_owned())),
                },
            }
        };
        let answer = tokio::select! {
            biased;
            answer = calling => answer,
            // Dropping the call cancels it at the server.
            () = runtime.cancel.cancelled() => Err(CallFailure::Refused("cancelled".to_owned())),
            never = live.show(|text| {
                let content = vec![Shown::Text { text: fenced(&text) }];
                runtime.progress.show(Presentation { content, ..self.presentation() });
            }) => match never {},
        };
        let metadata = OutcomeMetadata {
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..OutcomeMetadata::default()
        };
        presentation.metadata = Some(metadata);
        let text = match answer {
            Ok(answer) => return result::outcome(&answer, &self.spec.id, presentation, &runtime).await,
            Err(CallFailure::Refused(why)) => format!("{}: {why}", self.spec.id),
            Err(CallFailure::Lost) => {
                format!("mcp server {} ended during the call; it is unknown what the call did", self.server)
            }
        };
        ToolOutcome::Error { text, presentation: Some(presentation) }
    }
}

/// How rules name a tool. A name with anything but letters, digits, `_` and `-` gets digits of its own: no
/// server makes a name that a rule takes for a pattern, or for another tool.
fn permission(server: &str, tool: &str) -> String {
    let part = |name: &str| match sanitised(name) {
        plain if plain == name => plain,
        plain => format!("{plain}-{:08x}", digest(&[name]) as u32),
    };
    format!("mcp:{}:{}", part(server), part(tool))
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permission(&self) -> &str {
        &self.permission
    }

    fn identity(&self) -> Option<ToolIdentity> {
        Some(self.identity.clone())
    }

    fn is_searchable(&self) -> bool {
        true
    }

    fn plan(&self, input: &Value, _site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let problem = schema::problem(&self.spec.parameters, input);
        let planned = match problem {
            Some(problem) => Err(format!("{}: {problem}", self.spec.id)),
            None => Ok(ToolPlan::new(Vec::new(), self.presentation())),
        };
        Box::pin(std::future::ready(planned))
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(self.call(input, runtime))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn however_much_is_said_it_is_shown_as_often_as_anybody_looks_and_to_the_last_line() {
        let (live, shown) = (LiveLines::default(), Mutex::new(Vec::new()));
        let saying = async {
            for number in 0..10_000 {
                live.add(format!("line {number}"));
                if number % 100 == 0 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            tokio::time::sleep(PROGRESS_PAUSE * 2).await;
        };
        tokio::select! {
            biased;
            () = saying => {}
            never = live.show(|text| shown.lock().unwrap().push(text)) => match never {},
        }
        let shown = shown.into_inner().unwrap();
        assert!((10..=13).contains(&shown.len()), "{}", shown.len());
        assert_eq!(shown[0], "line 0");
        let last = shown.last().unwrap();
        assert!(last.ends_with("line 9999") && last.lines().count() == PROGRESS_LINES, "{last}");
    }

    #[test]
    fn no_name_of_a_tool_is_a_pattern() {
        assert_eq!(permission("github", "create_issue"), "mcp:github:create_issue");
        for (server, tool) in [("github", "*"), ("github", "a:b"), ("a:b", "c"), ("g", "a b"), ("g", "")] {
            let permission = permission(server, tool);
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-:".contains(c);
            assert!(permission.chars().all(is_plain) && permission.matches(':').count() == 2, "{permission}");
        }
        assert_ne!(permission("g", "a.b"), permission("g", "a_b"));
    }
}
