//! Streamable HTTP message by message: statuses, ids of connections and sessions, numbers of events.

use serde_json::{Value, json};

use crate::server::{Server, hello};

fn ask(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn prompt(id: u64, session: &str, text: &str) -> Value {
    let prompt = [json!({ "type": "text", "text": text })];
    ask(id, "session/prompt", json!({ "sessionId": session, "prompt": prompt }))
}

#[tokio::test]
async fn what_is_no_message_is_refused_with_its_reason() {
    let server = Server::start().await;
    let id = server.begin().await;
    let here = ("acp-connection-id", id.as_str());
    let list = ask(1, "session/list", json!({})).to_string();
    let load = ask(2, "session/load", json!({ "sessionId": "s1" })).to_string();
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let long = "x".repeat(300);
    for (headers, body, expected) in [
        (vec![here], "nonsense", 400),
        (vec![here], "", 400),
        (vec![here], "[]", 400),
        (vec![here], deep.as_str(), 400),
        (vec![here], "{\"jsonrpc\":\"2.0\",\"id\":1}", 400),
        (vec![here], "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}", 400),
        (vec![], list.as_str(), 400),
        (vec![here, here], list.as_str(), 400),
        (vec![("acp-connection-id", "unknown")], list.as_str(), 404),
        (vec![here, ("acp-session-id", "s2")], load.as_str(), 400),
        (vec![here, ("acp-session-id", long.as_str())], list.as_str(), 400),
        (vec![here, ("content-type", "text/plain")], list.as_str(), 415),
        (vec![here, ("content-type", "")], list.as_str(), 415),
        (vec![here, ("content-length", "99999999999")], list.as_str(), 413),
    ] {
        let answer = server.request(("POST", "/acp"), &headers, body).await;
        assert_eq!(answer.status, expected, "{headers:?} {}", answer.body);
        assert!(answer.body.trim_end().lines().count() == 1 && answer.body.len() < 500, "{answer:?}");
    }
    let parse = server.request(("POST", "/acp"), &[here], "{").await.json();
    assert_eq!((&parse["error"]["code"], &parse["id"]), (&json!(-32700), &Value::Null));
    let batch = server.request(("POST", "/acp"), &[here], &format!("[{list}]")).await.json();
    assert_eq!(batch["error"]["code"], -32600);
    for method in ["PUT", "PATCH", "HEAD", "OPTIONS"] {
        let answer = server.request((method, "/acp"), &[here], "").await;
        assert!([405, 406].contains(&answer.status), "{method}: {answer:?}");
    }
    // A hello that is refused begins nothing.
    for params in [json!({}), json!({ "protocolVersion": "x" })] {
        let refused = server.post(&[], &ask(0, "initialize", params)).await;
        assert_eq!((refused.status, refused.header("acp-connection-id")), (400, None));
        assert_eq!(refused.json()["error"]["code"], -32602);
    }
    server.stop().await;
}

#[tokio::test]
async fn answers_come_where_the_client_listens() {
    let server = Server::start().await;
    let id = server.begin().await;
    let here = ("acp-connection-id", id.as_str());
    let place = json!({ "cwd": server.home.workspace(), "mcpServers": [] });
    // Before anybody listens: it waits.
    let answer = server.post(&[here], &ask(1, "session/new", place)).await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    let mut connection = server.events(&[here]).await;
    let answer = connection.until(|message| message["id"] == 1).await.pop().unwrap();
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    // Without a stream of its own, on the connection's.
    assert_eq!(server.post(&[here], &prompt(2, &session, "hello")).await.status, 202);
    let messages = connection.until(|message| message["id"] == 2).await;
    assert!(
        messages.iter().any(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
    );
    let of_session = [here, ("acp-session-id", session.as_str())];
    let mut own = server.events(&of_session).await;
    assert_eq!(server.post(&of_session, &prompt(3, &session, "hello")).await.status, 202);
    let messages = own.until(|message| message["id"] == 3).await;
    assert!(messages.iter().any(|message| message["params"]["sessionId"] == session.as_str()));
    assert_eq!(server.post(&[here], &ask(4, "session/list", json!({}))).await.status, 202);
    assert_eq!(connection.message().await.unwrap()["id"], 4);
    // Its end is the end of the connection; the session stays.
    assert_eq!(server.request(("DELETE", "/acp"), &[here], "").await.status, 202);
    assert!(connection.next().await.is_none() && own.next().await.is_none());
    for method in ["DELETE", "POST"] {
        let answer = server.request((method, "/acp"), &[here], &hello().to_string()).await;
        assert_eq!(answer.status, 404, "{answer:?}");
    }
    let other = server.http_client().await;
    other.load(&session, &server.home.workspace()).await;
    assert_eq!(other.client.agent_text(&session), "okok");
    server.stop().await;
}

#[tokio::test]
async fn an_id_under_way_is_refused_and_the_first_is_answered() {
    let server = Server::start().await;
    let agent = server.http_client().await;
    let session = agent.new_session(&server.home.workspace()).await;
    let id = server.begin().await;
    let here = ("acp-connection-id", id.as_str());
    let mut stream = server.events(&[here]).await;
    let place = json!({ "sessionId": session, "cwd": server.home.workspace() });
    server.post(&[here], &ask(1, "session/resume", place)).await;
    stream.until(|message| message["id"] == 1).await;
    assert_eq!(server.post(&[here], &prompt(7, &session, "slow")).await.status, 202);
    let twice = server.post(&[here], &prompt(7, &session, "hello")).await;
    assert_eq!((twice.status, &twice.json()["error"]["code"]), (400, &json!(-32600)));
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
    assert_eq!(server.post(&[here], &cancel).await.status, 202);
    let answer = stream.until(|message| message["id"] == 7).await.pop().unwrap();
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    server.stop().await;
}

#[tokio::test]
async fn who_comes_back_with_the_last_number_has_what_follows() {
    let server = Server::start().await;
    let id = server.begin().await;
    let here = ("acp-connection-id", id.as_str());
    let mut stream = server.events(&[here]).await;
    for number in 1..=5 {
        server.post(&[here], &ask(number, "session/list", json!({}))).await;
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(stream.next().await.unwrap());
    }
    drop(stream);
    let last = seen[2].id.clone().unwrap();
    let mut again = server.events(&[here, ("last-event-id", &last)]).await;
    let mut rest = Vec::new();
    for _ in 0..2 {
        rest.push(again.next().await.unwrap());
    }
    let mut numbers: Vec<u64> =
        seen.iter().chain(&rest).map(|event| event.id.clone().unwrap().parse().unwrap()).collect();
    assert!(numbers.is_sorted());
    numbers.dedup();
    assert_eq!(numbers.len(), 5);
    // From its beginning, as long as that is there.
    let mut all = server.events(&[here, ("last-event-id", "0")]).await;
    assert_eq!(all.next().await.unwrap().id, seen[0].id);
    // A number of another connection, and one that is none.
    let mut lost = server.events(&[here, ("last-event-id", "999999")]).await;
    assert_eq!(lost.next().await.unwrap().kind.as_deref(), Some("reset"));
    let wrong =
        crate::plain_http::Events::ask(&server.address, &server.token, &[here, ("last-event-id", "x")]).await;
    assert!(wrong.head.starts_with("HTTP/1.1 400"), "{}", wrong.head);
    // Without a number nothing is repeated.
    let mut new = server.events(&[here]).await;
    server.post(&[here], &ask(6, "session/list", json!({}))).await;
    assert_eq!(new.message().await.unwrap()["id"], 6);
    server.stop().await;
}
