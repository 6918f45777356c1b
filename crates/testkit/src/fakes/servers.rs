//! Servers of sessions that are nothing but a list of tools, ready when a test says so.

use std::sync::{Arc, Mutex};

use attache_core::ports::BoxFuture;
use attache_core::ports::mcp::{
    ServerNotices, ServerState, ServerStatus, SessionServers, ToolServers, WantedServers,
};
use attache_core::ports::tool::{
    Effect, Site, Tool, ToolKind, ToolOutcome, ToolPlan, ToolRuntime, ToolSource, ToolSpec, Workspace,
};
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
    closed: Mutex<usize>,
}

impl FakeServers {
    pub fn new(names: &[&str]) -> Self {
        Self(Arc::new(FakeServerState {
            tools: Mutex::new(tools(names, 0)),
            is_ready: watch::Sender::new(true),
            opened: Mutex::default(),
            closed: Mutex::default(),
        }))
    }

    /// They have these tools from now on, which are others than those with the same names before.
    pub fn change(&self, names: &[&str], identity: u64) {
        *self.0.tools.lock().unwrap() = tools(names, identity);
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

    fn identity(&self) -> Option<u64> {
        Some(self.identity)
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
        vec![ServerStatus { name: "fake".to_owned(), about: "a fake".to_owned(), state, tools }]
    }

    fn settled(&self) -> BoxFuture<'static, ()> {
        let mut is_ready = self.0.is_ready.subscribe();
        Box::pin(async move { drop(is_ready.wait_for(|is_ready| *is_ready).await) })
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        *self.0.closed.lock().unwrap() += 1;
        Box::pin(std::future::ready(()))
    }
}
