//! Servers of sessions that are nothing but a list of tools, ready when a test says so.

use std::sync::{Arc, Mutex};

use attache_core::ports::mcp::{
    BegunArgument, ServerNotices, ServerPrompt, ServerState, ServerStatus, SessionServers, ToolServers,
    WantedServers, WrittenPrompt,
};
use attache_core::ports::tool::{
    Effect, Site, Tool, ToolIdentity, ToolKind, ToolOutcome, ToolPlan, ToolRuntime, ToolSource, ToolSpec,
    Workspace,
};
use attache_core::ports::{BoxFuture, Delegate};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Every session gets the same tools, `mcp:fake:NAME` in rules. A copy is another handle to the same.
#[derive(Clone, Debug)]
pub struct FakeServers(Arc<FakeServerState>);

#[derive(Debug)]
struct FakeServerState {
    tools: Mutex<Arc<[Arc<dyn Tool>]>>,
    is_ready: watch::Sender<bool>,
    opened: Mutex<Vec<WantedServers>>,
    notices: Mutex<Vec<ServerNotices>>,
    prompts: Mutex<Arc<[ServerPrompt]>>,
    /// The next message to the model tells it.
    resource_news: Mutex<Option<String>>,
    closed: Mutex<usize>,
}

impl FakeServers {
    pub fn new(names: &[&str]) -> Self {
        Self(Arc::new(FakeServerState {
            tools: Mutex::new(tools(names, 0)),
            is_ready: watch::Sender::new(true),
            opened: Mutex::default(),
            notices: Mutex::default(),
            prompts: Mutex::default(),
            resource_news: Mutex::default(),
            closed: Mutex::default(),
        }))
    }

    /// They have these tools from now on, which are others than those with the same names before.
    pub fn change(&self, names: &[&str], identity: u64) {
        *self.0.tools.lock().unwrap() = tools(names, identity);
    }

    /// They offer these prompts from now on, and say so. One is written out as its arguments; an argument that
    /// is called `slow` is never done.
    pub fn offer_prompts(&self, prompts: &[ServerPrompt]) {
        *self.0.prompts.lock().unwrap() = prompts.into();
        self.0.notices.lock().unwrap().iter().for_each(ServerNotices::prompts_changed);
    }

    /// A resource that the model has read is another now.
    pub fn tell_resource(&self, news: &str) {
        *self.0.resource_news.lock().unwrap() = Some(news.to_owned());
    }

    pub fn set_ready(&self, is_ready: bool) {
        self.0.is_ready.send_replace(is_ready);
    }

    /// What sessions asked for, in order.
    pub fn opened(&self) -> Vec<WantedServers> {
        self.0.opened.lock().unwrap().clone()
    }

    pub fn closed(&self) -> usize {
        *self.0.closed.lock().unwrap()
    }
}

fn tools(names: &[&str], identity: u64) -> Arc<[Arc<dyn Tool>]> {
    names.iter().map(|name| Arc::new(FakeTool::new(name, identity)) as Arc<dyn Tool>).collect()
}

#[derive(Debug)]
struct FakeTool {
    spec: ToolSpec,
    permission: String,
    identity: u64,
}

impl FakeTool {
    fn new(name: &str, identity: u64) -> Self {
        let spec = ToolSpec {
            id: format!("fake_{name}").into(),
            description: format!("does {name}").into(),
            parameters: Arc::new(json!({ "type": "object" })),
            kind: ToolKind::Other,
            effect: Effect::Mutates,
            hidden: false,
        };
        Self { spec, permission: format!("mcp:fake:{name}"), identity }
    }
}

impl Tool for FakeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permission(&self) -> &str {
        &self.permission
    }

    fn identity(&self) -> Option<ToolIdentity> {
        let identity = self.identity.to_string();
        Some(ToolIdentity::of("fake", &identity, &json!({ "properties": { identity.as_str(): {} } })))
    }

    fn is_searchable(&self) -> bool {
        true
    }

    fn plan(&self, _input: &Value, _site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        Box::pin(std::future::ready(Ok(ToolPlan::new(Vec::new(), self.spec.presentation()))))
    }

    fn run(&self, _input: Value, _runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        let outcome = ToolOutcome::Output { data: json!("done"), presentation: self.spec.presentation() };
        Box::pin(std::future::ready(outcome))
    }
}

impl ToolServers for FakeServers {
    fn open(
        &self,
        _workspace: Arc<Workspace>,
        wanted: WantedServers,
        notices: ServerNotices,
    ) -> Arc<dyn SessionServers> {
        for entry in &wanted.of_client {
            notices.tell(format!("{} was asked for", entry.name), "by the client".to_owned());
        }
        self.0.opened.lock().unwrap().push(wanted);
        self.0.notices.lock().unwrap().push(notices);
        Arc::new(FakeSessionServers(self.0.clone()))
    }
}

#[derive(Debug)]
struct FakeSessionServers(Arc<FakeServerState>);

impl ToolSource for FakeSessionServers {
    fn tools(&self) -> Arc<[Arc<dyn Tool>]> {
        match *self.0.is_ready.borrow() {
            true => self.0.tools.lock().unwrap().clone(),
            false => Arc::new([]),
        }
    }
}

impl SessionServers for FakeSessionServers {
    fn status(&self) -> Vec<ServerStatus> {
        let tools = self.tools().iter().map(|tool| tool.spec().id.clone()).collect();
        let state = if *self.0.is_ready.borrow() { ServerState::Ready } else { ServerState::Connecting };
        let prompts = self.prompts().iter().map(|prompt| prompt.command.clone()).collect();
        vec![ServerStatus { name: "fake".to_owned(), about: "a fake".to_owned(), state, tools, prompts }]
    }

    fn settled(&self) -> BoxFuture<'static, ()> {
        let mut is_ready = self.0.is_ready.subscribe();
        Box::pin(async move { drop(is_ready.wait_for(|is_ready| *is_ready).await) })
    }

    fn prompts(&self) -> Arc<[ServerPrompt]> {
        match *self.0.is_ready.borrow() {
            true => self.0.prompts.lock().unwrap().clone(),
            false => Arc::new([]),
        }
    }

    fn write_out(
        &self,
        command: &str,
        arguments: Vec<(String, String)>,
    ) -> BoxFuture<'static, Result<WrittenPrompt, String>> {
        if arguments.iter().any(|(name, _)| name == "slow") {
            return Box::pin(std::future::pending());
        }
        let said: Vec<String> = arguments.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        let text = format!("{command} says{}", said.concat());
        Box::pin(std::future::ready(Ok(WrittenPrompt { text, pictures: Vec::new() })))
    }

    fn suggestions(
        &self,
        _command: &str,
        _given: Vec<(String, String)>,
        argument: BegunArgument<'_>,
    ) -> BoxFuture<'static, Vec<String>> {
        let all = [format!("some {}", argument.name), "another".to_owned()];
        let fitting = all.into_iter().filter(|value| value.starts_with(argument.typed));
        Box::pin(std::future::ready(fitting.collect()))
    }

    fn resource_news(&self) -> Option<String> {
        self.0.resource_news.lock().unwrap().take()
    }

    fn log_in(&self, name: &str, client: Option<Arc<dyn Delegate>>) -> Result<(), String> {
        match name {
            "fake" => Ok(()),
            other => Err(format!("no {other} to log in to, by {} clients", client.into_iter().count())),
        }
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        *self.0.closed.lock().unwrap() += 1;
        Box::pin(std::future::ready(()))
    }
}
