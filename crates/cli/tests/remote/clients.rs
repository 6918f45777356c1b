//! Several clients of one session, over whatever they come: who is asked, who is told, and who has left.

use std::time::{Duration, Instant};

use attache_testkit::binary::Home;
use attache_testkit::client::Reply;
use serde_json::{Value, json};

use crate::plain_http::Events;
use crate::server::{PATIENCE, ServedAgent, Server, hello};

async fn both(server: &Server) -> (ServedAgent, ServedAgent, String) {
    let (first, second) = (server.socket_client().await, server.http_client().await);
    let session = first.new_session(&server.home.workspace()).await;
    second.load(&session, &server.home.workspace()).await;
    (first, second, session)
}

fn runs(server: &Server) -> usize {
    std::fs::read_to_string(server.home.workspace().join("canary")).map_or(0, |text| text.lines().count())
}

async fn question(agent: &ServedAgent) -> Value {
    let is_it = |message: &Value| message["method"] == "session/request_permission";
    agent.client.wait_for("a permission request", is_it).await
}

fn allow() -> Reply {
    Reply::Result(json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } }))
}

#[tokio::test]
async fn all_are_asked_and_the_first_answer_wins() {
    for winner in [0, 1] {
        let server = Server::start().await;
        let (first, second, session) = both(&server).await;
        for agent in [&first, &second] {
            agent.client.set_policy(|_, _| Reply::Never);
        }
        let pending = first.start_prompt(&session, "run");
        let agents = [&first, &second];
        let asked = [question(&first).await, question(&second).await];
        assert_eq!(runs(&server), 0);
        agents[winner].client.reply(&asked[winner]["id"], allow());
        let loser = 1 - winner;
        let withdrawn = |message: &Value| {
            message["method"] == "$/cancel_request" && message["params"]["requestId"] == asked[loser]["id"]
        };
        agents[loser].client.wait_for("the question taken back", withdrawn).await;
        assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
        // Too late.
        agents[loser].client.reply(&asked[loser]["id"], allow());
        first.prompt(&session, "hello").await.unwrap();
        assert_eq!(runs(&server), 1);
        server.stop().await;
    }
}

#[tokio::test]
async fn what_one_says_and_hears_the_others_see() {
    let server = Server::start().await;
    let (first, second, session) = both(&server).await;
    second.prompt(&session, "hello from the second").await.unwrap();
    let said = first.client.wait_for_update(&session, "user_message_chunk").await;
    assert_eq!(said["content"]["text"], "hello from the second");
    first.client.wait_for_update(&session, "agent_message_chunk").await;
    assert_eq!(first.client.agent_text(&session), "ok");
    assert!(
        second.client.updates(&session).iter().all(|update| update["sessionUpdate"] != "user_message_chunk")
    );
    server.stop().await;
}

/// A dropped connection leaves runs going, and who comes later has all of it.
#[tokio::test]
async fn a_run_goes_on_when_its_client_is_gone() {
    let server = Server::start().await;
    let session = {
        let agent = server.socket_client().await;
        let session = agent.new_session(&server.home.workspace()).await;
        drop(agent.start_prompt(&session, "count"));
        agent.client.wait_for_update(&session, "agent_message_chunk").await;
        agent.client.close_output();
        agent.client.end_input();
        session
    };
    let later = server.http_client().await;
    let end = Instant::now() + PATIENCE;
    loop {
        let status = later.client.expect("_attache/session/status", json!({ "sessionId": session })).await;
        if status["state"] == "idle" {
            break;
        }
        assert!(Instant::now() < end, "{status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    later.load(&session, &server.home.workspace()).await;
    assert_eq!(later.client.agent_text(&session), "number ".repeat(400));
    server.stop().await;
}

/// A question that nobody was there to answer is asked of who comes.
#[tokio::test]
async fn an_open_question_waits_for_the_next_client() {
    let server = Server::start().await;
    let session = {
        let agent = server.socket_client().await;
        agent.client.set_policy(|_, _| Reply::Never);
        let session = agent.new_session(&server.home.workspace()).await;
        drop(agent.start_prompt(&session, "run"));
        question(&agent).await;
        agent.client.close_output();
        agent.client.end_input();
        session
    };
    let later = server.http_client().await;
    later.client.always_choose("allow_once");
    later.load(&session, &server.home.workspace()).await;
    let end = Instant::now() + PATIENCE;
    while runs(&server) == 0 {
        assert!(Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.stop().await;
}

/// A stream that nobody reads holds up its session; the others, and what is asked, go on.
#[tokio::test]
async fn a_stream_that_is_not_read_holds_up_its_session_alone() {
    let script =
        "on \"pour\"\n  stream 30000 \"0123456789 0123456789 0123456789 0123456789 \"\non *\n  text \"ok\"\n";
    let server = Server::of(Home::new(env!("CARGO_BIN_EXE_attache"), script), &[]).await;
    let id = server.begin().await;
    let here = ("acp-connection-id", id.as_str());
    let mut stream = server.events(&[here]).await;
    let mut sessions = Vec::new();
    for number in [1, 2] {
        let params = json!({ "cwd": server.home.workspace(), "mcpServers": [] });
        let message = json!({ "jsonrpc": "2.0", "id": number, "method": "session/new", "params": params });
        assert_eq!(server.post(&[here], &message).await.status, 202);
        let answer = stream.until(|message| message["id"] == number).await.pop().unwrap();
        sessions.push(answer["result"]["sessionId"].as_str().unwrap().to_owned());
    }
    let unread = server.events(&[here, ("acp-session-id", &sessions[0])]).await;
    let mut read = server.events(&[here, ("acp-session-id", &sessions[1])]).await;
    let prompt = |id: u64, session: &str, text: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "session/prompt",
            "params": { "sessionId": session, "prompt": [{ "type": "text", "text": text }] } })
    };
    assert_eq!(server.post(&[here], &prompt(10, &sessions[0], "pour")).await.status, 202);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(server.post(&[here], &prompt(11, &sessions[1], "hello")).await.status, 202);
    let answer = read.until(|message| message["id"] == 11).await.pop().unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    // All of it is there once it is read.
    let mut unread = unread;
    let messages = unread.until(|message| message["id"] == 10).await;
    let text: usize = messages
        .iter()
        .filter_map(|message| message["params"]["update"]["content"]["text"].as_str())
        .map(str::len)
        .sum();
    assert!(text >= 30_000 * 44, "{text}");
    server.stop().await;
}

/// Several subscribers of one stream have all of it, each at its own pace.
#[tokio::test]
async fn two_readers_of_one_stream_have_the_same() {
    let server = Server::start().await;
    let id = server.begin().await;
    let here = ("acp-connection-id", id.as_str());
    let mut readers: [Events; 2] = [server.events(&[here]).await, server.events(&[here]).await];
    for number in 1..=20 {
        let message = json!({ "jsonrpc": "2.0", "id": number, "method": "session/list", "params": {} });
        assert_eq!(server.post(&[here], &message).await.status, 202);
    }
    for reader in &mut readers {
        let mut seen = Vec::new();
        while seen.len() < 20 {
            seen.push(reader.message().await.unwrap()["id"].as_u64().unwrap());
        }
        seen.sort_unstable();
        assert_eq!(seen, (1..=20).collect::<Vec<_>>());
    }
    assert_eq!(server.post(&[], &hello()).await.status, 200);
    server.stop().await;
}
