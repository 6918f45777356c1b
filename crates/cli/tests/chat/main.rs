//! `attache chat -p` as scripts and pipelines run it: what is written where, and with which exit code.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

use std::process::Stdio;
use std::time::Duration;

use attache_testkit::binary::Home;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

mod exit_codes;
mod interrupts;
mod many;
mod other_agents;
mod output;
mod prompt;
mod schema;
mod sessions;
mod shell;

/// No promise: only that a run that hangs does not hang the tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// How one run went.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    said: String,
    told: String,
}

impl Ran {
    /// The object of `--output json`, or the last line of `jsonl`.
    fn object(&self) -> Value {
        let last = self.said.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn home(script: &str) -> Home {
    Home::new(env!("CARGO_BIN_EXE_attache"), script)
}

async fn chat(home: &Home, arguments: &[&str]) -> Ran {
    chat_with(home, arguments, b"").await
}

/// With something piped in.
async fn chat_with(home: &Home, arguments: &[&str], piped: &[u8]) -> Ran {
    let mut command = home.command();
    command.arg("chat").args(arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the binary");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(piped).await.unwrap();
    drop(stdin);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = output.unwrap_or_else(|_| panic!("{arguments:?} did not end")).unwrap();
    Ran {
        code: output.status.code(),
        said: String::from_utf8(output.stdout).unwrap(),
        told: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The one session of a home, as it is stored.
async fn export(home: &Home, session: &str) -> String {
    let output = home.command().args(["sessions", "export", session, "--format", "json"]).output().await;
    String::from_utf8(output.unwrap().stdout).unwrap()
}
