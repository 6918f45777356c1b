//! The login of a page: a link that works once becomes a cookie and a key, which are good for our own page
//! alone.

use attache_testkit::binary::Home;

use crate::plain_http::HttpAnswer;
use crate::server::{SCRIPT, Server, hello};
use crate::sockets;

const NO_TOKEN: (&str, &str) = ("authorization", "");

async fn opened() -> (Server, String) {
    let mut server = Server::of(Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT), &["--open"]).await;
    let told = server.next_line().await;
    let (_, link) = told.split_once(&server.address).unwrap_or_else(|| panic!("{told}"));
    (server, link.trim().to_owned())
}

fn cookie(answer: &HttpAnswer) -> String {
    let cookie = answer.header("set-cookie").unwrap_or_else(|| panic!("no cookie: {answer:?}"));
    for word in ["; HttpOnly", "; SameSite=Strict", "; Path=/;", "; Max-Age=43200"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    cookie.split(';').next().unwrap().to_owned()
}

/// What the page brings beside the cookie.
fn key(answer: &HttpAnswer) -> String {
    let (_, rest) = answer.body.split_once("#login=").unwrap_or_else(|| panic!("no key: {answer:?}"));
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_link_of_open_logs_in_once() {
    let (server, link) = opened().await;
    assert!(link.starts_with("/login?key=") && !link.contains(&server.token), "{link}");
    let last = if link.ends_with('0') { '1' } else { '0' };
    let almost = format!("{}{last}", &link[..link.len() - 1]);
    for wrong in [&almost, "/login", "/login?key=", &format!("/login?key={}", server.token)] {
        if *wrong != *link {
            assert_eq!(server.request(("GET", wrong), &[NO_TOKEN], "").await.status, 401, "{wrong}");
        }
    }
    // Neither a foreign name nor a foreign page uses it up.
    for foreign in [("host", "evil.example"), ("origin", "http://evil.example")] {
        assert_eq!(server.request(("GET", &link), &[NO_TOKEN, foreign], "").await.status, 403);
    }
    let first = server.request(("GET", &link), &[NO_TOKEN], "").await;
    assert_eq!(first.status, 200);
    assert!(first.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    let cookie = cookie(&first);
    let second = server.request(("GET", &link), &[NO_TOKEN], "").await;
    assert_eq!((second.status, second.header("set-cookie")), (401, None), "{second:?}");
    let page = server.request(("GET", "/"), &[NO_TOKEN, ("cookie", &cookie)], "").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    server.stop().await;
}

#[tokio::test]
async fn a_cookie_is_good_for_our_own_page_alone() {
    let (server, link) = opened().await;
    let own = format!("http://{}", server.address);
    let login = server.request(("GET", &link), &[NO_TOKEN], "").await;
    let (cookie, key) = (cookie(&login), key(&login));
    let with = async |route: (&str, &str), more: &[(&str, &str)]| {
        let mut headers = vec![NO_TOKEN, ("cookie", cookie.as_str()), ("x-attache-page", key.as_str())];
        headers.extend_from_slice(more);
        server.request(route, &headers, &hello().to_string()).await.status
    };
    let origin = ("origin", own.as_str());
    assert_eq!(with(("GET", "/api/sessions"), &[]).await, 200);
    assert_eq!(with(("POST", "/acp"), &[origin]).await, 200);
    assert_eq!(with(("POST", "/acp"), &[]).await, 401);
    assert_eq!(with(("POST", "/acp"), &[("origin", "http://evil.example")]).await, 403);
    assert_eq!(with(("GET", "/api/sessions"), &[("sec-fetch-site", "same-site")]).await, 401);
    assert_eq!(with(("GET", "/api/sessions"), &[("authorization", "Bearer 00")]).await, 401);
    // Its page can't log in anew for ever; who has the token makes links.
    assert_eq!(with(("POST", "/login"), &[origin]).await, 403);
    let (cookie, target) = (("cookie", cookie.as_str()), format!("/acp?page={key}"));
    for (headers, expected) in [
        (vec![NO_TOKEN, cookie, origin], "HTTP/1.1 101"),
        (vec![NO_TOKEN, cookie], "HTTP/1.1 401"),
        (vec![NO_TOKEN, origin], "HTTP/1.1 401"),
    ] {
        let (_, answer) = sockets::bare_at(&server.address, "", &target, &headers).await;
        assert!(answer.starts_with(expected), "{headers:?}: {answer}");
    }
    let made = server.request(("POST", "/login"), &[], "").await;
    assert_eq!(made.status, 201, "{made:?}");
    let link = made.json()["link"].as_str().unwrap().to_owned();
    assert_eq!(server.request(("GET", &link), &[NO_TOKEN], "").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn the_page_and_its_files_are_told_what_they_are() {
    let server = Server::start().await;
    let index = server.request(("GET", "/"), &[], "").await;
    let names = index.body.split('"').filter_map(|word| word.strip_prefix("/assets/"));
    let names: Vec<&str> = names.collect();
    for wanted in ["/main.js", "/style.css"] {
        assert!(names.iter().any(|name| name.ends_with(wanted)), "{names:?}");
    }
    // What is at an address for ever need not be asked for again; what names those addresses is.
    assert_eq!(index.header("cache-control"), Some("no-cache"));
    for name in names {
        let file = server.request(("GET", &format!("/assets/{name}")), &[], "").await;
        assert_eq!((file.status, file.header("x-content-type-options")), (200, Some("nosniff")), "{name}");
        assert!(!file.body.is_empty(), "{name}");
        assert_eq!(file.header("cache-control"), Some("private, max-age=31536000, immutable"), "{name}");
    }
    let another = "/assets/0123456789abcdef/main.js";
    for nothing in ["/assets/main.js", another, "/assets/..%2findex.html", "/assets/"] {
        assert_eq!(server.request(("GET", nothing), &[], "").await.status, 404, "{nothing}");
    }
    server.stop().await;
}

/// Browsers give it to each server of this host, at whatever port.
#[tokio::test]
async fn who_has_the_cookie_alone_sees_nothing_of_anybody() {
    let (server, link) = opened().await;
    let own = format!("http://{}", server.address);
    let login = server.request(("GET", &link), &[NO_TOKEN], "").await;
    let cookie = cookie(&login);
    let headers = [NO_TOKEN, ("cookie", cookie.as_str()), ("origin", own.as_str())];
    assert_eq!(server.request(("GET", "/"), &headers, "").await.status, 200);
    for route in [("GET", "/api/sessions"), ("GET", "/metrics"), ("POST", "/acp"), ("POST", "/api/chat")] {
        assert_eq!(server.request(route, &headers, &hello().to_string()).await.status, 401, "{route:?}");
    }
    for target in ["/acp", "/acp?page=", &format!("/acp?page={}", "0".repeat(64))] {
        let (_, answer) = sockets::bare_at(&server.address, "", target, &headers).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{target}: {answer}");
    }
    server.stop().await;
}
