//! What servers of MCP cost: a call's way there and back beside `rmcp` and clients that write a line and read a
//! line, the search among many tools, a session with ten servers, and what a server takes that nobody uses.

use std::hint::black_box;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use attache_core::ids::{CallId, SessionId};
use attache_core::ports::mcp::{
    HiddenText, OAuthSettings, ServerDeadlines, ServerEntry, ServerNetwork, ServerNotices, ServerOrigin,
    ServerSampling, ServerTransport, ToolServers, WantedServers,
};
use attache_core::ports::tool::{
    Effect, NetworkGrant, Presentation, Progress, Site, Tool, ToolKind, ToolOutcome, ToolRuntime, ToolSpec,
    Workspace, WriteGrant,
};
use attache_core::scope::Guarded;
use attache_core::tool_search::SearchableTools;
use attache_mcp::oauth::LoginStore;
use attache_mcp::{HostServers, McpSettings, Variables};
use attache_sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::agent::{Agent, Home, Prompt};
use super::aims::{
    MCP_CALLS, MCP_RATIO, MCP_SERVERS, MCP_STARTS, SEARCHED_TOOLS, SESSION_NEW_MS, TOOL_SEARCH_MS,
    TOOL_SEARCHES,
};
use super::driven::{Driven, Until};
use super::figures::{median, median_ms, microseconds, milliseconds};
use super::raw::Raw;
use super::table::{Limit, Row, Table};
use super::{Place, settle};

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    round_trips(place, table)?;
    search(table)?;
    sessions_with_servers(place, table)
}

/// One call after the other, ours and those of the bare clients in turns, each to a server of its own that is
/// the same program.
fn round_trips(place: &Place, table: &mut Table) -> Result<()> {
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
        network: ServerNetwork::Granted,
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

/// Words that some tools have and some have not.
fn search(table: &mut Table) -> Result<()> {
    let verbs = ["list", "read", "create", "update", "delete", "search", "merge", "export", "watch", "tag"];
    let things = ["issue", "branch", "invoice", "calendar", "message", "deployment", "user", "file", "page"];
    let specs = (0..SEARCHED_TOOLS).map(|number| {
        let (verb, thing) = (verbs[number % verbs.len()], things[number / verbs.len() % things.len()]);
        ToolSpec {
            id: format!("server{}_{verb}_{thing}_{number}", number % 40).into(),
            description: format!("Can {verb} one {thing} of project {number} and tells what came of it").into(),
            parameters: Arc::new(json!({
                "type": "object",
                "properties": { "project": { "type": "string" }, format!("{thing}_id"): { "type": "integer" } },
            })),
            kind: ToolKind::Other,
            effect: Effect::Mutates,
            hidden: false,
        }
    });
    let specs: Vec<ToolSpec> = specs.collect();
    let tools = SearchableTools::default();
    tools.set(specs);
    let started = Instant::now();
    black_box(tools.find("merge branch"));
    let first = milliseconds(started.elapsed());
    let mut times = Vec::new();
    for query in (0..TOOL_SEARCHES)
        .map(|number| format!("{} {} project", verbs[number % verbs.len()], things[number % things.len()]))
    {
        let started = Instant::now();
        let found = tools.find(&query);
        times.push(started.elapsed());
        ensure!(!found.is_empty(), "nothing is found for {query}");
    }
    table.push(Row {
        figure: format!("search among {SEARCHED_TOOLS} tools of servers"),
        unit: "ms",
        value: median_ms(&times)?,
        limit: None,
        aim: Some(TOOL_SEARCH_MS),
    });
    table.push(Row {
        figure: "the first one, which reads all of them".to_owned(),
        unit: "ms",
        value: first,
        limit: None,
        aim: None,
    });
    Ok(())
}

/// What came of one start of an agent with or without servers.
struct StartedSession {
    new: Duration,
    /// From the request for it to the end of its first turn.
    first_turn: Duration,
    rss_kb: u64,
}

fn sessions_with_servers(place: &Place, table: &mut Table) -> Result<()> {
    let (mut with, mut without, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..MCP_STARTS {
        with.push(start(place, MCP_SERVERS)?);
        without.push(start(place, 0)?);
        bare.push(greet_all()?);
    }
    let times = |starts: &[StartedSession], time: fn(&StartedSession) -> Duration| {
        median_ms(&starts.iter().map(time).collect::<Vec<_>>())
    };
    let rss =
        |starts: &[StartedSession]| median(&starts.iter().map(|start| start.rss_kb).collect::<Vec<_>>());
    table.push(Row {
        figure: format!("session/new with {MCP_SERVERS} servers"),
        unit: "ms",
        value: times(&with, |start| start.new)?,
        limit: Limit::new(times(&without, |start| start.new)?, "session/new without servers"),
        aim: Some(SESSION_NEW_MS),
    });
    table.push(Row {
        figure: format!("session with {MCP_SERVERS} servers, to the end of its first turn"),
        unit: "ms",
        value: times(&with, |start| start.first_turn)?,
        limit: Limit::new(
            times(&without, |start| start.first_turn)? + median_ms(&bare)?,
            "the same without servers, and as many bare processes started and greeted",
        ),
        aim: None,
    });
    table.push(Row {
        figure: "memory of an idle server, in attache".to_owned(),
        unit: "KB",
        value: (rss(&with)? as f64 - rss(&without)? as f64) / MCP_SERVERS as f64,
        limit: None,
        aim: None,
    });
    Ok(())
}

fn start(place: &Place, servers: usize) -> Result<StartedSession> {
    let home = place.home()?;
    let mut agent = home.start()?;
    let (command, arguments) = Raw::Mcp.command_line()?;
    let servers: Vec<Value> = (0..servers)
        .map(|number| {
            json!({ "name": format!("bare{number}"), "command": command, "args": arguments, "env": [{
                // Equal servers would be one process.
                "name": "NUMBER", "value": number.to_string(),
            }] })
        })
        .collect();
    let started = Instant::now();
    let (session, new) = agent.new_session_with(&servers)?;
    agent.prompt(&session, Prompt::OneToken)?;
    let first_turn = started.elapsed();
    wait_until_ready(&mut agent, &session, servers.len())?;
    settle();
    let rss_kb = agent.usage()?.rss_kb;
    agent.finish()?;
    Ok(StartedSession { new: new.time, first_turn, rss_kb })
}

/// The first turn waits for servers, though not for ever.
fn wait_until_ready(agent: &mut Agent, session: &str, servers: usize) -> Result<()> {
    for _ in 0..200 {
        let mut record = Vec::new();
        agent.prompt_recorded(session, Prompt::Servers, &mut record)?;
        if memchr::memmem::find_iter(&record, b"ready").count() >= servers {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("the servers do not get ready")
}

/// As many bare processes, side by side, until each has said hello.
fn greet_all() -> Result<Duration> {
    let hello = b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}\n";
    let started = Instant::now();
    let mut servers = (0..MCP_SERVERS).map(|_| Raw::Mcp.start()).collect::<Result<Vec<_>>>()?;
    for server in &mut servers {
        server.exchange(hello, Until::Count(1))?;
    }
    let time = started.elapsed();
    servers.into_iter().try_for_each(|server| server.finish())?;
    Ok(time)
}

/// What the server of these measurements answers to a line; nothing to what wants no answer.
pub(crate) fn answer_of_server(line: &str) -> Option<String> {
    let request: Value = serde_json::from_str(line).ok()?;
    let id = request.get("id")?;
    let result = match request["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "bare", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{
            "name": "echo",
            "description": "Says what it was told",
            "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
        }] }),
        "tools/call" => {
            let text = &request["params"]["arguments"]["text"];
            json!({ "content": [{ "type": "text", "text": text }], "isError": false })
        }
        _ => json!({}),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string() + "\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_server_answers_requests_and_nothing_else() {
        let answer = answer_of_server(
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"arguments":{"text":"hi"}}}"#,
        );
        let answer: Value = serde_json::from_str(&answer.unwrap()).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(5), &json!("hi")));
        assert_eq!(answer_of_server(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), None);
        assert!(Path::new(&Raw::Mcp.command_line().unwrap().0).is_absolute());
    }
}
