//! Measures the way out: encoded notifications per second through a peer on stdio, beside a raw write of the
//! same bytes. `cargo run --release -p attache-rpc --example throughput`; figures go to stderr.

use attache_rpc::{
    Handler, IncomingRequest, Notification, Options, Peer, encode_notification, json_lines, stdio,
};
use serde::Serialize;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const UPDATES: usize = 2_000_000;
const ROUNDS: usize = 9;
/// The raw write, the same with encoding, and the peer with so many notifications per call.
const MODES: [&str; 5] = ["raw", "raw-encoded", "peer-1", "peer-16", "peer-64"];
/// As large as the peer's own writes: smaller ones would make the limit look lower than it is.
const RAW_WRITE_BYTES: usize = attache_rpc::limits::WRITE_CHUNK_BYTES;

type Failure = Box<dyn std::error::Error>;

struct Silent;

impl Handler for Silent {
    fn request(&self, _: IncomingRequest) {}

    fn notification(&self, _: Notification) {}

    fn closed(&self) {}
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    session_id: &'a str,
    update: Update<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    session_update: &'a str,
    message_id: &'a str,
    content: Content<'a>,
}

#[derive(Serialize)]
struct Content<'a> {
    r#type: &'a str,
    text: &'a str,
}

const PARAMS: Params<'static> = Params {
    session_id: "ses_01JABCDEFGHJKMNPQRSTVWXYZ0",
    update: Update {
        session_update: "agent_message_chunk",
        message_id: "msg_01JABCDEFGHJKMNPQRSTVWXYZ0",
        content: Content { r#type: "text", text: " token" },
    },
};

fn main() -> Result<(), Failure> {
    match std::env::args().nth(1).as_deref() {
        None => compare(),
        Some("raw") => raw(),
        Some("raw-encoded") => raw_encoded(),
        Some(mode) => {
            let batch = mode.trim_start_matches("peer-").parse()?;
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?
                .block_on(peer(batch))
        }
    }
}

/// Modes take turns, so that whatever else the machine does falls on all of them.
fn compare() -> Result<(), Failure> {
    let mut rates = MODES.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (mode, rates) in MODES.iter().zip(&mut rates) {
            rates.push(measure(mode)?);
        }
    }
    for (mode, rates) in MODES.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        let (slowest, median, fastest) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
        eprintln!("{mode:12} {median:5.2} M updates/s (median of {ROUNDS}; {slowest:.2} to {fastest:.2})");
    }
    Ok(())
}

/// Runs this program as a child in `mode`, reads its output as fast as it comes; millions of updates per
/// second.
fn measure(mode: &str) -> Result<f64, Failure> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(mode)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = child.stdout.take().ok_or("no stdout")?;
    let mut chunk = vec![0; 1024 * 1024];
    let (mut lines, mut start) = (0, None);
    loop {
        let count = output.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        start.get_or_insert_with(Instant::now);
        lines += memchr::memchr_iter(b'\n', &chunk[..count]).count();
    }
    let seconds = start.ok_or("no output")?.elapsed().as_secs_f64();
    child.wait()?;
    assert_eq!(lines, UPDATES);
    Ok(lines as f64 / seconds / 1e6)
}

fn raw() -> Result<(), Failure> {
    let mut line = Vec::new();
    encode_notification(&mut line, "session/update", &PARAMS)?;
    let block = line.repeat(RAW_WRITE_BYTES / line.len() + 1);
    let mut left = line.len() * UPDATES;
    let mut output = std::io::stdout().lock();
    while left > 0 {
        let count = left.min(block.len());
        output.write_all(&block[..count])?;
        left -= count;
    }
    Ok(output.flush()?)
}

fn raw_encoded() -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    let mut block = Vec::new();
    for _ in 0..UPDATES {
        encode_notification(&mut block, "session/update", &PARAMS)?;
        if block.len() >= RAW_WRITE_BYTES {
            output.write_all(&block)?;
            block.clear();
        }
    }
    output.write_all(&block)?;
    Ok(output.flush()?)
}

async fn peer(batch: usize) -> Result<(), Failure> {
    let (source, sink) = json_lines(stdio(), attache_rpc::limits::MAX_LINE_BYTES);
    let (peer, connection) = Peer::start(source, sink, Options::default(), |_| Arc::new(Silent));
    let sending: tokio::task::JoinHandle<Result<(), String>> = tokio::spawn(async move {
        let mut buffer = Vec::new();
        for number in 1..=UPDATES {
            encode_notification(&mut buffer, "session/update", &PARAMS).map_err(|error| error.to_string())?;
            if number % batch == 0 || number == UPDATES {
                let lines = std::mem::take(&mut buffer);
                peer.send_lines(lines).await.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    });
    sending.await??;
    connection.drain(Duration::from_secs(60)).await;
    Ok(())
}
