//! What servers of MCP cost: a call's way there and back beside `rmcp` and clients that write a line and read a
//! line, the search among many tools, a session with ten servers, and what an idle server takes.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use attache_core::ports::tool::{Effect, ToolKind, ToolSpec};
use attache_core::tool_search::SearchableTools;
use serde_json::{Value, json};

use super::agent::{Agent, Prompt};
use super::aims::{MCP_SERVERS, MCP_STARTS, SEARCHED_TOOLS, SESSION_NEW_MS, TOOL_SEARCH_MS, TOOL_SEARCHES};
use super::driven::Until;
use super::figures::{median, median_ms, milliseconds};
use super::raw::Raw;
use super::table::{Limit, Row, Table};
use super::{Place, settle};
use round_trips::round_trips;

mod round_trips;

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    round_trips(place, table)?;
    search(table)?;
    sessions_with_servers(place, table)?;
    sessions_with_dead_servers(place, table)
}

/// Servers that never say a word: nobody waits for them but the first prompt, and that for two seconds.
fn sessions_with_dead_servers(place: &Place, table: &mut Table) -> Result<()> {
    let dead: Vec<Value> = (0..MCP_SERVERS)
        .map(|number| json!({ "name": format!("dead{number}"), "command": "sleep", "args": ["600"], "env": [] }))
        .collect();
    let home = place.home()?;
    let mut agent = home.start()?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..MCP_STARTS {
        for (servers, times) in [(&dead[..], &mut with), (&[], &mut without)] {
            times.push(agent.new_session_with(servers)?.1.time);
        }
    }
    agent.finish()?;
    table.push(Row {
        figure: format!("session/new with {MCP_SERVERS} dead servers"),
        unit: "ms",
        value: median_ms(&with)?,
        limit: Limit::new(median_ms(&without)?, "session/new without servers"),
        aim: Some(SESSION_NEW_MS),
    });
    Ok(())
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
