//! A call there and back: attache beside `rmcp`, and beside a task and a thread that write a line and read a
//! line.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use attache_core::ids::{CallId, SessionId};
use attache_core::ports::mcp::{
    HiddenText, OAuthSettings, ServerDeadlines, ServerEntry, ServerNotices, ServerOrigin, ServerRights,
    ServerSampling, ServerTransport, ToolServers, WantedServers,
};
use attache_core::ports::tool::{
    NetworkGrant, Presentation, Progress, Site, Tool, ToolOutcome, ToolRuntime, Workspace, WriteGrant,
};
use attache_core::scope::Guarded;
use attache_mcp::oauth::LoginStore;
use attache_mcp::{HostServers, McpSettings, Variables};
use attache_sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::super::Place;
use super::super::agent::Home;
use super::super::aims::{MCP_CALLS, MCP_RATIO};
use super::super::driven::{Driven, Until};
use super::super::figures::{median, microseconds};
use super::super::raw::Raw;
use super::super::table::{Limit, Row, Table};

/// One call after the other, ours and those of the bare clients in turns, each to a server of its own that is
/// the same program.
pub(super) fn round_trips(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home()?;
    // As many threads as the product has.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (mut ours, mut bare, mut blocking, mut theirs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut limit = Raw::Mcp.start()?;
    let mut rmcp = rmcp_client(place)?;
    let call = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": { "name": "echo", "arguments": { "text": "hello" } },
    });
    let line = format!("{call}\n").into_bytes();
    runtime.block_on(async {
        let server = OwnServer::connect(place, &home).await?;
        let mut client = BareClient::start()?;
        for _ in 0..MCP_CALLS {
            ours.push(server.call().await?);
            bare.push(client.call(&line).await?);
            blocking.push(limit.exchange(&line, Until::Count(1))?.time);
            let told = rmcp.exchange(b"\n", Until::Count(1))?.last_line;
            theirs.push(Duration::from_nanos(std::str::from_utf8(&told)?.trim().parse()?));
        }
        server.close().await;
        Ok::<_, anyhow::Error>(())
    })?;
    limit.finish()?;
    rmcp.finish()?;
    let (ours, bare) = (microseconds(median(&ours)?), microseconds(median(&bare)?));
    let theirs = microseconds(median(&theirs)?);
    let what = "a thread that writes the line and reads the line, same server";
    table.push(Row {
        figure: "call of an MCP tool over stdio".to_owned(),
        unit: "µs",
        value: ours,
        limit: Limit::new(microseconds(median(&blocking)?), what),
        aim: None,
    });
    table.push(Row {
        figure: "the same, beside a bare rmcp client".to_owned(),
        unit: "times",
        value: ours / theirs,
        limit: Limit::new(1.0, "rmcp 3.8 in a process of its own, same server, nothing held or shown"),
        aim: Some(MCP_RATIO),
    });
    table.push(Row {
        figure: "the same, beside a bare client".to_owned(),
        unit: "times",
        value: ours / bare,
        limit: Limit::new(1.0, "a task of ours on the same runtime that writes the line and reads the line"),
        aim: Some(MCP_RATIO),
    });
    Ok(())
}

/// The client of `bench/rmcp`: makes a call for each line, and says how long that took.
fn rmcp_client(place: &Place) -> Result<Driven> {
    let program = place.target().join("rmcp/release/attache-bench-rmcp");
    ensure!(program.exists(), "there is no {}: `cargo xtask bench` builds it", program.display());
    let (server, arguments) = Raw::Mcp.command_line()?;
    Driven::start(std::process::Command::new(program).arg(server).args(arguments))
}

/// What any client does that shares its threads with sessions, and nothing else.
struct BareClient {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    answer: String,
    /// Ends with this.
    _server: Child,
}

impl BareClient {
    fn start() -> Result<Self> {
        let (program, arguments) = Raw::Mcp.command_line()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut server = command.spawn()?;
        let input = server.stdin.take().context("a server without stdin")?;
        let output = BufReader::new(server.stdout.take().context("a server without stdout")?);
        Ok(Self { input, output, answer: String::new(), _server: server })
    }

    async fn call(&mut self, line: &[u8]) -> Result<Duration> {
        self.answer.clear();
        let started = Instant::now();
        self.input.write_all(line).await?;
        self.output.read_line(&mut self.answer).await?;
        let time = started.elapsed();
        ensure!(self.answer.contains("hello"), "the server says {:?}", self.answer);
        Ok(time)
    }
}

/// A session's one server, through the client that the product has.
struct OwnServer {
    servers: Arc<dyn attache_core::ports::SessionServers>,
    tool: Arc<dyn Tool>,
    site: Site,
}

impl OwnServer {
    async fn connect(place: &Place, home: &Home) -> Result<Self> {
        let workspace = Arc::new(Workspace {
            session_id: SessionId::new("ses_bench"),
            root: home.path("work"),
            additional: Vec::new(),
            scratch: home.path("scratch"),
            guarded: Arc::new(Guarded::new(None, Vec::new())),
            skills: Arc::default(),
        });
        let helper = place.binary().to_owned();
        let servers = HostServers::new(McpSettings {
            names: Vec::new(),
            entries: Vec::new(),
            sandbox: Sandbox::found_lazily_by(move || Sandbox::none(helper)),
            variables: Variables::new(std::env::vars()),
            logins: Arc::new(NoLogins),
        });
        let wanted = WantedServers { of_client: vec![entry()?], ..WantedServers::default() };
        let opened = servers.open(workspace.clone(), wanted, ServerNotices::new(|_| {}));
        opened.settled().await;
        let tool = opened.tools().first().cloned();
        let tool = tool.with_context(|| format!("the server has no tools: {:?}", opened.status()))?;
        Ok(Self { servers: opened, tool, site: Site::of_roots(workspace) })
    }

    async fn call(&self) -> Result<Duration> {
        let runtime = ToolRuntime {
            commands: attache_core::watchdog::Commands::Any,
            call_id: CallId::new("call"),
            site: self.site.clone(),
            network: NetworkGrant::Granted,
            writes: WriteGrant::Granted,
            snapshots: None,
            side_model: None,
            result_bytes: 1 << 20,
            progress: Arc::new(Unwatched),
            cancel: tokio_util::sync::CancellationToken::new(),
        };
        let input = json!({ "text": "hello" });
        let started = Instant::now();
        let outcome = self.tool.run(input, runtime).await;
        let time = started.elapsed();
        match outcome {
            ToolOutcome::Output { .. } => Ok(time),
            other => bail!("the call failed: {other:?}"),
        }
    }

    async fn close(self) {
        self.servers.close().await;
    }
}

fn entry() -> Result<ServerEntry> {
    let (command, arguments) = Raw::Mcp.command_line()?;
    Ok(ServerEntry {
        name: "bare".to_owned(),
        origin: ServerOrigin::Client,
        transport: ServerTransport::Stdio { command, arguments, environment: Vec::new(), directory: None },
        rights: ServerRights::USUAL,
        deadlines: ServerDeadlines::default(),
        sampling: ServerSampling::Refused,
        oauth: OAuthSettings::default(),
    })
}

/// Of a bench, whose servers want none.
#[derive(Debug)]
struct NoLogins;

impl LoginStore for NoLogins {
    fn read(&self, _server: &str) -> Result<Option<HiddenText>, String> {
        Ok(None)
    }

    fn keep(&self, _server: &str, _issuer: &str, _login: &HiddenText) -> Result<(), String> {
        Err("logins are not kept here".to_owned())
    }

    fn forget(&self, _server: &str) -> Result<(), String> {
        Ok(())
    }

    fn stamp(&self) -> u64 {
        0
    }

    fn hold(&self, _server: &str) -> Result<Box<dyn Send + Sync>, String> {
        Ok(Box::new(()))
    }
}

#[derive(Debug)]
struct Unwatched;

impl Progress for Unwatched {
    fn show(&self, _presentation: Presentation) {}
    fn data(&self, _name: &str, _data: Value) {}
}
