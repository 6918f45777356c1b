//! A server over streamable HTTP that cuts, leads astray, floods and lies.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::stage::{call, home, open, session, shown};

async fn listening(mode: &str) -> (Child, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/http_server.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(mode).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).await.unwrap();
    (child, format!("http://127.0.0.1:{}/mcp", port.trim()))
}

#[tokio::test]
async fn what_comes_of_a_call_is_said_and_nobody_waits_for_what_will_not_come() {
    let home = home("on *\n  call far_go {}\n  ---\n  text \"done\"\n");
    let agent = home.start();
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    for (mode, expected) in [
        ("resumes", "resumed at 1,2"),
        ("cuts", "its answer was cut off; it is unknown what the request did"),
        ("moves", "307 Temporary Redirect (it leads to another place)"),
        ("foreign", "for us"),
        ("long", "its answer was cut off"),
        ("html", "a message of more than 8192 KiB"),
        ("refuses", r"no such\u{202e} tool (code -32602)"),
    ] {
        let (_child, url) = listening(mode).await;
        let server = json!({ "type": "http", "name": "far", "url": url, "headers": [] });
        let id = open(&agent, &home, &[server]).await;
        agent.prompt(&id, "/mcp").await.unwrap();
        let before = agent.resident_bytes();
        let began = Instant::now();
        let result = call(&agent, &id, "go").await;
        assert!(shown(&result).contains(expected), "{mode}: {result}");
        assert!(began.elapsed() < Duration::from_secs(20), "{mode}: {:?}", began.elapsed());
        let grown = agent.peak_resident_bytes().saturating_sub(before);
        assert!(grown < 48 * 1024 * 1024, "{mode}: grown by {} KiB", grown / 1024);
        agent.client.expect("session/close", json!({ "sessionId": id })).await;
    }
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_over_though_its_server_stalls() {
    let (_child, url) = listening("stalls").await;
    let home = home("on *\n  call far_go {}\n  ---\n  text \"done\"\n");
    let agent = home.start();
    let server = json!({ "type": "http", "name": "far", "url": url, "headers": [] });
    let id = session(&agent, &home, &[server]).await;
    let cancelling = async {
        tokio::time::sleep(Duration::from_millis(800)).await;
        agent.client.notify("session/cancel", json!({ "sessionId": id }));
        Instant::now()
    };
    let (answer, cancelled) = tokio::join!(agent.prompt(&id, "go"), cancelling);
    assert_eq!(answer.unwrap()["stopReason"], "cancelled");
    assert!(cancelled.elapsed() < Duration::from_millis(2_500), "{:?}", cancelled.elapsed());
    agent.finish(&home).await;
}
