//! The limits: processes that do only the one thing no implementation can do without, and nothing else.

use std::fs;
use std::io::{BufRead, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use attache_models::Dialect;
use rusqlite::{Connection, OpenFlags};

use super::aims::RAW_WRITE_BYTES;
use super::driven::{Driven, Until};
use super::{mcp, wire};

/// What a bare process answers to each line.
pub(crate) const ANSWER: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":\"bare\",\"result\":{}}\n";

/// One of the bare processes; this very program, started again.
#[derive(Clone, Debug)]
pub(crate) enum Raw {
    /// Answers each line with a line.
    Answer,
    /// Writes the file's bytes to the pipe for each line.
    Pipe(PathBuf),
    /// Commits the file's batches to a database for each line, then answers.
    Commits { batches: PathBuf, database: PathBuf },
    /// Asks a model's server for each line and shows its answer, then answers.
    Wire { dialect: Dialect, address: String },
    /// A server of MCP with one tool, which says what it was told.
    Mcp,
}

impl Raw {
    const WORD: &str = "bench-raw";

    /// The arguments of this program that start such a process, read back.
    pub(crate) fn from_arguments(arguments: &[&str]) -> Option<Self> {
        match arguments {
            [Self::WORD, "answer"] => Some(Self::Answer),
            [Self::WORD, "pipe", file] => Some(Self::Pipe(file.into())),
            [Self::WORD, "commits", batches, database] => {
                Some(Self::Commits { batches: batches.into(), database: database.into() })
            }
            [Self::WORD, "mcp"] => Some(Self::Mcp),
            [Self::WORD, "wire", dialect, address] => {
                Some(Self::Wire { dialect: Dialect::parse(dialect)?, address: (*address).to_owned() })
            }
            _ => None,
        }
    }

    pub(crate) fn start(&self) -> Result<Driven> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(Self::WORD);
        match self {
            Self::Answer => command.arg("answer"),
            Self::Mcp => command.arg("mcp"),
            Self::Pipe(file) => command.arg("pipe").arg(file),
            Self::Commits { batches, database } => command.arg("commits").arg(batches).arg(database),
            Self::Wire { dialect, address } => command.args(["wire", dialect.as_str(), address]),
        };
        Driven::start(&mut command)
    }

    /// How somebody else starts it.
    pub(crate) fn command_line(&self) -> Result<(String, Vec<String>)> {
        let program = std::env::current_exe()?;
        let program = program.to_str().context("this program has no plain name")?.to_owned();
        match self {
            Self::Mcp => Ok((program, vec![Self::WORD.to_owned(), "mcp".to_owned()])),
            Self::Answer | Self::Pipe(_) | Self::Commits { .. } | Self::Wire { .. } => {
                bail!("only the server of MCP is started by others")
            }
        }
    }

    /// Is this process until its input ends.
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Answer => each_line(|out| write_all(out, ANSWER)),
            Self::Mcp => serve_mcp(),
            Self::Pipe(file) => {
                let bytes = fs::read(&file)?;
                each_line(|out| bytes.chunks(RAW_WRITE_BYTES).try_for_each(|piece| write_all(out, piece)))
            }
            Self::Commits { batches, database } => {
                let batches: Vec<String> = serde_json::from_slice(&fs::read(&batches)?)?;
                let mut connection = new_database(&database)?;
                each_line(|out| {
                    batches.iter().try_for_each(|batch| commit(&mut connection, batch))?;
                    write_all(out, ANSWER)
                })
            }
            Self::Wire { dialect, address } => {
                let mut limit = wire::limit::Limit::connect(dialect, &address)?;
                each_line(|out| {
                    limit.show_answer(out)?;
                    write_all(out, ANSWER)
                })
            }
        }
    }
}

fn serve_mcp() -> Result<()> {
    let (mut out, mut input) = (std::io::stdout().lock(), std::io::stdin().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        if let Some(answer) = mcp::answer_of_server(&line) {
            write_all(&mut out, answer.as_bytes())?;
        }
        line.clear();
    }
    Ok(())
}

fn each_line(mut act: impl FnMut(&mut StdoutLock<'_>) -> Result<()>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let mut line = String::new();
    let mut input = std::io::stdin().lock();
    while input.read_line(&mut line)? > 0 {
        act(&mut out)?;
        line.clear();
    }
    Ok(())
}

/// Rust's stdout is line-buffered: it must not turn our writes into others.
fn write_all(out: &mut StdoutLock<'_>, bytes: &[u8]) -> Result<()> {
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// The settings of the contract: WAL, NORMAL.
fn new_database(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))?;
    connection.execute_batch(
        "PRAGMA synchronous = NORMAL; CREATE TABLE log (first_index INTEGER PRIMARY KEY, chunks TEXT NOT NULL)",
    )?;
    Ok(connection)
}

fn commit(connection: &mut Connection, batch: &str) -> Result<()> {
    let transaction = connection.transaction()?;
    transaction.prepare_cached("INSERT INTO log (chunks) VALUES (?1)")?.execute([batch])?;
    Ok(transaction.commit()?)
}

/// One small commit after another in this process: how long one takes.
pub(crate) fn single_commits(database: &Path, count: usize) -> Result<Vec<Duration>> {
    let mut connection = new_database(database)?;
    let row = "x".repeat(200);
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        commit(&mut connection, &row)?;
        times.push(started.elapsed());
    }
    Ok(times)
}

/// A line there and a line back, between two bare processes.
pub(crate) fn round_trips(count: usize) -> Result<Vec<Duration>> {
    let mut bare = Raw::Answer.start()?;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        times.push(bare.exchange(b"{}\n", Until::Count(1))?.time);
    }
    bare.finish()?;
    Ok(times)
}

/// The run log as it was committed: one text per commit.
pub(crate) fn recorded_batches(database: &Path) -> Result<Vec<String>> {
    let connection = open_existing(database)?;
    let mut statement =
        connection.prepare("SELECT chunks FROM run_chunks ORDER BY session_id, first_index")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect::<Result<_, _>>().context("cannot read the run log")
}

/// What the rows and indexes of a database take up.
pub(crate) fn used_bytes(database: &Path) -> Result<u64> {
    let connection = open_existing(database)?;
    let ask =
        |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, u32>(0));
    let pages = ask("page_count")? - ask("freelist_count")?;
    Ok(u64::from(pages) * u64::from(ask("page_size")?))
}

/// Reads a conversation in its order and throws it away.
pub(crate) fn read_rows(database: &Path, session: &str) -> Result<(Duration, u64)> {
    let started = Instant::now();
    let connection = open_existing(database)?;
    let mut statement = connection.prepare(
        "SELECT m.id, m.role, p.data_json FROM chat_messages m JOIN chat_parts p ON p.message_id = m.id \
         WHERE m.session_id = ?1 ORDER BY m.seq, p.\"index\"",
    )?;
    let mut rows = statement.query([session])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        std::hint::black_box((row.get_ref(0)?, row.get_ref(1)?, row.get_ref(2)?));
        count += 1;
    }
    Ok((started.elapsed(), count))
}

fn open_existing(database: &Path) -> Result<Connection> {
    Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .with_context(|| format!("cannot open {}", database.display()))
}
