//! What whoever runs a server sees of it and decides: figures, a line for each request, tokens for others, and
//! how much each caller may have.

use std::time::Duration;

use attache_testkit::binary::Home;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::plain_http::{Events, HttpAnswer, request};
use crate::server::{PATIENCE, Server, hello};
use crate::sockets;

const SCRIPT: &str = r#"
model paid price_input=1 price_output=2
on "cost"
  usage input=1000000 output=500000 cache_read=10
  text "spent"
on "fail"
  error permanent "the model is on fire"
on *
  text "ok"
"#;

async fn served(config: &str) -> Server {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config(config);
    Server::of(home, &["--model", "script/paid"]).await
}

/// A token, and what the configuration says of it.
async fn new_token(home: &Home, name: &str, scope: &str) -> (String, String) {
    let output = home.command().args(["serve", "--new-token"]).output().await.unwrap();
    assert!(output.status.success());
    let (token, told) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let token = token.trim().to_owned();
    assert!(!told.contains(&token), "{told}");
    let hash = told.lines().find(|line| line.starts_with("hash = ")).expect("the line to write").to_owned();
    (token, format!("[serve.tokens.{name}]\n{hash}\nscope = \"{scope}\"\n"))
}

async fn chat(server: &Server, id: &str, text: &str) -> HttpAnswer {
    let message = json!({ "id": "m", "role": "user", "parts": [{ "type": "text", "text": text }] });
    let body = json!({ "id": id, "messages": [message] }).to_string();
    server.request(("POST", "/api/chat"), &[], &body).await
}

/// The value of one line of the figures.
fn figure(text: &str, name: &str) -> f64 {
    let value = text.lines().find_map(|line| line.strip_prefix(&format!("attache_{name} ")));
    value.unwrap_or_else(|| panic!("{name} is missing in\n{text}")).parse().unwrap()
}

async fn figures(server: &Server) -> String {
    let answer = server.request(("GET", "/metrics"), &[], "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    answer.body
}

#[tokio::test]
async fn figures_tell_connections_prompts_turns_tokens_cost_and_errors() {
    let server = served("").await;
    let before = figures(&server).await;
    assert_eq!(figure(&before, "prompts_total{way=\"chat\"}"), 0.0);
    let agent = server.socket_client().await;
    let session = agent.new_session(&server.home.workspace()).await;
    let prompt = json!([{ "type": "text", "text": "fail" }]);
    let failed =
        agent.client.request("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!(chat(&server, "one", "cost").await.status, 200);
    assert_eq!(server.request(("GET", "/metrics"), &[("authorization", "")], "").await.status, 401);
    let after = figures(&server).await;
    for (name, expected) in [
        ("connections_open", 1.0),
        ("connections_total", 1.0),
        ("sessions_open", 2.0),
        ("prompts_total{way=\"acp\"}", 1.0),
        ("prompts_total{way=\"chat\"}", 1.0),
        ("turns_started_total", 2.0),
        ("turns_total{end=\"finish\"}", 1.0),
        ("turns_total{end=\"error\"}", 1.0),
        ("model_failures_total", 1.0),
        ("http_responses_total{code=\"401\"}", 1.0),
        ("events_missed_total", 0.0),
    ] {
        assert_eq!(figure(&after, name), expected, "{name} in\n{after}");
    }
    // A title may have been asked for as well.
    assert!(figure(&after, "model_tokens_total{kind=\"input\"}") >= 1_000_000.0, "{after}");
    assert!(figure(&after, "model_tokens_total{kind=\"cache_read\"}") >= 10.0, "{after}");
    assert!(figure(&after, "model_cost_dollars_total") >= 2.0, "{after}");
    assert!(
        figure(&after, "received_bytes_total") > 200.0
            && figure(&after, "websocket_sent_bytes_total") > 200.0
    );
    // Whatever has happened, no name is in it, and it does not grow.
    assert!(!after.contains(&session) && !after.contains("one"), "{after}");
    for number in 0..20 {
        chat(&server, &format!("more {number}"), "hello").await;
    }
    assert!(figures(&server).await.lines().count() <= after.lines().count() + 1);
    server.stop().await;
}

#[tokio::test]
async fn each_request_is_a_line_that_names_its_token_and_holds_no_secret() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let log = home.home().join("access.log");
    let (token, config) = new_token(&home, "phone", "read").await;
    home.write_config(&format!("[serve]\naccess_log = \"access.log\"\n{config}"));
    let server = Server::of(home, &[]).await;
    let id = server.begin().await;
    let path = format!("/acp?token={}&connectionId={id}", server.token);
    drop(Events::ask(&server.address, &server.token, &[("acp-connection-id", &id)]).await);
    drop(server.request(("GET", &path), &[("authorization", ""), ("accept", "text/html")], "").await);
    request(&server.address, &token, ("GET", "/readyz"), &[], "").await;
    request(&server.address, "wrong", ("GET", "/no"), &[], "").await;
    let written = async {
        loop {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            if text.lines().count() >= 5 {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let log = tokio::time::timeout(PATIENCE, written).await.expect("lines are missing");
    server.stop().await;
    for part in [
        " 127.0.0.1 owner POST /acp 200 ",
        " 127.0.0.1 owner GET /acp 200 ",
        " 127.0.0.1 - GET /acp 401 ",
        " 127.0.0.1 phone GET /readyz 200 6 ",
        " 127.0.0.1 - GET /no 401 ",
    ] {
        assert_eq!(log.matches(part).count(), 1, "{part} in\n{log}");
    }
    assert_eq!(log.lines().count(), 5, "{log}");
    assert!(log.lines().all(|line| line.split(' ').count() == 8 && line.contains("Z 127.0.0.1 ")), "{log}");
    assert!(!log.contains("token=") && !log.contains(&token), "{log}");
}

#[tokio::test]
async fn without_a_file_the_lines_are_on_stderr_and_can_be_turned_off() {
    let server = served("").await;
    server.begin().await;
    server.wait_until_told(" owner POST /acp 200 ").await;
    server.stop().await;
    let server = served("[serve]\naccess_log = \"off\"\n").await;
    server.begin().await;
    let told = server.told.clone();
    server.stop().await;
    let told = told.lock().unwrap().join("\n");
    assert!(!told.contains("POST /acp"), "{told}");
}

#[tokio::test]
async fn a_token_may_do_what_its_scope_says() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let (read, of_read) = new_token(&home, "reader", "read").await;
    let (talk, of_talk) = new_token(&home, "talker", "talk").await;
    let (all, of_all) = new_token(&home, "deputy", "all").await;
    home.write_config(&format!("{of_read}{of_talk}{of_all}"));
    let server = Server::of(home, &[]).await;
    let begin = async |token: &str| {
        let answer = request(&server.address, token, ("POST", "/acp"), &[], &hello().to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.header("acp-connection-id").unwrap().to_owned()
    };
    let ask = async |token: &str, connection: &str, method: &str, params: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        let headers = [("acp-connection-id", connection)];
        request(&server.address, token, ("POST", "/acp"), &headers, &message.to_string()).await
    };
    let (reading, talking, everything) = (begin(&read).await, begin(&talk).await, begin(&all).await);
    let new = json!({ "cwd": server.home.workspace(), "mcpServers": [] });
    let deleted = json!({ "sessionId": "none" });
    for (token, connection, method, params, expected) in [
        (&read, &reading, "session/list", json!({}), 202),
        (&read, &reading, "session/new", new.clone(), 403),
        (&read, &reading, "session/load", new.clone(), 403),
        (&read, &reading, "session/delete", deleted.clone(), 403),
        (&talk, &talking, "session/new", new.clone(), 202),
        (&talk, &talking, "session/delete", deleted.clone(), 403),
        (&talk, &talking, "_attache/new/idea", json!({}), 403),
        (&all, &everything, "session/delete", deleted, 202),
        // Nobody else's connection, whatever the scope.
        (&all, &talking, "session/list", json!({}), 404),
        (&read, &everything, "session/list", json!({}), 404),
    ] {
        let answer = ask(token, connection, method, params).await;
        assert_eq!(answer.status, expected, "{method}: {answer:?}");
        if expected == 403 {
            assert!(answer.body.contains("may") && answer.body.contains("serve.tokens"), "{answer:?}");
        }
    }
    let posted = json!({ "id": "c", "messages": [] }).to_string();
    assert_eq!(request(&server.address, &read, ("POST", "/api/chat"), &[], &posted).await.status, 403);
    assert_eq!(request(&server.address, &talk, ("POST", "/api/chat"), &[], &posted).await.status, 400);
    assert_eq!(request(&server.address, &read, ("GET", "/metrics"), &[], "").await.status, 200);
    // Over a WebSocket it is the answer to the message.
    let (mut socket, _) = sockets::open(&server.address, &read, &[]).await;
    for message in [hello(), json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": new })] {
        socket.send(Message::text(message.to_string())).await.unwrap();
    }
    let refused = loop {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        let message: Value = serde_json::from_str(text.as_str()).unwrap();
        if message["id"] == 1 {
            break message;
        }
    };
    assert_eq!(refused["error"]["code"], -32_003, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("\"reader\" may only read"), "{refused}");
    server.stop().await;
}

#[tokio::test]
async fn who_has_had_enough_is_told_when_to_come_back() {
    let server = served(
        "[serve.per_token]\nprompts_per_minute = 2\nconnections = 3\n[serve.per_address]\nbytes_per_minute = 4096\n",
    )
    .await;
    let retry = |answer: &HttpAnswer| -> u64 {
        assert_eq!(answer.status, 429, "{answer:?}");
        assert!(answer.body.contains("try again in"), "{answer:?}");
        answer.header("retry-after").expect("when to come back").parse().unwrap()
    };
    assert_eq!(chat(&server, "one", "hello").await.status, 200);
    let agent = server.socket_client().await;
    let session = agent.new_session(&server.home.workspace()).await;
    let prompt = || json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "hello" }] });
    agent.client.expect("session/prompt", prompt()).await;
    let refused = retry(&chat(&server, "one", "hello").await);
    assert!((1..=30).contains(&refused), "{refused}");
    let error = agent.client.request("session/prompt", prompt()).await.unwrap_err();
    assert_eq!(error.code, -32_003, "{error:?}");
    // What is no prompt goes on.
    agent.client.expect("session/list", json!({})).await;
    server.begin().await;
    server.begin().await;
    assert!(retry(&server.post(&[], &hello()).await) >= 1);
    let (_, answer) = sockets::bare(&server.address, &server.token, &[]).await;
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    // Bodies: who has sent too much waits.
    let long = json!({ "jsonrpc": "2.0", "id": 1, "method": "x", "params": { "x": "x".repeat(8_192) } });
    server.post(&[], &long).await;
    assert!(retry(&server.post(&[], &hello()).await) >= 1);
    server.stop().await;
}

/// A WebSocket that has sent too much is read later; nothing is lost.
#[tokio::test]
async fn a_socket_that_sends_too_much_is_held_up() {
    let server = served("[serve.per_token]\nbytes_per_minute = 60000\n").await;
    let agent = server.socket_client().await;
    // A second's worth of bytes beyond the limit.
    agent.client.send_line(
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/x\",\"params\":{{\"x\":\"{}\"}}}}", "x".repeat(61_500))
            .as_bytes(),
    );
    let begun = std::time::Instant::now();
    tokio::time::timeout(PATIENCE, agent.client.expect("session/list", json!({}))).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    server.stop().await;
}

#[tokio::test]
async fn behind_a_known_proxy_its_clients_are_counted_and_not_it() {
    let server = served(
        "[serve]\nproxies = [\"127.0.0.1\"]\naccess_log = \"stderr\"\n[serve.per_address]\nconnections = 1\n",
    )
    .await;
    let from = async |address: &str| server.post(&[("x-forwarded-for", address)], &hello()).await.status;
    assert_eq!(from("192.0.2.1").await, 200);
    assert_eq!(from("192.0.2.1").await, 429);
    assert_eq!(from("192.0.2.2").await, 200);
    assert_eq!(from("192.0.2.9, 192.0.2.2").await, 429);
    server.wait_until_told(" 192.0.2.2 owner POST /acp 200 ").await;
    server.stop().await;
}

#[tokio::test]
async fn mistakes_about_tokens_name_file_line_and_key_and_never_the_token() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let secret = "c0ffee".repeat(11)[..64].to_owned();
    for (config, expected) in [
        (format!("[serve.tokens.ci]\nhash = \"{secret}\"\nscope = \"all\"\n"), "`serve.tokens.ci.hash`"),
        ("[serve.tokens.ci]\nscope = \"all\"\n".to_owned(), "`serve.tokens.ci.hash`"),
        (
            format!("[serve.tokens.ci]\nhash = \"sha256:{secret}\"\nscope = \"some\"\n"),
            "`serve.tokens.ci.scope`",
        ),
        (format!("[serve.tokens.ci]\nhash = \"sha256:{secret}\"\n"), "needs scope"),
        (format!("[serve.tokens.owner]\nhash = \"sha256:{secret}\"\nscope = \"all\"\n"), "name is taken"),
        (format!("[serve.tokens.\"a b\"]\nhash = \"sha256:{secret}\"\nscope = \"all\"\n"), "is no name"),
        ("[serve.tokens.ci]\nhsah = \"x\"\n".to_owned(), "hsah"),
        ("[serve]\nproxies = [\"proxy\"]\n".to_owned(), "is no address"),
        ("[serve.per_token]\nprompts_per_minute = 0\n".to_owned(), "`serve.per_token.prompts_per_minute`"),
    ] {
        home.write_config(&config);
        let output = home.command().args(["serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{config}: {told}");
        assert!(told.contains("config.toml:") && told.contains(expected), "{config}: {told}");
        assert!(!told.contains(&secret), "{told}");
    }
}

#[tokio::test]
async fn an_address_that_others_reach_is_said_in_red() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let (mut person, terminal) = attache_testkit::pseudo_terminal::open();
    let mut command = home.command();
    command.args(["serve", "--listen", "0.0.0.0:0"]).stdin(std::process::Stdio::null());
    let mut child = command.stderr(terminal).spawn().unwrap();
    let screen = tokio::task::spawn_blocking(move || {
        attache_testkit::pseudo_terminal::read_until(&mut person, "ACP at")
    });
    let screen = tokio::time::timeout(PATIENCE, screen).await.unwrap().unwrap();
    child.kill().await.unwrap();
    let line = screen.lines().find(|line| line.contains("can be reached from other machines")).unwrap();
    assert!(line.starts_with("\x1b[31m") && line.contains("not encrypted"), "{screen:?}");
}

/// The usual port is taken by somebody, as it is where two servers run on one machine.
#[tokio::test]
async fn a_taken_port_leads_to_the_next() {
    let taken = std::net::TcpListener::bind("127.0.0.1:7766");
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let server = Server::by(home, &[]).await;
    let port: u16 = server.address.rsplit(':').next().unwrap().parse().unwrap();
    assert!((7767..7776).contains(&port), "{port}");
    server.wait_until_told(" uses port 7766; trying the next").await;
    assert_eq!(server.request(("GET", "/readyz"), &[], "").await.status, 200);
    server.stop().await;
    drop(taken);
}
