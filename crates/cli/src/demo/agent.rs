//! The other end of the demo: starts the real binary as an editor would and speaks ACP to it.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use attache_rpc::limits::MAX_LINE_BYTES;
use attache_rpc::{
    Connection, ErrorObject, Handler, IncomingRequest, Notification, Options, Peer, json_lines,
};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// Something the agent said or asked.
#[derive(Debug)]
pub(super) enum AgentEvent {
    Update(Value),
    Permission(Value),
}

pub(super) struct DemoAgent {
    child: Child,
    peer: Peer,
    _connection: Connection,
    events: tokio::sync::Mutex<mpsc::UnboundedReceiver<AgentEvent>>,
}

/// Turns incoming messages into events; answers every question with yes, as the demo's user would.
struct Editor {
    events: mpsc::UnboundedSender<AgentEvent>,
}

impl Handler for Editor {
    fn request(&self, request: IncomingRequest) {
        if request.method != "session/request_permission" {
            request.responder.error(ErrorObject::method_not_found(&request.method));
            return;
        }
        let params =
            request.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        // The demo may be over; then nothing receives it.
        drop(self.events.send(AgentEvent::Permission(params)));
        request.responder.ok(&json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }));
    }

    fn notification(&self, notification: Notification) {
        if let Some(params) = notification.params.and_then(|params| serde_json::from_str(params.get()).ok()) {
            drop(self.events.send(AgentEvent::Update(params)));
        }
    }

    fn closed(&self) {}
}

impl DemoAgent {
    pub(super) fn spawn(home: &Path) -> Result<Self> {
        let mut child = command(home)?
            .arg("acp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("can't start the agent")?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the agent has no pipes");
        };
        let (sender, events) = mpsc::unbounded_channel();
        let (source, sink) = json_lines((stdout, stdin), MAX_LINE_BYTES);
        let (peer, connection) =
            Peer::start(source, sink, Options::default(), |_| Arc::new(Editor { events: sender }));
        Ok(Self { child, peer, _connection: connection, events: tokio::sync::Mutex::new(events) })
    }

    pub(super) async fn initialize(&self) -> Result<Value> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {},
            "clientInfo": { "name": "attache-demo", "version": env!("CARGO_PKG_VERSION") },
        });
        self.call("initialize", params).await
    }

    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value> {
        self.call_with(method, params, |_| {}).await
    }

    /// Calls a method and shows what arrives before the answer.
    pub(super) async fn call_with(
        &self,
        method: &str,
        params: Value,
        mut show: impl FnMut(AgentEvent),
    ) -> Result<Value> {
        let mut events = self.events.lock().await;
        let request = self.peer.request(method, &params, None);
        tokio::pin!(request);
        let answer = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => show(event),
                answer = &mut request => break answer,
            }
        };
        while let Ok(event) = events.try_recv() {
            show(event);
        }
        let answer = answer.map_err(|error| anyhow::anyhow!("{method}: {error}"))?;
        Ok(serde_json::from_str(answer.get())?)
    }

    pub(super) async fn prompt(
        &self,
        session: &str,
        text: &str,
        show: impl FnMut(AgentEvent),
    ) -> Result<Value> {
        self.call_with("session/prompt", prompt(session, text), show).await
    }

    /// Sends a prompt and returns after this many updates, while the turn still runs.
    pub(super) async fn prompt_until(
        &self,
        session: &str,
        text: &str,
        updates: usize,
        mut show: impl FnMut(AgentEvent),
    ) -> Result<()> {
        let mut events = self.events.lock().await;
        let params = prompt(session, text);
        let request = self.peer.request("session/prompt", &params, None);
        tokio::pin!(request);
        let mut seen = 0;
        while seen < updates {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    show(event);
                    seen += 1;
                }
                answer = &mut request => bail!("the story ended too early: {answer:?}"),
            }
        }
        // Dropping the request would send a cancel, but we kill the process before that could matter.
        Ok(())
    }

    /// Sends SIGKILL, as the kernel or a user would. Returns how the process ended.
    pub(super) async fn kill(mut self) -> Result<String> {
        self.child.start_kill()?;
        Ok(self.child.wait().await?.to_string())
    }

    /// Closes its stdin, as an editor that quits does; true if it ends by itself in time.
    pub(super) async fn leave(self) -> Result<bool> {
        let Self { mut child, peer, _connection, events } = self;
        drop((peer, events));
        _connection.drain(Duration::from_secs(1)).await;
        let ended = tokio::time::timeout(Duration::from_secs(3), child.wait()).await;
        Ok(matches!(ended, Ok(Ok(status)) if status.success()))
    }

    pub(super) fn sessions_list(home: &Path) -> Result<String> {
        let output = std::process::Command::new(std::env::current_exe()?)
            .env("ATTACHE_HOME", home)
            .args(["sessions", "list"])
            .output()?;
        Ok(String::from_utf8(output.stdout)?)
    }
}

fn command(home: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("can't find the own binary")?);
    command.env("ATTACHE_HOME", home);
    Ok(command)
}

fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}
