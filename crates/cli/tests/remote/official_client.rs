//! The official TypeScript SDK, pinned in `peers/`, over WebSocket and over streamable HTTP.

use std::path::PathBuf;

use attache_testkit::binary::Home;

use crate::server::Server;

const SCRIPT: &str = include_str!("../../../../peers/acp-sdk/model.script");
const LEAST_STEPS: usize = 9;

async fn drive(transport: &str) {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    let server = Server::of(Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT), &[]).await;
    let output = server
        .home
        .program("node")
        .args(["--experimental-websocket", "--no-warnings"])
        .arg(PathBuf::from(peers).join("acp-sdk/remote.mjs"))
        .env("TEST_TRANSPORT", transport)
        .env("TEST_ADDRESS", &server.address)
        .env("TEST_TOKEN", &server.token)
        .env("TEST_WORKSPACE", server.home.workspace())
        .output()
        .await
        .expect("node must be installed");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}\n{errors}");
    let done = report.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(done >= LEAST_STEPS, "{report}");
    server.stop().await;
}

#[tokio::test]
async fn it_talks_over_a_websocket() {
    drive("websocket").await;
}

#[tokio::test]
async fn it_talks_over_streamable_http() {
    drive("http").await;
}
