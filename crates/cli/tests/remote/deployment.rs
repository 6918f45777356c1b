//! What the documentation says of running a server: nginx before it as written there, and the unit and the
//! container as they are shipped.

use std::process::Stdio;

use attache_testkit::binary::Home;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::plain_http::{Events, request};
use crate::server::{PATIENCE, SCRIPT, ServedAgent, Server, hello};
use crate::sockets;

const REMOTE: &str = include_str!("../../../../docs/remote.md");
const UNIT: &str = include_str!("../../../../packaging/attache.service");
const CONTAINER: &str = include_str!("../../../../packaging/Containerfile");

/// The only block of that language.
fn block(language: &str) -> &'static str {
    let (_, rest) = REMOTE.split_once(&format!("```{language}\n")).expect("the block");
    rest.split("```").next().unwrap()
}

#[tokio::test]
async fn nginx_as_documented_passes_streams_sockets_and_addresses_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap().to_string();
    drop(listener);
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config(&format!("[serve]\nhosts = [{proxy:?}]\nproxies = [\"127.0.0.1\"]\n"));
    let server = Server::of(home, &[]).await;
    let place = server.home.home().join("nginx");
    std::fs::create_dir_all(place.join("logs")).unwrap();
    let written = block("nginx").replace("127.0.0.1:7766;", &format!("{};", server.address));
    let (before, inside) = written.split_once("server {").expect("a server");
    let inside = inside.replace("listen 443 ssl;", &format!("listen {proxy};"));
    let inside: Vec<&str> = inside.lines().filter(|line| !line.contains("ssl_certificate")).collect();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};\n", place.display()))
        .concat();
    let config = format!(
        "daemon off;\nmaster_process off;\npid {0}/pid;\nerror_log {0}/error.log;\nevents {{}}\nhttp {{\naccess_log off;\n\
         {temporary}{before}server {{\n{1}\n}}\n",
        place.display(),
        inside.join("\n")
    );
    std::fs::write(place.join("nginx.conf"), &config).unwrap();
    let mut nginx = server.home.program("nginx");
    nginx.arg("-p").arg(&place).arg("-c").arg(place.join("nginx.conf")).stdin(Stdio::null());
    let mut nginx = nginx.spawn().expect("nginx must be installed");
    for _ in 0..1_000 {
        if tokio::net::TcpStream::connect(&proxy).await.is_ok() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let told = || std::fs::read_to_string(place.join("error.log")).unwrap_or_default();
    let answer = request(
        &proxy,
        &server.token,
        ("POST", "/acp"),
        &[("x-forwarded-for", "192.0.2.7")],
        &hello().to_string(),
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?} {} {config}", told());
    // The client of the proxy is told, and not what that client says of itself.
    server.wait_until_told(" 127.0.0.1 owner POST /acp 200 ").await;
    // Events come one by one: what is shown while the run goes on was not collected.
    let id = answer.header("acp-connection-id").unwrap().to_owned();
    let mut events = Events::open(&proxy, &server.token, &[("acp-connection-id", &id)]).await;
    let said = async |message: Value| {
        let headers = [("acp-connection-id", id.as_str())];
        let answer = request(&proxy, &server.token, ("POST", "/acp"), &headers, &message.to_string()).await;
        assert_eq!(answer.status, 202, "{answer:?}");
    };
    let params = json!({ "cwd": server.home.workspace(), "mcpServers": [] });
    said(json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params })).await;
    let session =
        events.until(|message| message["id"] == 1).await.pop().unwrap()["result"]["sessionId"].clone();
    let prompt = json!([{ "type": "text", "text": "slow" }]);
    let params = json!({ "sessionId": session, "prompt": prompt });
    said(json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params })).await;
    let is_text = |message: &Value| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk";
    let shown = tokio::time::timeout(PATIENCE, events.until(is_text)).await.expect("events are collected");
    assert!(shown.iter().all(|message| message["id"] != 2));
    // A WebSocket.
    let agent = ServedAgent::greeted(sockets::lines(&proxy, &server.token).await).await;
    agent.client.expect("session/list", json!({})).await;
    agent.client.end_input();
    let foreign = [("host", "evil.example")];
    assert_eq!(request(&proxy, &server.token, ("GET", "/readyz"), &foreign, "").await.status, 403);
    nginx.kill().await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn the_unit_and_the_container_start_what_there_is() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let started = UNIT.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/attache ")).unwrap();
    let unit: Vec<String> = started.split(' ').map(str::to_owned).collect();
    let command = CONTAINER.lines().find_map(|line| line.strip_prefix("CMD ")).unwrap();
    let container: Vec<String> = serde_json::from_str(command).unwrap();
    for arguments in [unit, container] {
        let output = home.command().args(&arguments).arg("--show-token").output().await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // Longer than runs may take by default.
    let stop = UNIT.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
    assert!(stop.parse::<u64>().unwrap() > 35);
}
