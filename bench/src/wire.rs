//! The whole way of an answer: a model's server on loopback, HTTP, decoding, every chunk committed, updates on
//! stdout. Beside it a process that reads, decodes and shows the same bytes and stores nothing.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use attache_core::ports::StepEvent;
use attache_models::{Dialect, SseParser};
use memchr::memmem;

use super::agent::Prompt;
use super::aims::{self, DECODED_BYTES, DELTA, WIRE_STREAM};
use super::driven::Until;
use super::figures::{median, microseconds, milliseconds};
use super::raw::Raw;
use super::table::{Limit, Row, Table};
use super::{Place, settle};
use answers::body;
use server::ModelServer;

pub(crate) mod answers;
pub(crate) mod limit;
pub(crate) mod server;

/// Per turn.
#[derive(Clone, Copy, Debug)]
struct Cost {
    time: Duration,
    cpu: Duration,
}

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    for dialect in Dialect::ALL {
        let server = ModelServer::start(body(dialect, WIRE_STREAM.deltas))?;
        let ours = agent_cost(place, dialect, &server)?;
        let limit = limit_cost(dialect, &server)?;
        whole_way(dialect, ours, limit, table);
        decoding(dialect, table)?;
    }
    Ok(())
}

fn agent_cost(place: &Place, dialect: Dialect, server: &ModelServer) -> Result<Cost> {
    let home = place.home_with(&server.provider(dialect))?;
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    let mut shown = Vec::new();
    agent.prompt_recorded(&session, Prompt::OneToken, &mut shown)?;
    let found = memmem::find_iter(&shown, DELTA).count() as u64;
    ensure!(found == WIRE_STREAM.deltas, "{}: {found} deltas were shown", dialect.as_str());
    settle();
    let (before, mut times) = (agent.usage()?, Vec::new());
    for _ in 0..WIRE_STREAM.turns {
        // A session of its own: the requests stay as short as the limit's.
        let (session, _) = agent.new_session()?;
        times.push(agent.prompt(&session, Prompt::OneToken)?.time);
    }
    settle();
    let cpu = (agent.usage()?.cpu - before.cpu).div_f64(WIRE_STREAM.turns as f64);
    agent.finish()?;
    Ok(Cost { time: median(&times)?, cpu })
}

fn limit_cost(dialect: Dialect, server: &ModelServer) -> Result<Cost> {
    let mut process = Raw::Wire { dialect, address: server.address() }.start()?;
    let once = |process: &mut super::driven::Driven| process.exchange(b"{}\n", Until::Line(b"\"bare\""));
    let updates = once(&mut process)?.updates;
    ensure!(updates == WIRE_STREAM.deltas, "{}: the limit showed {updates} deltas", dialect.as_str());
    let (before, mut times) = (process.usage()?, Vec::new());
    for _ in 0..WIRE_STREAM.turns {
        times.push(once(&mut process)?.time);
    }
    let cpu = (process.usage()?.cpu - before.cpu).div_f64(WIRE_STREAM.turns as f64);
    process.finish()?;
    Ok(Cost { time: median(&times)?, cpu })
}

fn whole_way(dialect: Dialect, ours: Cost, limit: Cost, table: &mut Table) {
    let name = format!("5,000 deltas over HTTP, {}", dialect.as_str());
    let deltas = WIRE_STREAM.deltas as f64;
    let what = "read, decode and show, nothing stored";
    let mut push = |what_is: &str, unit, value, limit, aim| {
        table.push(Row { figure: format!("{name}: {what_is}"), unit, value, limit, aim: Some(aim) });
    };
    let time = Limit::new(milliseconds(limit.time), what);
    push("time", "ms", milliseconds(ours.time), time, aims::WIRE_MS);
    let ratio = ours.time.as_secs_f64() / limit.time.as_secs_f64();
    push("time against the limit", "times", ratio, None, aims::WIRE_RATIO);
    let cpu = Limit::new(microseconds(limit.cpu) / deltas, what);
    push("CPU per delta", "µs", microseconds(ours.cpu) / deltas, cpu, aims::WIRE_CPU_MICROSECONDS);
}

/// Bytes to chunks in this process, without any pipe or socket.
fn decoding(dialect: Dialect, table: &mut Table) -> Result<()> {
    let bytes = body(dialect, WIRE_STREAM.deltas);
    let rounds = (DECODED_BYTES / bytes.len()).max(1);
    decode(dialect, &bytes)?;
    let allocated = super::allocations::counted(|| decode(dialect, &bytes))?;
    let started = Instant::now();
    for _ in 0..rounds {
        decode(dialect, &bytes)?;
    }
    let seconds = started.elapsed().as_secs_f64();
    let events = (rounds as u64 * WIRE_STREAM.deltas) as f64 / seconds;
    let figure = format!("{}: decoding alone", dialect.as_str());
    let megabytes = (rounds * bytes.len()) as f64 / seconds / 1e6;
    // Either is enough: small events make the one, large ones the other.
    let aim = if megabytes >= aims::DECODED_MEGABYTES { None } else { Some(aims::DECODED_EVENTS) };
    table.push(Row { figure: figure.clone(), unit: "events/s", value: events, limit: None, aim });
    table.push(Row { figure, unit: "MB/s", value: megabytes, limit: None, aim: None });
    table.push(Row {
        figure: format!("{}: allocations per delta", dialect.as_str()),
        unit: "times",
        value: allocated as f64 / WIRE_STREAM.deltas as f64,
        limit: Limit::new(1.0, "the delta's own text"),
        aim: None,
    });
    Ok(())
}

fn decode(dialect: Dialect, bytes: &[u8]) -> Result<()> {
    let (mut parser, mut decoder) = (SseParser::default(), dialect.decoder(&limit::request(dialect)));
    let (mut events, mut seen) = (Vec::new(), 0_u64);
    for piece in bytes.chunks(super::aims::RAW_WRITE_BYTES) {
        parser.feed(piece)?;
        while let Some(event) = parser.next() {
            decoder.event(&event, &mut events)?;
        }
        let deltas = events
            .drain(..)
            .filter(|event| matches!(event, StepEvent::Chunk(chunk) if limit::is_delta(chunk)));
        seen += std::hint::black_box(deltas.count() as u64);
    }
    ensure!(seen == WIRE_STREAM.deltas, "{}: {seen} deltas were decoded", dialect.as_str());
    Ok(())
}
