//! Prints what the store costs beside what bare SQLite costs for the same bytes: `cargo run --release --example
//! measure`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use attache_core::ids::{MessageId, PartId, SessionId};
use attache_core::part::Role;
use attache_core::ports::store::{
    Batch, Change, Epoch, LeaseGrant, Leases, LogSegment, MessageRow, PartRow, RowRange, SessionRow, Store,
    StoreResult, UsageTotals,
};
use attache_store::{Durability, SqliteStore, StoreLocation};
use serde_json::json;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const CHUNK: &str = r#"{"type":"text-delta","id":"0","delta":" lorem ipsum dolor"}"#;

fn main() -> Outcome<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "/tmp/attache-measure".into()));
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    opening(&directory.join("opening"))?;
    latency(&directory.join("latency"))?;
    for group in [1, 10, 100, 1_000] {
        throughput(&directory.join(format!("throughput-{group}")), group)?;
    }
    for (messages, parts) in [(1_000, 1), (100, 1_000), (1_000, 1_000)] {
        loading(&directory.join(format!("loading-{messages}-{parts}")), messages, parts)?;
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn wait<T>(future: impl Future<Output = T>) -> Outcome<T> {
    Ok(tokio::runtime::Builder::new_current_thread().build()?.block_on(future))
}

fn report(line: &str) -> Outcome<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

fn opening(directory: &Path) -> Outcome<()> {
    let begin = Instant::now();
    let fresh = open(directory)?;
    let made = begin.elapsed();
    let session = Session::create(&fresh, "a")?;
    session.commit(&fresh, vec![log(0, 10)])?;
    let begin = Instant::now();
    let beside = open(directory)?;
    let second = begin.elapsed();
    drop(beside);
    drop(fresh);
    let mut again: Vec<Duration> = Vec::new();
    let mut first: Vec<Duration> = Vec::new();
    for number in 0..50 {
        let begin = Instant::now();
        let store = open(directory)?;
        again.push(begin.elapsed());
        let begin = Instant::now();
        Session::create(&store, &format!("{number}"))?;
        first.push(begin.elapsed());
        drop(store);
    }
    again.sort();
    first.sort();
    report(&format!(
        "open: fresh {made:?}, beside another {second:?}, again p50 {:?}; then a first session p50 {:?}",
        again[again.len() / 2],
        first[first.len() / 2]
    ))
}

fn latency(directory: &Path) -> Outcome<()> {
    let store = open(directory)?;
    let session = Session::create(&store, "a")?;
    let mut times = Vec::new();
    for index in 0..20_000 {
        let begin = Instant::now();
        session.commit(&store, vec![log(index, 1)])?;
        times.push(begin.elapsed());
    }
    let raw = Raw::open(&directory.join("raw.db"))?;
    let mut bare = Vec::new();
    for index in 0..20_000 {
        let begin = Instant::now();
        raw.append(index, 1)?;
        bare.push(begin.elapsed());
    }
    for (name, mut times) in [("store", times), ("bare SQLite", bare)] {
        times.sort();
        let at = |share: f64| times[(times.len() as f64 * share) as usize];
        report(&format!(
            "one small commit, {name}: p50 {:?} p99 {:?} max {:?}",
            at(0.5),
            at(0.99),
            at(0.9999)
        ))?;
    }
    Ok(())
}

fn throughput(directory: &Path, group: u64) -> Outcome<()> {
    const CHUNKS: u64 = 100_000;
    let store = open(directory)?;
    let session = Session::create(&store, "a")?;
    let cpu = cpu_time()?;
    let written = bytes_written()?;
    let begin = Instant::now();
    let (end, ended) = mpsc::channel();
    chain(store.clone(), session, 0, CHUNKS, group, end);
    ended.recv()??;
    let took = begin.elapsed();
    let cpu = cpu_time()? - cpu;
    let bytes = bytes_written()? - written;
    let raw = Raw::open(&directory.join("raw.db"))?;
    let raw_written = bytes_written()?;
    let begin = Instant::now();
    for first in (0..CHUNKS).step_by(group as usize) {
        raw.append(first, group)?;
    }
    let bare = begin.elapsed();
    let raw_bytes = bytes_written()? - raw_written;
    report(&format!(
        "100,000 chunks of {} bytes by {group}: store {took:?} ({:.2} µs CPU, {:.0} bytes written per chunk), \
         bare SQLite {bare:?} ({:.0} bytes)",
        CHUNK.len(),
        cpu.as_secs_f64() * 1e6 / CHUNKS as f64,
        bytes as f64 / CHUNKS as f64,
        raw_bytes as f64 / CHUNKS as f64,
    ))
}

/// Like the journal: the next batch goes out from the callback of the last one.
fn chain(
    store: SqliteStore,
    session: Session,
    first: u64,
    end: u64,
    group: u64,
    ended: mpsc::Sender<StoreResult<()>>,
) {
    if first >= end {
        return drop(ended.send(Ok(())));
    }
    let changes = vec![log(first, group)];
    let batch = Batch { session_id: session.id.clone(), fence: Some(session.epoch), changes };
    let handle = store.clone();
    handle.commit(
        batch,
        Box::new(move |result| match result {
            Ok(()) => chain(store, session, first + group, end, group, ended),
            Err(error) => drop(ended.send(Err(error))),
        }),
    );
}

fn loading(directory: &Path, messages: i64, parts: i64) -> Outcome<()> {
    let store = open(directory)?;
    let session = Session::create(&store, "a")?;
    let begin = Instant::now();
    for seq in 0..messages {
        let mut changes = vec![Change::InsertMessage(message(seq))];
        changes.extend((0..parts).map(|index| Change::PutPart(part(seq, index))));
        session.commit(&store, changes)?;
    }
    let filled = begin.elapsed();
    drop(store);
    let store = open(directory)?;
    let mut times = Vec::new();
    let mut most = 0;
    for _ in 0..3 {
        let begin = Instant::now();
        let mut range = RowRange { after: None, before_seq: None, max_bytes: 256 * 1024 };
        let mut seen = 0;
        loop {
            let page = wait(store.read_rows(&SessionId::new("a"), range.clone()))??;
            seen += page.messages.iter().map(|(_, parts)| parts.len()).sum::<usize>();
            most = most.max(resident()?);
            let Some(next) = page.next else { break };
            range.after = Some(next);
        }
        times.push(begin.elapsed());
        if seen as i64 != messages * parts {
            return Err(format!("{seen} parts came back").into());
        }
    }
    report(&format!(
        "load of {messages} messages with {parts} parts each: {times:?}, resident {} KiB at most (filled in {filled:?})",
        most / 1024
    ))
}

fn open(directory: &Path) -> Outcome<SqliteStore> {
    let location = StoreLocation {
        database: directory.join("sessions.db"),
        locks: directory.join("locks"),
        blobs: directory.join("blobs"),
    };
    Ok(SqliteStore::open(&location, Durability::Normal)?.store)
}

struct Session {
    id: SessionId,
    epoch: Epoch,
}

impl Session {
    fn create(store: &SqliteStore, name: &str) -> Outcome<Self> {
        let id = SessionId::new(name);
        let row = SessionRow {
            id: id.clone(),
            agent: "build".into(),
            workspace_root: "/w".into(),
            model: None,
            parent_id: None,
            parent_message_id: None,
            permissions: json!([]),
            metadata: Default::default(),
            totals: UsageTotals::default(),
            created_at: 1,
            updated_at: 1,
            archived_at: None,
        };
        let changes = vec![Change::CreateSession(Box::new(row))];
        commit(store, Batch { session_id: id.clone(), fence: None, changes })?;
        match wait(store.acquire(&id, None))?? {
            LeaseGrant::Granted { epoch, .. } => Ok(Self { id, epoch }),
            other => Err(format!("{other:?}").into()),
        }
    }

    fn commit(&self, store: &SqliteStore, changes: Vec<Change>) -> Outcome<()> {
        commit(store, Batch { session_id: self.id.clone(), fence: Some(self.epoch), changes })
    }
}

fn commit(store: &SqliteStore, batch: Batch) -> Outcome<()> {
    let (sender, receiver) = mpsc::channel::<StoreResult<()>>();
    store.commit(batch, Box::new(move |result| drop(sender.send(result))));
    Ok(receiver.recv()??)
}

fn chunks(count: u64) -> String {
    let mut text = String::with_capacity((CHUNK.len() + 1) * count as usize);
    for number in 0..count {
        if number > 0 {
            text.push('\n');
        }
        text.push_str(CHUNK);
    }
    text
}

fn log(first: u64, count: u64) -> Change {
    Change::AppendLog(LogSegment {
        first_index: first,
        last_index: first + count - 1,
        message_id: MessageId::new("msg_0123456789abcdefghijklmnop"),
        role: Role::Assistant,
        chunks: chunks(count),
    })
}

fn message(seq: i64) -> MessageRow {
    let metadata = json!({"usage": {"input": 1, "output": 2, "reasoning": 0, "cache_read": 0, "cache_write": 0},
        "model": {"provider_id": "p", "model_id": "m"}});
    MessageRow {
        id: MessageId::new(format!("msg_{seq:026}")),
        session_id: SessionId::new("a"),
        seq: Some(seq),
        role: Role::Assistant,
        metadata: metadata.as_object().cloned().unwrap_or_default().into(),
        created_at: 1,
        updated_at: 1,
    }
}

fn part(seq: i64, index: i64) -> PartRow {
    PartRow {
        id: PartId::new(format!("prt_{seq:013}{index:013}")),
        message_id: MessageId::new(format!("msg_{seq:026}")),
        session_id: SessionId::new("a"),
        index,
        kind: "text".into(),
        data_json: json!({"type": "text", "text": "lorem ipsum dolor sit amet ".repeat(8)}).to_string(),
        tool_call_id: None,
        tool_state: None,
        created_at: 1,
        updated_at: 1,
    }
}

/// The least SQLite can do for a durable append: one table, one prepared insert, one transaction per group.
struct Raw(rusqlite::Connection);

impl Raw {
    fn open(path: &Path) -> Outcome<Self> {
        let connection = rusqlite::Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
             CREATE TABLE log (first INTEGER PRIMARY KEY, chunks TEXT NOT NULL);",
        )?;
        Ok(Self(connection))
    }

    fn append(&self, first: u64, count: u64) -> Outcome<()> {
        let mut insert = self.0.prepare_cached("INSERT INTO log VALUES (?1, ?2)")?;
        insert.execute(rusqlite::params![i64::try_from(first)?, chunks(count)])?;
        Ok(())
    }
}

fn proc_number(file: &str, key: &str) -> Outcome<u64> {
    let text = std::fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such line")?;
    Ok(line.trim_start_matches(':').split_whitespace().next().ok_or("no number")?.parse()?)
}

fn bytes_written() -> Outcome<u64> {
    proc_number("/proc/self/io", "wchar")
}

fn resident() -> Outcome<u64> {
    Ok(proc_number("/proc/self/status", "VmRSS")? * 1024)
}

fn cpu_time() -> Outcome<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}
