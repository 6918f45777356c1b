//! The official TypeScript client, and the one for Python without a hello, pinned in `peers/`, over stdio and
//! over streamable HTTP.

use std::path::{Path, PathBuf};

use attache_testkit::binary::Home;
use tokio::process::Command;

use crate::stage::{HttpServer, home};

const LEAST_STEPS: usize = 13;

/// Of the client for Python: twice six, twice four with forms, and the end.
const PYTHON_STEPS: usize = 21;

fn driver(home: &Home) -> Command {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    let mut command = home.program("node");
    command
        .arg(PathBuf::from(peers).join("mcp-sdk/drive.mjs"))
        .env("TEST_BINARY", home.binary())
        .env("TEST_WORKSPACE", home.workspace());
    command
}

fn python_driver(home: &Home) -> Command {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_serve/stateless_client.py");
    let mut command = home.program("python3");
    command
        .arg(script)
        .env("PYTHONPATH", PathBuf::from(peers).join("mcp-python/python"))
        .env("TEST_BINARY", home.binary())
        .env("TEST_WORKSPACE", home.workspace());
    command
}

async fn drive(home: &Home, command: Command) {
    drive_steps(home, command, LEAST_STEPS).await;
}

async fn drive_steps(home: &Home, mut command: Command, steps: usize) {
    let output = command.output().await.expect("node must be installed");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}\n{errors}\n{}", home.log());
    let done = report.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(done >= steps, "{report}");
}

#[tokio::test]
async fn it_asks_over_stdio() {
    let home = home();
    drive(&home, driver(&home)).await;
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn it_asks_over_streamable_http() {
    let home = home();
    let server = HttpServer::start(&home).await;
    let mut command = driver(&home);
    command.env("TEST_URL", server.url()).env("TEST_TOKEN", &server.token);
    drive(&home, command).await;
    server.stop(&home).await;
}

#[tokio::test]
async fn a_client_without_a_hello_asks_over_stdio() {
    let home = home();
    drive_steps(&home, python_driver(&home), PYTHON_STEPS).await;
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn a_client_without_a_hello_asks_over_streamable_http() {
    let home = home();
    let server = HttpServer::start(&home).await;
    let mut command = python_driver(&home);
    command.env("TEST_URL", server.url()).env("TEST_TOKEN", &server.token);
    drive_steps(&home, command, PYTHON_STEPS).await;
    server.stop(&home).await;
}
