//! S12: who may come in. Nothing but `/healthz` answers without the token, and nothing at all to a foreign
//! page.

use std::os::unix::fs::PermissionsExt;

use attache_testkit::binary::Home;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::plain_http::Events;
use crate::server::{PATIENCE, SCRIPT, Server, hello};
use crate::sockets::{self, UPGRADE};

/// Every route there is, and one that there is not.
const ROUTES: [(&str, &str); 25] = [
    ("POST", "/acp"),
    ("GET", "/acp"),
    ("DELETE", "/acp"),
    ("POST", "/api/chat"),
    ("GET", "/metrics"),
    ("GET", "/api/chat/c/stream"),
    ("POST", "/api/chat/c/stop"),
    ("GET", "/api/sessions"),
    ("GET", "/api/sessions/search"),
    ("GET", "/api/sessions/usage"),
    ("GET", "/api/sessions/diff"),
    ("GET", "/api/sessions/s"),
    ("GET", "/api/sessions/s/outline"),
    ("GET", "/api/sessions/s/turns"),
    ("GET", "/api/sessions/s/prompts/p"),
    ("GET", "/api/sessions/s/children"),
    ("GET", "/api/sessions/s/export"),
    ("GET", "/readyz"),
    ("GET", "/"),
    ("GET", "/assets/0123456789abcdef/main.js"),
    ("GET", "/assets/0123456789abcdef/style.css"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("GET", "/nothing"),
    ("OPTIONS", "/acp"),
];

#[tokio::test]
async fn nothing_but_health_answers_without_the_token() {
    let server = Server::start().await;
    let wrong = format!("Bearer {}", "0".repeat(64));
    let in_query = format!("?token={}", server.token);
    for route in ROUTES {
        for headers in [
            vec![("authorization", "")],
            vec![("authorization", wrong.as_str())],
            vec![("authorization", "Basic abc")],
            vec![("authorization", server.token.as_str())],
        ] {
            let answer = server.request(route, &headers, &hello().to_string()).await;
            assert_eq!(answer.status, 401, "{route:?} {headers:?}: {answer:?}");
            assert!(!answer.body.contains(&server.token));
        }
        let with_query = format!("{}{in_query}", route.1);
        let answer = server.request((route.0, &with_query), &[("authorization", "")], "").await;
        assert_eq!(answer.status, 401, "{route:?} with the token in its query: {answer:?}");
    }
    let health = server.request(("GET", "/healthz"), &[("authorization", "")], "").await;
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    assert_eq!(server.request(("GET", "/readyz"), &[], "").await.status, 200);
    assert_eq!(server.request(("GET", "/nothing"), &[], "").await.status, 404);
    // An upgrade without a token, and without an origin.
    let no_token = [("authorization", "")];
    let (_, answer) = sockets::bare(&server.address, "", &no_token).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn foreign_hosts_and_pages_stay_outside_on_every_route() {
    let server = Server::start().await;
    let own = format!("http://{}", server.address);
    for route in ROUTES.into_iter().chain([("GET", "/healthz")]) {
        for headers in [
            vec![("host", "evil.example")],
            vec![("host", "127.0.0.1:1")],
            vec![("origin", "http://evil.example")],
            vec![("origin", "null")],
            vec![("origin", "https://evil.example"), ("access-control-request-method", "POST")],
        ] {
            let answer = server.request(route, &headers, &hello().to_string()).await;
            assert_eq!(answer.status, 403, "{route:?} {headers:?}: {answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    for (headers, expected) in [
        (vec![("origin", "http://evil.example")], "HTTP/1.1 403"),
        (vec![("host", "evil.example")], "HTTP/1.1 403"),
        (vec![("origin", own.as_str())], "HTTP/1.1 101"),
    ] {
        let (_, answer) = sockets::bare(&server.address, &server.token, &headers).await;
        assert!(answer.starts_with(expected), "{headers:?}: {answer}");
    }
    assert_eq!(server.post(&[("origin", &own)], &hello()).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_configured_page_is_told_that_it_may_come_in() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config("[serve]\nhosts = [\"agent.example\"]\norigins = [\"https://app.example\"]\n");
    let server = Server::of(home, &[]).await;
    let page = ("origin", "https://app.example");
    let answer = server.post(&[page], &hello()).await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, Some("https://app.example"))
    );
    assert!(answer.header("access-control-expose-headers").unwrap().contains("acp-connection-id"));
    // A browser asks first, and has no token for that.
    let asks = [page, ("access-control-request-method", "POST"), ("authorization", "")];
    let answer = server.request(("OPTIONS", "/acp"), &asks, "").await;
    assert_eq!(answer.status, 204);
    assert!(answer.header("access-control-allow-headers").unwrap().contains("authorization"));
    // Through a proxy that encrypts.
    let proxied = [("host", "agent.example"), ("origin", "https://agent.example")];
    assert_eq!(server.post(&proxied, &hello()).await.status, 200);
    assert_eq!(server.post(&[("origin", "https://app.example.evil")], &hello()).await.status, 403);
    server.stop().await;
}

#[tokio::test]
async fn an_event_stream_takes_the_token_from_its_address() {
    let server = Server::start().await;
    let id = server.begin().await;
    let path = format!("/acp?token={}&connectionId={id}", server.token);
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n\r\n", server.address);
    let mut stream = tokio::net::TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut piece = [0; 1024];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut piece)).await.unwrap().unwrap();
    assert!(piece[..read].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&piece[..read]));
    // Not on an upgrade, and not for messages.
    let path = format!("/acp?token={}", server.token);
    let lines: String = UPGRADE.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let upgrade =
        format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{lines}\r\n", server.address);
    assert_eq!(server.raw(upgrade.as_bytes()).await.status, 401);
    let answer = server.request(("POST", &path), &[("authorization", "")], &hello().to_string()).await;
    assert_eq!(answer.status, 401);
    server.stop().await;
}

#[tokio::test]
async fn the_token_is_made_once_and_shown_on_request() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let shown = async |home: &Home| {
        let output = home.command().args(["serve", "--show-token"]).output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let first = shown(&home).await;
    assert_eq!(first.trim().len(), 64);
    assert_eq!(shown(&home).await, first);
    let path = home.home().join("token");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let server = Server::of(home, &[]).await;
    assert_eq!(server.token, first.trim());
    server.stop().await;
}

#[tokio::test]
async fn a_socket_in_the_file_system_is_its_owners_alone() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let path = home.home().join("agent.sock");
    let listen = format!("unix:{}", path.display());
    let server = Server::at(home, &listen, &[]).await;
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let ask = async |token: &str| {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let request = format!(
            "GET /readyz HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    assert!(ask(&server.token).await.starts_with("HTTP/1.1 200"));
    assert!(ask("wrong").await.starts_with("HTTP/1.1 401"));
    let second = server.home.command().args(["serve", "--listen", &listen]).output().await.unwrap();
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    let holder = format!("it is in use, held by attache ({})", server.child.id().unwrap());
    assert!(!second.status.success() && told.contains(&holder), "{told}");
    server.stop().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn a_port_in_use_names_who_holds_it() {
    let server = Server::start().await;
    let output = server.home.command().args(["serve", "--listen", &server.address]).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let holder = format!("held by attache ({})", server.child.id().unwrap());
    assert!(!output.status.success() && told.contains(&holder), "{told}");
    // Nobody holds what this machine does not have.
    for (place, expected) in [
        ("192.0.2.1:1".to_owned(), "this machine has no such address"),
        ("unix:/nowhere/at/all.sock".to_owned(), "there is no such directory"),
        (format!("unix:{}", server.home.script_path().display()), "there is a file of this name"),
    ] {
        let output = server.home.command().args(["serve", "--listen", &place]).output().await.unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains(expected) && !told.contains("held by"), "{place}: {told}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_stream_of_nobodys_connection_is_refused() {
    let server = Server::start().await;
    for (headers, expected) in [
        (vec![], "HTTP/1.1 400"),
        (vec![("acp-connection-id", "0123")], "HTTP/1.1 404"),
        (vec![("acp-connection-id", "0123"), ("accept", "text/html")], "HTTP/1.1 406"),
    ] {
        let events = Events::ask(&server.address, &server.token, &headers).await;
        assert!(events.head.starts_with(expected), "{headers:?}: {}", events.head);
    }
    server.stop().await;
}
