//! The read API of the page: lists, pages of a conversation, searches, sums, comparisons and exports.

use attache_testkit::binary::Home;
use serde_json::{Value, json};

use crate::plain_http::HttpAnswer;
use crate::server::{SCRIPT, Server};

impl Server {
    async fn read(&self, path: &str) -> HttpAnswer {
        self.request(("GET", path), &[], "").await
    }

    async fn json(&self, path: &str) -> Value {
        let answer = self.read(path).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")), "{path}");
        answer.json()
    }
}

#[tokio::test]
async fn sessions_are_listed_page_by_page() {
    let server = Server::start().await;
    let agent = server.socket_client().await;
    let mut made = Vec::new();
    for number in 0..5 {
        let session = agent.new_session(&server.home.workspace()).await;
        agent.prompt(&session, &format!("hello {number}")).await.unwrap();
        made.insert(0, session);
    }
    let (mut listed, mut path) = (Vec::new(), "/api/sessions?limit=2".to_owned());
    loop {
        let page = server.json(&path).await;
        let sessions = page["sessions"].as_array().unwrap();
        assert!(sessions.len() <= 2, "{page}");
        listed.extend(sessions.iter().map(|session| session["id"].as_str().unwrap().to_owned()));
        assert!(sessions.iter().all(|session| session["status"]["state"] == "idle"), "{page}");
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/sessions?limit=2&cursor={next}");
    }
    assert_eq!(listed, made);
    let found = server.json("/api/sessions/search?q=hello%203").await;
    assert_eq!(found["hits"][0]["session_id"], json!(made[1]), "{found}");
    assert_eq!(server.json("/api/sessions/search?q=nowhere").await["hits"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn a_conversation_is_read_from_any_place_on() {
    let server = Server::start().await;
    let agent = server.socket_client().await;
    let session = agent.new_session(&server.home.workspace()).await;
    for prompt in ["hello", "count", "again"] {
        agent.prompt(&session, prompt).await.unwrap();
    }
    let at = |rest: &str| format!("/api/sessions/{session}{rest}");
    let head = server.json(&at("")).await;
    assert_eq!(
        (&head["id"], &head["status"]["state"], &head["live"]),
        (&json!(session), &json!("idle"), &Value::Null)
    );
    let outline = server.json(&at("/outline")).await;
    let messages = outline["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message[1].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user", "assistant"]);
    // Small pages put together are the whole, and each message has the parts that the outline says.
    let whole = parts(&server.json(&at("/turns?bytes=1048576")).await);
    let (mut pieces, mut after) = (Vec::new(), String::new());
    let mut pages = 0;
    loop {
        let page = server.json(&at(&format!("/turns?bytes=1024{after}"))).await;
        pieces.extend(parts(&page));
        pages += 1;
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert!(pages > 1 && pieces == whole, "{pages} pages");
    for message in messages {
        let count = whole.iter().filter(|(seq, _)| json!(seq) == message[0]).count();
        assert_eq!(json!(count), message[2], "{message}");
    }
    // From the middle on.
    let last = messages.last().unwrap()[0].as_i64().unwrap();
    let tail = parts(&server.json(&at(&format!("/turns?after={last}.-1"))).await);
    assert!(!tail.is_empty() && tail.iter().all(|(seq, _)| *seq == last), "{tail:?}");
    let answered = server.json(&at("/turns")).await["messages"][1]["metadata"].clone();
    let digest = answered["system_prompt_digest"].as_str().unwrap();
    let prompt = server.read(&at(&format!("/prompts/{digest}"))).await;
    assert!(prompt.status == 200 && prompt.body.len() > 100, "{prompt:?}");
    assert!(answered["tools"].as_array().unwrap().contains(&json!("bash")), "{answered}");
    assert_eq!(server.json(&at("/children")).await["sessions"], json!([]));
    // What a rewind hides is neither counted nor given.
    let params = json!({ "sessionId": session, "messageId": messages[4][3] });
    agent.client.expect("_attache/session/rewind", params).await;
    let outline = server.json(&at("/outline")).await;
    assert_eq!(outline["messages"].as_array().unwrap().as_slice(), &messages[..4]);
    assert_eq!(server.json(&at("/turns")).await["messages"].as_array().unwrap().len(), 4);
    server.stop().await;
}

/// The parts of a page with the places of their messages.
fn parts(page: &Value) -> Vec<(i64, Value)> {
    let messages = page["messages"].as_array().unwrap();
    let of = |message: &Value| -> Vec<(i64, Value)> {
        let seq = message["seq"].as_i64().unwrap();
        message["parts"].as_array().unwrap().iter().map(|part| (seq, part.clone())).collect()
    };
    messages.iter().flat_map(of).collect()
}

#[tokio::test]
async fn exports_sums_and_comparisons_say_what_the_commands_say() {
    let server = Server::start().await;
    let agent = server.socket_client().await;
    let (one, other) = (
        agent.new_session(&server.home.workspace()).await,
        agent.new_session(&server.home.workspace()).await,
    );
    for (session, second) in [(&one, "left"), (&other, "right")] {
        agent.prompt(session, "hello").await.unwrap();
        agent.prompt(session, second).await.unwrap();
    }
    for format in ["jsonl", "json", "md", "csv", "html"] {
        let params = json!({ "sessionId": one, "format": format });
        let expected = agent.client.expect("_attache/session/export", params).await;
        let export = server.read(&format!("/api/sessions/{one}/export?format={format}")).await;
        assert_eq!((export.status, json!(export.body)), (200, expected["content"].clone()), "{format}");
        assert!(export.header("content-disposition").unwrap().contains(&format!(".{format}\"")));
    }
    let diff = server.json(&format!("/api/sessions/diff?a={one}&b={other}")).await;
    assert_eq!((&diff["turns"][0]["same"], &diff["next"]), (&json!(true), &Value::Null), "{diff}");
    let lines = diff["turns"][1]["lines"].as_array().unwrap();
    assert!(lines.contains(&json!("-   left")) && lines.contains(&json!("+   right")), "{diff}");
    let page = server.json(&format!("/api/sessions/diff?a={one}&b={other}&turns=1")).await;
    let next = page["next"].as_str().unwrap();
    let page = server.json(&format!("/api/sessions/diff?a={one}&b={other}&turns=1&cursor={next}")).await;
    assert_eq!((&page["turns"][0], &page["next"]), (&diff["turns"][1], &Value::Null));
    let usage = server.json("/api/sessions/usage?days=2").await;
    let answers: u64 =
        usage["rows"].as_array().unwrap().iter().map(|row| row["answers"].as_u64().unwrap()).sum();
    assert_eq!(answers, 4, "{usage}");
    server.stop().await;
}

#[tokio::test]
async fn what_is_asked_for_wrongly_is_named() {
    let server = Server::start().await;
    let agent = server.socket_client().await;
    let session = agent.new_session(&server.home.workspace()).await;
    agent.prompt(&session, "hello").await.unwrap();
    let at = |rest: &str| format!("/api/sessions/{session}{rest}");
    let long = "x".repeat(2_000);
    for (path, status, word) in [
        ("/api/sessions?limit=0".to_owned(), 400, "`limit`"),
        ("/api/sessions?limit=51".to_owned(), 400, "`limit`"),
        ("/api/sessions?cursor=x".to_owned(), 400, "`cursor`"),
        ("/api/sessions?offset=3".to_owned(), 400, "`offset`"),
        ("/api/sessions?archived=yes".to_owned(), 400, "`archived`"),
        ("/api/sessions/search".to_owned(), 400, "`q`"),
        ("/api/sessions/search?q=!!".to_owned(), 400, "`q`"),
        (format!("/api/sessions/search?q={long}"), 400, "`q`"),
        ("/api/sessions/usage?days=0".to_owned(), 400, "`days`"),
        ("/api/sessions/diff?a=x".to_owned(), 400, "`b`"),
        (format!("/api/sessions/diff?a={session}&b=nobody"), 404, "no such session"),
        (format!("/api/sessions/diff?a={session}&b={session}&cursor=1.2"), 400, "`cursor`"),
        (at("?x=1"), 400, "`x`"),
        (at("/turns?after=1"), 400, "`after`"),
        (at("/turns?bytes=1"), 400, "`bytes`"),
        (at("/outline?after=a"), 400, "`after`"),
        (at("/export?format=pdf"), 400, "`format`"),
        (at("/prompts/none"), 404, "not stored"),
        ("/api/sessions/nobody".to_owned(), 404, "no such session"),
        (format!("/api/sessions/{long}"), 404, "no such session"),
    ] {
        let answer = server.read(&path).await;
        assert_eq!(
            (answer.status, answer.body.trim_end().lines().count()),
            (status, 1),
            "{path}: {answer:?}"
        );
        assert!(answer.body.contains(word), "{path}: {answer:?}");
    }
    assert_eq!(server.request(("POST", "/api/sessions"), &[], "{}").await.status, 405);
    server.stop().await;
}

#[tokio::test]
async fn sessions_of_other_places_can_not_be_read() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let inside = home.workspace().join("inside");
    std::fs::create_dir_all(&inside).unwrap();
    let own = home.start();
    let elsewhere = own.open_session(&home).await;
    own.prompt(&elsewhere, "hello from elsewhere").await.unwrap();
    own.finish(&home).await;
    home.write_config(&format!("[serve]\nworkspaces = [{:?}]\n", inside.to_str().unwrap()));
    let server = Server::of(home, &[]).await;
    let agent = server.socket_client().await;
    let session = agent.new_session(&inside).await;
    agent.prompt(&session, "hello from inside").await.unwrap();
    let listed = server.json("/api/sessions").await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    let found = server.json("/api/sessions/search?q=hello").await;
    assert!(!found.to_string().contains(&elsewhere) && found.to_string().contains(&session), "{found}");
    let usage = server.json("/api/sessions/usage").await;
    assert_eq!(usage["rows"].as_array().unwrap().len(), 1, "{usage}");
    let mut paths = vec![format!("/api/sessions/diff?a={session}&b={elsewhere}")];
    for rest in ["", "/outline", "/turns", "/prompts/x", "/children", "/export"] {
        paths.push(format!("/api/sessions/{elsewhere}{rest}"));
    }
    for path in paths {
        assert_eq!(server.read(&path).await.status, 404, "{path}");
    }
    server.stop().await;
}
