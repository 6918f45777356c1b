//! `cargo xtask bench`: figures of the release binary, each beside a limit measured in the same run. Judges,
//! never fails on a slow machine.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

mod agent;
mod aims;
mod allocations;
mod chat;
mod compaction;
mod driven;
mod figures;
mod floor;
mod foreign;
mod histories;
mod mcp;
mod no_blobs;
mod raw;
mod rewinds;
mod sandbox;
mod search;
mod serve;
mod sessions;
mod streams;
mod table;
mod tools;
mod usage;
mod watchdog;
mod wire;

use agent::Home;
use raw::Raw;
use table::Table;

/// Where homes are made and what is measured in them.
#[derive(Debug)]
pub(crate) struct Place {
    binary: PathBuf,
    target: PathBuf,
}

impl Place {
    /// Where cargo has put this program, and the one that is measured beside it.
    fn here() -> Result<Self> {
        let own = std::env::current_exe()?;
        let release = own.parent().context("this program lies nowhere")?;
        let target = release.parent().unwrap_or(release).to_path_buf();
        Ok(Self { binary: release.join("attache"), target })
    }

    fn binary(&self) -> &Path {
        &self.binary
    }

    fn target(&self) -> &Path {
        &self.target
    }

    /// A new one each time: no figure hangs on what another has left.
    fn home(&self) -> Result<Home> {
        Home::new(&self.binary, &self.target)
    }

    /// One with another configuration than the scripted model's.
    fn home_with(&self, config: &str) -> Result<Home> {
        let home = self.home()?;
        fs::write(home.path("home/config.toml"), config)?;
        Ok(home)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match Raw::from_arguments(&arguments) {
        Some(raw) => raw.run(),
        None => measure(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The sections that name one of the words, all of them without any.
fn measure(words: &[&str]) -> Result<()> {
    ensure!(!cfg!(debug_assertions), "a limit must be as fast as it can be: run `cargo xtask bench`");
    let chosen: Vec<_> = MEASUREMENTS.into_iter().filter(|(name, _)| is_meant(name, words)).collect();
    ensure!(!chosen.is_empty(), "no section names {}; there are: {}", words.join(" or "), section_names());
    give_up_after(Duration::from_secs(aims::DEADLINE_SECONDS));
    let place = Place::here()?;
    let (mut table, busy_before) = (Table::default(), load_average());
    for (name, measure) in chosen {
        eprintln!("== {name}");
        measure(&place, &mut table)?;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", machine())?;
    writeln!(out, "Load average: {busy_before} at the start, {} at the end\n", load_average())?;
    writeln!(out, "{}\n{} short of their aim", table.text(), table.short())?;
    Ok(())
}

type Measure = fn(&Place, &mut Table) -> Result<()>;

const MEASUREMENTS: [(&str, Measure); 14] = [
    ("processes, sessions, short turns", sessions::measure),
    ("streams", streams::measure),
    ("histories", histories::measure),
    ("compaction", compaction::measure),
    ("rewinds and copies", rewinds::measure),
    ("search in all sessions", search::measure),
    ("the wires of the models", wire::measure),
    ("tools on a large tree", tools::measure),
    ("commands before they run", watchdog::measure),
    ("commands in the sandbox", sandbox::measure),
    ("servers of MCP", mcp::measure),
    ("serve: clients elsewhere", serve::measure),
    ("the chat in a terminal", chat::measure),
    ("foreign agents", foreign::measure),
];

fn is_meant(section: &str, words: &[&str]) -> bool {
    words.is_empty() || words.iter().any(|word| section.contains(word))
}

fn section_names() -> String {
    MEASUREMENTS.map(|(name, _)| name).join("; ")
}

/// What a turn leaves to be done after its answer, done.
fn settle() {
    thread::sleep(Duration::from_millis(aims::SETTLE_MS));
}

/// The children notice that their input has ended.
fn give_up_after(time: Duration) {
    thread::spawn(move || {
        thread::sleep(time);
        eprintln!("error: not done after {} s; a process does not answer", time.as_secs());
        std::process::exit(1);
    });
}

fn machine() -> String {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler = compiler.map_or_else(|_| String::new(), |output| text(&output.stdout));
    format!("Machine: {cores} cores of {model}, Linux {}, {compiler}", kernel.trim())
}

/// Of the last minute. Above the number of cores by much, the times are those of a machine that does something
/// else.
fn load_average() -> String {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    averages.split_whitespace().next().unwrap_or("unknown").to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
