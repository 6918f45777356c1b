//! `attache serve` with many clients: what a silent one costs, what a thousand of them and a hundred answers
//! add to a request, how fast updates come over each way, beside a pipe and beside other servers, and when the
//! page shows a long session.

mod client;
mod page;
mod rivals;

use std::io::{BufRead, BufReader, Lines, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use super::agent::{Home, Prompt};
use super::aims::{
    self, Aim, SERVED_DELTAS, SERVED_TURNS, SILENT_CLIENTS, STATUS_REQUESTS, STREAMING_CLIENTS,
};
use super::figures::{median, milliseconds};
use super::table::{Limit, Row, Table};
use super::usage::Usage;
use super::{Place, settle};
use client::{SocketClient, chat_rate, event_stream_rate};
use rivals::RIVALS;

/// A running server.
#[derive(Debug)]
pub(crate) struct Served {
    child: Child,
    address: String,
    token: String,
    workspace: String,
    /// What a stream of events has in it before its first one.
    stream_start: Option<&'static [u8]>,
}

/// What is said to it; the second one as fast as a model speaks.
const PACED: &str = "on \"paced\"\n  stream 1000000 \"a word or two \" every 20ms\n";

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    raise_open_files();
    rates(place, table)?;
    crowd(place, table)?;
    page::first_paint(place, table)
}

/// What a server tells of itself.
type ServerLines = Lines<BufReader<Box<dyn Read + Send>>>;

impl Served {
    fn start(home: &Home) -> Result<Self> {
        let mut command = Command::new(home.binary());
        command.args(["serve", "--listen", "127.0.0.1:0"]).env_clear().env("ATTACHE_HOME", home.path("home"));
        command.env("ATTACHE_SERVE_ACCESS_LOG", "off").current_dir(home.path("work"));
        if let Some(search) = std::env::var_os("PATH") {
            command.env("PATH", search);
        }
        let (child, mut told) = Self::child(command.stderr(Stdio::piped()))?;
        let address = loop {
            let line = told.next().context("the server has ended")??;
            if let Some((_, rest)) = line.split_once("ACP at http://") {
                break rest.split('/').next().unwrap_or_default().to_owned();
            }
        };
        thread::spawn(move || told.map_while(Result::ok).for_each(drop));
        let token = std::fs::read_to_string(home.path("home/token"))?.trim().to_owned();
        let workspace = home.path("work").to_string_lossy().into_owned();
        Ok(Self { child, address, token, workspace, stream_start: Some(b": here") })
    }

    /// Started, with the lines of the one of its outputs that is piped.
    fn child(command: &mut Command) -> Result<(Child, ServerLines)> {
        let mut child = command.stdin(Stdio::null()).spawn()?;
        let output: Box<dyn Read + Send> = match (child.stdout.take(), child.stderr.take()) {
            (Some(output), _) => Box::new(output),
            (None, errors) => Box::new(errors.context("a server without any output")?),
        };
        Ok((child, BufReader::new(output).lines()))
    }

    fn usage(&self) -> Result<Usage> {
        Usage::of(self.child.id())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It is only measured: nothing of it is kept.
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait().map(drop)) {
            eprintln!("the server did not end: {error}");
        }
    }
}

/// Each client is a descriptor here as well.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let present = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: present.maximum, maximum: present.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        eprintln!("the limit of open files stays: {error}");
    }
}

/// Updates per second of the same answer, over each way.
fn rates(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home()?;
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    let prompt = Prompt::Deltas(SERVED_DELTAS);
    let mut piped = Vec::new();
    for _ in 0..SERVED_TURNS {
        let turn = agent.prompt(&session, prompt)?;
        piped.push(turn.updates as f64 / turn.time.as_secs_f64());
    }
    agent.finish()?;
    let piped = median(&piped)?;
    let served = Served::start(&home)?;
    let ours = Rates::of(&served, &prompt.text())?;
    let mut over_chat = Vec::new();
    for _ in 0..SERVED_TURNS {
        over_chat.push(chat_rate(&served, &prompt.text())?);
    }
    drop(served);
    for (way, rate) in
        [("WebSocket", ours.over_socket), ("HTTP and SSE", ours.over_events), ("AI SDK", median(&over_chat)?)]
    {
        table.push(Row {
            figure: format!("{SERVED_DELTAS} deltas over {way}"),
            unit: "updates/s",
            value: rate,
            limit: Limit::new(piped, "the same over a pipe"),
            aim: Some(Aim::AtLeast((piped * aims::SERVED_SHARE).round())),
        });
    }
    beside(ours, place, table)
}

/// Updates per second.
#[derive(Clone, Copy, Debug)]
struct Rates {
    over_socket: f64,
    over_events: f64,
}

impl Rates {
    fn of(served: &Served, prompt: &str) -> Result<Self> {
        let mut socket = SocketClient::open(served)?;
        let session = socket.new_session(served)?;
        let (mut over_socket, mut over_events) = (Vec::new(), Vec::new());
        for _ in 0..SERVED_TURNS {
            over_socket.push(socket.rate(&session, prompt)?);
            over_events.push(event_stream_rate(served, prompt)?);
        }
        Ok(Self { over_socket: median(&over_socket)?, over_events: median(&over_events)? })
    }
}

/// The official servers. What they serve stores nothing and has no model.
fn beside(ours: Rates, place: &Place, table: &mut Table) -> Result<()> {
    for rival in RIVALS {
        let Some(served) = rival.start(place)? else {
            eprintln!("   {} is not there: cargo xtask bench builds it, or cargo xtask peers", rival.name());
            continue;
        };
        let theirs = Rates::of(&served, "go")?;
        for (way, ours, theirs) in [
            ("WebSocket", ours.over_socket, theirs.over_socket),
            ("HTTP and SSE", ours.over_events, theirs.over_events),
        ] {
            table.push(Row {
                figure: format!("{SERVED_DELTAS} deltas over {way}, beside {}", rival.name()),
                unit: "updates/s",
                value: ours,
                limit: Limit::new(
                    theirs,
                    "its server, an agent that has the updates at once and stores none",
                ),
                aim: None,
            });
        }
    }
    Ok(())
}

/// A thousand clients that say nothing, and a hundred whose model speaks.
fn crowd(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home()?;
    std::fs::write(home.path("home/bench.script"), PACED)?;
    let served = Served::start(&home)?;
    let mut probe = SocketClient::open(&served)?;
    let session = probe.new_session(&served)?;
    settle();
    let (quiet, before) = (statuses(&mut probe, &session)?, served.usage()?.rss_kb);
    let silent: Vec<SocketClient> =
        (0..SILENT_CLIENTS).map(|_| SocketClient::open(&served)).collect::<Result<_>>()?;
    settle();
    let each = (served.usage()?.rss_kb.saturating_sub(before)) as f64 / SILENT_CLIENTS as f64;
    table.push(Row {
        figure: format!("each of {SILENT_CLIENTS} silent WebSockets"),
        unit: "KB",
        value: each,
        limit: None,
        aim: Some(aims::CONNECTION_KB),
    });
    let over = Arc::new(AtomicBool::new(false));
    let streaming: Vec<_> = (0..STREAMING_CLIENTS)
        .map(|_| {
            let mut client = SocketClient::open(&served)?;
            let session = client.new_session(&served)?;
            let over = over.clone();
            client.say(
                "session/prompt",
                &json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "paced" }] }),
            )?;
            Ok(thread::spawn(move || while !over.load(Ordering::Relaxed) && client.read().is_ok() {}))
        })
        .collect::<Result<_>>()?;
    settle();
    let loud = statuses(&mut probe, &session)?;
    over.store(true, Ordering::Relaxed);
    drop((silent, served));
    streaming.into_iter().for_each(|thread| drop(thread.join()));
    let late = loud.get(loud.len() * 99 / 100).copied().unwrap_or_default();
    let usual = median(&quiet)?;
    table.push(Row {
        figure: format!("p99 of a request beside {STREAMING_CLIENTS} answers: added"),
        unit: "ms",
        value: milliseconds(late.saturating_sub(usual)),
        limit: Limit::new(milliseconds(usual), "the same request alone"),
        aim: Some(aims::ADDED_MS),
    });
    Ok(())
}

/// How long small requests take, the shortest first.
fn statuses(probe: &mut SocketClient, session: &str) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..STATUS_REQUESTS {
        let began = Instant::now();
        probe.request("_attache/session/status", &json!({ "sessionId": session }))?;
        times.push(began.elapsed());
        thread::sleep(Duration::from_millis(2));
    }
    times.sort_unstable();
    Ok(times)
}
