//! The AI SDK's `useChat` on a small React page in headless Chromium, from an origin of its own.

use std::path::PathBuf;

use attache_testkit::binary::Home;
use tokio::net::TcpListener;

use crate::server::Server;

const SCRIPT: &str = include_str!("../../../../peers/use-chat/model.script");
const LEAST_STEPS: usize = 11;

/// With the React and the AI SDK of this peer.
async fn drive(packages: &str) {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let page = listener.local_addr().unwrap();
    drop(listener);
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config(&format!(
        "[serve]\norigins = [\"http://{page}\"]\n\n[providers.script.models.default]\nimages = true\n"
    ));
    std::fs::write(home.workspace().join("a.txt"), "alpha\n").unwrap();
    let server = Server::of(home, &[]).await;
    let output = server
        .home
        .program("node")
        .arg(PathBuf::from(&peers).join("use-chat/drive.mjs"))
        .env("TEST_PEERS", &peers)
        .env("TEST_PACKAGES", packages)
        .env("TEST_ADDRESS", &server.address)
        .env("TEST_TOKEN", &server.token)
        .env("TEST_WORKSPACE", server.home.workspace())
        .env("TEST_PORT", page.port().to_string())
        .output()
        .await
        .expect("node must be installed");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    let done = report.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(done >= LEAST_STEPS, "{report}");
    server.stop().await;
}

#[tokio::test]
async fn a_page_of_ai_6_streams_asks_stops_resumes_and_attaches() {
    drive("use-chat").await;
}

#[tokio::test]
async fn a_page_of_ai_7_streams_asks_stops_resumes_and_attaches() {
    drive("use-chat7").await;
}
