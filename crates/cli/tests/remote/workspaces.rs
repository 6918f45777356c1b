//! Where remote sessions may work: below the configured directories, by their real places; others are unknown.

use std::os::unix::fs::symlink;

use attache_testkit::binary::Home;
use serde_json::{Value, json};

use crate::server::{SCRIPT, Server};

#[tokio::test]
async fn sessions_work_below_the_configured_directories_alone() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let inside = home.workspace().join("inside");
    let beside = home.workspace().join("inside-not");
    for directory in [&inside, &inside.join("deep"), &beside] {
        std::fs::create_dir_all(directory).unwrap();
    }
    symlink(&beside, inside.join("leads-out")).unwrap();
    symlink(inside.join("deep"), beside.join("leads-in")).unwrap();
    // A session elsewhere, made on this machine.
    let own = home.start();
    let elsewhere = own.open_session(&home).await;
    own.prompt(&elsewhere, "hello").await.unwrap();
    own.finish(&home).await;
    home.write_config(&format!("[serve]\nworkspaces = [{:?}]\n", inside.to_str().unwrap()));
    let server = Server::of(home, &[]).await;
    let agent = server.socket_client().await;
    let new = |cwd: &std::path::Path, more: Value| json!({ "cwd": cwd, "mcpServers": [], "additionalDirectories": more });
    for allowed in [inside.clone(), inside.join("deep"), inside.join("deep/.."), beside.join("leads-in")] {
        agent.client.expect("session/new", new(&allowed, json!([]))).await;
    }
    agent.client.expect("session/new", new(&inside, json!([inside.join("deep")]))).await;
    for refused in
        [beside.clone(), inside.join("leads-out"), inside.join(".."), "/".into(), server.home.workspace()]
    {
        let error = agent.client.request("session/new", new(&refused, json!([]))).await.unwrap_err();
        assert!(error.code == -32602 && error.message.contains("serve.workspaces"), "{refused:?}: {error:?}");
    }
    let error = agent.client.request("session/new", new(&inside, json!([beside]))).await.unwrap_err();
    assert!(error.code == -32602 && error.message.starts_with("additionalDirectories[0]"), "{error:?}");
    // What is elsewhere is neither listed nor opened, read, copied, closed or deleted.
    let listed = agent.client.expect("session/list", json!({})).await;
    assert_eq!(listed["sessions"], json!([]));
    let workspace = server.home.workspace();
    for (method, params) in [
        ("session/load", json!({ "sessionId": elsewhere, "cwd": workspace, "mcpServers": [] })),
        ("session/resume", json!({ "sessionId": elsewhere, "cwd": workspace })),
        ("session/fork", json!({ "sessionId": elsewhere, "cwd": inside })),
        ("session/close", json!({ "sessionId": elsewhere })),
        ("session/delete", json!({ "sessionId": elsewhere })),
        ("_attache/session/export", json!({ "sessionId": elsewhere })),
        ("_attache/session/status", json!({ "sessionId": elsewhere })),
        ("_attache/commands/complete", json!({ "sessionId": elsewhere, "text": "/a" })),
        ("_attache/queue/list", json!({ "sessionId": elsewhere })),
    ] {
        let error = agent.client.request(method, params).await.expect_err(method);
        assert!([-32002, -32602].contains(&error.code), "{method}: {error:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn without_configuration_it_is_the_directory_of_the_server() {
    let server = Server::start().await;
    let agent = server.http_client().await;
    agent.new_session(&server.home.workspace()).await;
    let params = json!({ "cwd": server.home.home(), "mcpServers": [] });
    assert_eq!(agent.client.request("session/new", params).await.unwrap_err().code, -32602);
    server.stop().await;
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config("[serve]\nworkspaces = [\"/nowhere/at/all\"]\n");
    let output = home.command().args(["serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("/nowhere/at/all"), "{told}");
}
