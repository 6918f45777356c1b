//! `attache demo`: plays one full session in the terminal. Real binary, real ACP, real files; only the model is
//! a script. Checks every step; the exit code tells whether everything went as scripted.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::demo::agent::DemoAgent;
use crate::demo::seen::SeenUpdates;
use crate::demo::stage::DemoStage;
use crate::sandbox::{self, NO_SHELL};

mod agent;

mod seen;
mod stage;

pub(crate) use stage::wrap;

const SCRIPT: &str = include_str!("demo/script.txt");
const FIX: &str = "The greeting has a typo. Please fix it and check it.";
const STORY: &str = "Now tell me a long story about greetings.";
const STILL_THERE: &str = "Are you still there? Write down what happened.";

/// How many of 400 updates arrive before we kill the story.
const KILLED_AFTER: usize = 60;

/// No step takes a second on a healthy machine; if one hangs, end the demo.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn run() -> Result<()> {
    ensure!(sandbox::shell().is_some(), "the demo runs a command, and there is {NO_SHELL}");
    let mut stage = DemoStage::new();
    stage.title("attache demo: one session, two processes, nothing lost");
    let place = tempfile::tempdir().context("can't make a temporary directory")?;
    let workspace = prepare(place.path())?;
    // An interrupt drops it, which ends the agent and everything it started, and removes the directory.
    let interrupted = async {
        tokio::signal::ctrl_c().await.context("can't wait for an interrupt")?;
        bail!("interrupted; the demo's files are removed")
    };
    let playing = tokio::time::timeout(PATIENCE, play(&mut stage, place.path(), &workspace));
    tokio::select! {
        played = playing => played.context("the demo did not end in time")??,
        interrupted = interrupted => interrupted?,
    }
    Ok(stage.closing()?)
}

/// A home with the scripted model, and a workspace with a typo.
fn prepare(place: &Path) -> Result<PathBuf> {
    let home = place.join("home");
    let workspace = place.join("project");
    fs::create_dir_all(workspace.join("src"))?;
    fs::create_dir_all(&home)?;
    fs::write(workspace.join("src/greeting.txt"), "Dear reader,\n\nhello wrold!\n\nYours\n")?;
    fs::write(home.join("script.txt"), SCRIPT)?;
    let config =
        "model = \"demo/default\"\n\n[providers.demo]\ndialect = \"script\"\nscript = \"script.txt\"\n";
    fs::write(home.join("config.toml"), config)?;
    Ok(workspace.canonicalize()?)
}

async fn play(stage: &mut DemoStage, place: &Path, workspace: &Path) -> Result<()> {
    let home = place.join("home");
    let (agent, session) = meet(stage, &home, workspace).await?;
    fix_the_typo(stage, &agent, &session, workspace).await?;
    let told = tell_a_story_and_die(stage, agent, &session).await?;
    come_back(stage, &home, workspace, &session, &told).await
}

async fn meet(stage: &mut DemoStage, home: &Path, workspace: &Path) -> Result<(DemoAgent, String)> {
    stage.chapter("A new process, a new session");
    let started = Instant::now();
    let agent = DemoAgent::spawn(home)?;
    let answer = agent.initialize().await?;
    stage.fact(&format!("initialize answered after {:.1} ms", started.elapsed().as_secs_f64() * 1e3));
    stage.check("it speaks protocol version 1", answer["protocolVersion"] == 1)?;
    let made = agent.call("session/new", json!({ "cwd": workspace, "mcpServers": [] })).await?;
    let session = made["sessionId"].as_str().context("session/new gave no sessionId")?.to_owned();
    stage.check(&format!("session {session} is open"), session.starts_with("ses_"))?;
    Ok((agent, session))
}

async fn fix_the_typo(
    stage: &mut DemoStage,
    agent: &DemoAgent,
    session: &str,
    workspace: &Path,
) -> Result<()> {
    stage.chapter("A plan, a look, an edit with your permission, a command");
    stage.user(FIX);
    let mut seen = SeenUpdates::default();
    let answer = agent.prompt(session, FIX, |event| seen.show(stage, event)).await?;
    seen.finish(stage);
    stage.check("the turn ended by itself", answer["stopReason"] == "end_turn")?;
    stage.check("the plan is done", seen.plan_is_done())?;
    stage.check("you were asked for the edit and the command", seen.permissions() == 2)?;
    stage.check("the edit came with its diff", seen.has_diff("hello wrold!", "hello world!"))?;
    let text = fs::read_to_string(workspace.join("src/greeting.txt"))?;
    stage.check("the file on disk says world", text == "Dear reader,\n\nhello world!\n\nYours\n")?;
    stage.check("the command saw it", seen.output_contains("hello world!"))
}

async fn tell_a_story_and_die(stage: &mut DemoStage, agent: DemoAgent, session: &str) -> Result<String> {
    stage.chapter("A long answer, and SIGKILL in the middle of it");
    stage.user(STORY);
    let mut seen = SeenUpdates::default();
    agent.prompt_until(session, STORY, KILLED_AFTER, |event| seen.show(stage, event)).await?;
    let marker = agent.kill().await?;
    seen.finish(stage);
    stage.crash(&format!("killed after {KILLED_AFTER} pieces of the answer ({marker})"));
    let told = seen.text().to_owned();
    stage.check("you had read a part of the story", !told.is_empty() && told.len() < 400 * 38)?;
    Ok(told)
}

async fn come_back(
    stage: &mut DemoStage,
    home: &Path,
    workspace: &Path,
    session: &str,
    told: &str,
) -> Result<()> {
    stage.chapter("A new process loads the session");
    let agent = DemoAgent::spawn(home)?;
    agent.initialize().await?;
    let started = Instant::now();
    let mut seen = SeenUpdates::silent();
    let load = json!({ "sessionId": session, "cwd": workspace, "mcpServers": [] });
    agent.call_with("session/load", load, |event| seen.show(stage, event)).await?;
    stage.fact(&format!("session/load answered after {:.1} ms", started.elapsed().as_secs_f64() * 1e3));
    stage.check("both prompts are there", seen.prompts() == [FIX, STORY])?;
    stage.check("the edit is there with its diff", seen.has_diff("hello wrold!", "hello world!"))?;
    let kept = seen.text().contains(told);
    stage.check(&format!("all {} characters of the story that you had read are there", told.len()), kept)?;
    stage.chapter("And the session goes on");
    stage.user(STILL_THERE);
    let mut seen = SeenUpdates::default();
    let answer = agent.prompt(session, STILL_THERE, |event| seen.show(stage, event)).await?;
    seen.finish(stage);
    stage.check("the turn ended by itself", answer["stopReason"] == "end_turn")?;
    stage.check("the note is a new file", seen.has_new_file("NOTES.md"))?;
    stage.check("the note is on disk", workspace.join("NOTES.md").exists())?;
    let left = agent.leave().await?;
    stage.check("the process left with its editor", left)?;
    let listed = DemoAgent::sessions_list(home)?;
    stage.check("`attache sessions list` knows the session", listed.contains(session))?;
    ensure!(listed.lines().count() == 1, "one session was expected, not: {listed}");
    Ok(())
}

/// A text field of an event.
fn field<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path).and_then(Value::as_str)
}
