//! What holding a command costs: a whole turn with one `true`, beside bubblewrap with nothing of ours. Needs
//! `bwrap`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Place;
use super::agent::Prompt;
use super::aims::{COMMANDS, SANDBOXED_TRUE_MS};
use super::figures::median_ms;
use super::table::{Limit, Row, Table};

/// Does not start where commands are held less than fully: the figure would be another one.
const CONFIG: &str = "model = \"bench/default\"\nsandbox = \"require\"\n\n[providers.bench]\ndialect = \"script\"\nscript = \"bench.script\"\n";

/// The least that namespaces of everything cost.
const BARE: &str = "bwrap --ro-bind / / --unshare-all true";

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home_with(CONFIG)?;
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    let mut record = Vec::new();
    agent.prompt_recorded(&session, Prompt::Command, &mut record)?;
    ensure!(
        memchr::memmem::find(&record, b"\"exit_code\":0").is_some(),
        "`true` did not run: {}",
        String::from_utf8_lossy(&record)
    );
    let (mut turns, mut tokens, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    // One after the other, so that all meet the same machine.
    for _ in 0..COMMANDS {
        turns.push(agent.prompt(&session, Prompt::Command)?.time);
        tokens.push(agent.prompt(&session, Prompt::OneToken)?.time);
        bare.push(run_bare()?);
    }
    let (turn, token, bare) = (median_ms(&turns)?, median_ms(&tokens)?, median_ms(&bare)?);
    table.push(Row {
        figure: "`true` in the sandbox".to_owned(),
        unit: "ms",
        value: turn - token,
        limit: Limit::new(bare, BARE),
        aim: Some(SANDBOXED_TRUE_MS),
    });
    table.push(Row {
        figure: "turn with `true` in the sandbox".to_owned(),
        unit: "ms",
        value: turn,
        limit: Limit::new(bare + token, "the same and a turn of one token"),
        aim: None,
    });
    agent.finish()
}

fn run_bare() -> Result<Duration> {
    let mut words = BARE.split(' ');
    let mut command = Command::new(words.next().context("no program")?);
    command.args(words).stdin(Stdio::null());
    let started = Instant::now();
    let status = command.status().context("bubblewrap is not installed")?;
    let elapsed = started.elapsed();
    ensure!(status.success(), "{BARE} failed");
    Ok(elapsed)
}
