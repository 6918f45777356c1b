//! How long the page takes to show the end of a very long session, in headless Chromium.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::Place;
use super::super::agent::{Home, Prompt};
use super::super::aims::{FIRST_PAINT_MS, PAGE_PARTS, PAGE_TURNS};
use super::super::table::{Row, Table};
use super::Served;
use super::client::login_link;

pub(super) fn first_paint(place: &Place, table: &mut Table) -> Result<()> {
    let peer = place.target().join("peers/page");
    if !peer.join("node_modules").is_dir() {
        eprintln!("   the page is not looked at: cargo xtask peers");
        return Ok(());
    }
    let home = place.home()?;
    let session = long_session(&home, &peer)?;
    let served = Served::start(&home)?;
    let mut script = Command::new("node");
    script.current_dir(&peer).arg("paint.mjs").env("TEST_ADDRESS", &served.address);
    script.env("TEST_LINK", login_link(&served)?).env("TEST_SESSION", session);
    let seen: Value = serde_json::from_slice(&output(&mut script)?.stdout)?;
    let milliseconds = |pointer: &str| {
        seen.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no {pointer} in {seen}"))
    };
    let parts = PAGE_TURNS * PAGE_PARTS;
    for (figure, pointer, aim) in [
        ("first paint", "/first_paint_ms/median", Some(FIRST_PAINT_MS)),
        ("any place of it", "/jump_ms/median", None),
        ("p99 of a frame", "/frame_ms/p99", None),
    ] {
        table.push(Row {
            figure: format!("page with {parts} parts: {figure}"),
            unit: "ms",
            value: milliseconds(pointer)?,
            limit: None,
            aim,
        });
    }
    Ok(())
}

/// Made of a short one; gives its id.
fn long_session(home: &Home, peer: &Path) -> Result<String> {
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    agent.prompt(&session, Prompt::ToolRounds)?;
    agent.finish()?;
    let (short, long) = (home.path("short.jsonl"), home.path("long.jsonl"));
    let mut export = sessions(home, &["export", &session, "--format", "jsonl"]);
    output(export.arg("--output").arg(&short))?;
    let mut longer = Command::new("node");
    longer.current_dir(peer).arg("large.mjs").arg(&short);
    longer.args([PAGE_TURNS.to_string(), PAGE_PARTS.to_string()]);
    let made = longer.stdin(Stdio::null()).stdout(File::create(&long)?).status()?;
    ensure!(made.success(), "large.mjs: {made}");
    let told = output(sessions(home, &["import"]).arg(&long))?;
    let told = String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned();
    let id = told.split_whitespace().find(|word| word.starts_with("ses_"));
    id.map(str::to_owned).with_context(|| format!("no session in {told:?}"))
}

fn sessions(home: &Home, arguments: &[&str]) -> Command {
    let mut command = Command::new(home.binary());
    command.arg("sessions").args(arguments).env_clear().env("ATTACHE_HOME", home.path("home"));
    command.current_dir(home.path("work"));
    command
}

fn output(command: &mut Command) -> Result<Output> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    Ok(output)
}
