//! Bad input of every kind: the status, one line that says what to send, nothing stored, and the connections of
//! others untouched.

use attache_testkit::database::row_counts;
use serde_json::json;

use crate::server::Server;
use crate::sockets::UPGRADE;

/// What is wrong, the request, and its status with the words that say what to do.
type Refusal<'a> = (&'a str, (&'a str, &'a str), Vec<(&'a str, &'a str)>, &'a str, u16, &'a str);

#[tokio::test]
async fn each_says_what_to_send_and_disturbs_nobody() {
    let server = Server::start().await;
    let other = server.socket_client().await;
    let session = other.new_session(&server.home.workspace()).await;
    let id = server.begin().await;
    let here = ("acp-connection-id", id.as_str());
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/list" }).to_string();
    let load = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/load", "params": { "sessionId": "s" } })
        .to_string();
    let [_, upgrade, version, key] = UPGRADE;
    // The server would keep it open else.
    let connection = ("connection", "close, upgrade");
    let (post, get) = (("POST", "/acp"), ("GET", "/acp"));
    let no_token = ("authorization", "");
    let cases: Vec<Refusal<'_>> = vec![
        (
            "media type",
            post,
            vec![here, ("content-type", "text/plain")],
            &list,
            415,
            "`Content-Type: application/json`",
        ),
        (
            "no media type",
            post,
            vec![here, ("content-type", "")],
            &list,
            415,
            "`Content-Type: application/json`",
        ),
        (
            "a coding",
            post,
            vec![here, ("content-encoding", "gzip")],
            &list,
            415,
            "without `Content-Encoding`",
        ),
        ("accept", get, vec![here], "", 406, "`Accept: text/event-stream`"),
        ("method", ("PUT", "/acp"), vec![here], "", 405, "POST a message"),
        ("method of a chat", ("GET", "/api/chat"), vec![], "", 405, "`Allow`"),
        ("method of a page", ("POST", "/"), vec![], "", 405, "`Allow`"),
        ("no connection", post, vec![], &list, 400, "`Acp-Connection-Id` is missing: `initialize` gives it"),
        (
            "another connection",
            post,
            vec![("acp-connection-id", "x")],
            &list,
            404,
            "begin a new one with `initialize`",
        ),
        ("two connections", post, vec![here, here], &list, 400, "is there twice"),
        ("another session", post, vec![here, ("acp-session-id", "other")], &load, 400, "send the same one"),
        (
            "token",
            post,
            vec![here, ("authorization", "Bearer x")],
            &list,
            401,
            "`Authorization: Bearer TOKEN`",
        ),
        ("no token", post, vec![here, no_token], &list, 401, "attache serve --show-token"),
        ("no link", ("GET", "/login?key=x"), vec![no_token], "", 401, "`attache serve --open`"),
        ("origin", post, vec![here, ("origin", "http://evil.example")], &list, 403, "`serve.origins`"),
        ("host", post, vec![here, ("host", "evil.example")], &list, 403, "`serve.hosts`"),
        ("no host", post, vec![here, ("host", "")], &list, 403, "the address that it printed"),
        ("no JSON", post, vec![here], "{", 400, "not JSON: "),
        ("nothing", post, vec![here], "", 400, "send one message"),
        ("a batch", post, vec![here], "[]", 400, "send each message by itself"),
        ("nowhere", ("GET", "/nowhere"), vec![], "", 404, "/acp"),
        (
            "an event",
            get,
            vec![here, ("accept", "text/event-stream"), ("last-event-id", "x")],
            "",
            400,
            "send it as it came",
        ),
        ("upgrade", get, vec![connection, ("upgrade", "h2c")], "", 400, "`Upgrade: websocket`"),
        (
            "version of WebSockets",
            get,
            vec![connection, upgrade, ("sec-websocket-version", "8")],
            "",
            426,
            "Version: 13`",
        ),
        ("key of WebSockets", get, vec![connection, upgrade, version], "", 400, "16 random bytes in base64"),
        (
            "a place to go on from",
            get,
            vec![connection, upgrade, version, key, here],
            "",
            400,
            "`Acp-Last-Event-Id`",
        ),
        ("no chat", ("POST", "/api/chat/x/stop"), vec![], "", 404, "POST to /api/chat"),
        ("a chat that is none", ("POST", "/api/chat"), vec![], "{}", 400, "missing field `id`"),
        ("no session", ("GET", "/api/sessions/ses_x"), vec![], "", 404, "GET /api/sessions"),
        ("a cursor", ("GET", "/api/sessions?cursor=z"), vec![], "", 400, "leave it out"),
        ("a hook", ("POST", "/hooks/x"), vec![no_token], "{}", 401, "`X-Attache-Signature: sha256=HEX`"),
    ];
    let before = row_counts(&server.home);
    for (what, route, headers, body, status, words) in cases {
        let answer = server.request(route, &headers, body).await;
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        assert!(answer.body.contains(words), "{what}: {answer:?}");
        assert!(answer.body.trim_end().lines().count() == 1 && answer.body.len() < 400, "{what}: {answer:?}");
        assert!(status != 405 || answer.header("allow").is_some(), "{what}: {answer:?}");
        assert!(!answer.body.contains(&server.token), "{what}");
    }
    assert_eq!(row_counts(&server.home), before);
    assert_eq!(other.prompt(&session, "hello").await.unwrap()["stopReason"], "end_turn");
    assert_eq!(server.post(&[here], &serde_json::from_str(&list).unwrap()).await.status, 202);
    server.stop().await;
}
