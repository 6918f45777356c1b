//! Messages by hand over stdio: what no client library would send, and the end.

use serde_json::{Value, json};

use crate::stage::{StdioServer, hello, home, terminate};

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test]
async fn only_messages_are_printed_and_nonsense_is_answered() {
    let home = home();
    let mut server = StdioServer::start(&home);
    for (line, expected) in [
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"", -32700),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
        ("{\"id\":1,\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"initialize\",\"params\":{}}", -32602),
        ("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"initialize\",\"params\":[\"2025-11-25\"]}", -32602),
    ] {
        server.send_line(line).await;
        assert_eq!(code(&server.next().await.unwrap()), expected, "{line}");
    }
    assert_eq!(server.request("ping", json!({})).await["result"], json!({}));
    let answer = server.request("initialize", hello()).await;
    assert_eq!(answer["result"]["serverInfo"]["name"], "attache");
    assert_eq!(code(&server.request("initialize", hello()).await), -32600);
    for (method, params, expected) in [
        ("resources/list", json!({}), -32601),
        ("tools/list", json!({ "cursor": "x" }), -32602),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!([]), -32602),
        ("tools/call", json!({ "name": "none" }), -32602),
        ("tools/call", json!({ "name": 1 }), -32602),
    ] {
        assert_eq!(code(&server.request(method, params.clone()).await), expected, "{method} {params}");
    }
    let odd = server.request("tools/call", json!({ "name": "ask", "arguments": ["hello"] })).await;
    assert_eq!(odd["result"]["isError"], true);
    assert_eq!(server.ask("hello").await["result"]["content"][0]["text"], "Hello, other agent.");
    server.finish(&home).await;
}

#[tokio::test]
async fn an_older_client_gets_its_revision_and_a_newer_one_ours() {
    let home = home();
    for (asked, agreed) in
        [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("2099-01-01", "2025-11-25")]
    {
        let mut server = StdioServer::start(&home);
        let mut params = hello();
        params["protocolVersion"] = asked.into();
        let answer = server.request("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], agreed);
        server.finish(&home).await;
    }
}

/// Begins a turn that does not end by itself; comes back when it works.
async fn begin_slowly(server: &mut StdioServer) -> u64 {
    let params = json!({
        "name": "ask",
        "arguments": { "prompt": "work slowly on the walrus" },
        "_meta": { "progressToken": "slow" },
    });
    let id = server.start_request("tools/call", params).await;
    loop {
        let message = server.next().await.expect("news");
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(message["params"]["progressToken"], "slow");
        if message["params"]["message"].as_str().unwrap().contains("a.txt") {
            return id;
        }
    }
}

#[tokio::test]
async fn a_cancelled_request_gets_no_answer_and_its_turn_ends() {
    let home = home();
    let mut server = StdioServer::greeted(&home).await;
    let id = begin_slowly(&mut server).await;
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    server.send(&cancel).await;
    // Its turn was the only thing under way: a session that is idle again can be asked.
    let hits = loop {
        let params = json!({ "name": "sessions_search", "arguments": { "query": "walrus" } });
        let found = server.request("tools/call", params).await;
        let hits = found["result"]["structuredContent"]["hits"].as_array().unwrap().clone();
        if !hits.is_empty() {
            break hits;
        }
    };
    let session = hits[0]["sessionId"].as_str().unwrap().to_owned();
    loop {
        let arguments = json!({ "prompt": "hello", "session": session });
        let asked = server.request("tools/call", json!({ "name": "ask", "arguments": arguments })).await;
        let text = asked["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        if asked["result"]["isError"] == false {
            assert_eq!(text, "Hello, other agent.");
            break;
        }
        assert!(text.contains("busy"), "{text}");
    }
    server.end_input();
    while let Some(message) = server.next().await {
        assert_ne!(message["id"], id, "a cancelled request was answered: {message}");
    }
    assert!(server.wait().await.success());
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn terminated_in_the_middle_of_a_turn_it_ends_in_order() {
    let home = home();
    let mut server = StdioServer::greeted(&home).await;
    let id = begin_slowly(&mut server).await;
    terminate(&server.child);
    let mut answered = None;
    while let Some(message) = server.next().await {
        if message["id"] == id {
            answered = Some(message);
        }
    }
    assert!(server.wait().await.success());
    if let Some(answer) = answered {
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    assert_eq!(home.orphans(), []);
    // The session is there, and its turn is over.
    let listed = home.command().args(["sessions", "list", "--json"]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("ses_"), "{listed:?}");
}

/// What a person allowed in a session is not given to another agent that names it.
#[tokio::test]
async fn a_session_that_was_begun_elsewhere_is_copied_and_one_of_the_server_goes_on() {
    let home = home();
    let ask_in = async |server: &mut StdioServer, session: &str| {
        let arguments = json!({ "prompt": "hello", "session": session });
        let answer = server.request("tools/call", json!({ "name": "ask", "arguments": arguments })).await;
        answer["result"]["structuredContent"]["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    };
    let mut server = StdioServer::greeted(&home).await;
    let answer = server.ask("hello").await;
    let begun = answer["result"]["structuredContent"]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(ask_in(&mut server, &begun).await, begun);
    server.finish(&home).await;

    let mut server = StdioServer::greeted(&home).await;
    let copy = ask_in(&mut server, &begun).await;
    assert_ne!(copy, begun);
    assert_eq!(ask_in(&mut server, &copy).await, copy);
    server.finish(&home).await;
}

#[tokio::test]
async fn options_are_those_of_the_agent() {
    let home = home();
    for (words, reason) in [
        (vec!["--approval", "never"], "--approval"),
        (vec!["--listen", "here"], "--listen"),
        (vec!["--listen", "192.0.2.1:80"], "not encrypted"),
        (vec!["--agent", "nobody"], "nobody"),
    ] {
        let output = home.command().args(["mcp", "serve"]).args(&words).output().await.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && errors.contains(reason), "{words:?}: {errors}");
        assert!(output.stdout.is_empty());
    }
}

#[tokio::test]
async fn a_question_in_an_answer_is_answered_once_and_who_does_not_come_back_holds_nothing() {
    let home = home();
    let mut server = StdioServer::start(&home);
    let meta = |revision: &str| {
        json!({
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        })
    };
    let refused = server.request("tools/list", json!({ "_meta": meta("1900-01-01") })).await;
    assert_eq!(code(&refused), -32022);
    assert_eq!(refused["error"]["data"]["supported"][0], "2026-07-28");
    let found = server.request("server/discover", json!({ "_meta": meta("2026-07-28") })).await;
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    let mut params = json!({
        "name": "ask", "arguments": { "prompt": "write it" }, "_meta": meta("2026-07-28"),
    });
    let asked = server.request("tools/call", params.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(asked["result"]["inputRequests"]["question"]["method"], "elicitation/create");
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] =
        json!({ "question": { "action": "accept", "content": { "decision": "allow_once" } } });
    let done = server.request("tools/call", params.clone()).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert_eq!(std::fs::read_to_string(home.workspace().join("b.txt")).unwrap(), "first\n");
    assert_eq!(code(&server.request("tools/call", params.clone()).await), -32602, "answered once");
    for field in ["requestState", "inputResponses"] {
        params[field].take();
    }
    let waits = server.request("tools/call", params).await;
    assert_eq!(waits["result"]["resultType"], "input_required", "{waits}");
    server.finish(&home).await;
}
