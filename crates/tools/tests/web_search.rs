//! `web_search` against servers that answer as the services do: what they are sent, what the model gets.

use std::sync::Arc;

use attache_core::ids::SessionId;
use attache_core::ports::tool::{Access, ToolKind, Workspace};
use attache_testkit::http_server::{Answer, HttpServer, Piece, Request};
use attache_tools::{Equipment, SearchEndpoint, SearchKey, SearchProvider};
use serde_json::{Value, json};

use crate::trial::{Trial, shown_text};

const KEY: &str = "canary-key-1234";

fn equipment(provider: SearchProvider, address: &str) -> Equipment {
    let endpoint = SearchEndpoint::new(provider, address, SearchKey::new(KEY)).unwrap();
    let mut equipment = Equipment::bare();
    equipment.web_search = Some(endpoint);
    equipment
}

fn trial(provider: SearchProvider, server: &HttpServer) -> Trial {
    let mut trial = Trial::new();
    trial.tools = attache_tools::builtin(equipment(provider, &server.url()));
    trial
}

/// The request line, the headers but for the server's own address, and the body.
fn wire(request: &Request) -> String {
    let mut headers: Vec<String> = request
        .headers
        .iter()
        .filter(|(name, _)| name != "host")
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    headers.sort();
    format!("{} {}\n{}\n\n{}", request.method, request.path, headers.join("\n"), request.text())
}

/// One search for `C++ & "more"`; what was sent and what came back.
async fn search(provider: SearchProvider, answer: Value, count: Option<u64>) -> (String, Value) {
    let server = HttpServer::in_order([Answer::json(200, &answer)]).await;
    let trial = trial(provider, &server);
    let (data, _) =
        trial.done("web_search", json!({ "query": "C++ & \"more\"", "max_results": count })).await;
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let agent = concat!("attache/", env!("CARGO_PKG_VERSION"));
    (wire(&requests[0]).replace(agent, "AGENT"), data)
}

#[tokio::test]
async fn brave_is_asked_as_it_wants_and_its_marks_are_taken_away() {
    let answer = json!({ "type": "search", "query": { "original": "x" }, "web": { "type": "search", "results": [
        { "title": "Tom &amp; Jerry", "url": "https://a.test/x", "description": "Uses <strong>C++</strong> &amp;lt; &quot;C&quot;", "age": "1 day" },
        { "title": "B", "url": "https://b.test/", "description": null },
    ] } });
    let (sent, data) = search(SearchProvider::Brave, answer, Some(3)).await;
    assert_eq!(
        sent,
        "GET /res/v1/web/search?q=C%2B%2B+%26+%22more%22&count=3\n\
         accept-encoding: gzip\naccept: application/json\nuser-agent: AGENT\nx-subscription-token: canary-key-1234\n\n"
    );
    assert_eq!(
        data,
        json!("1. Tom & Jerry\nhttps://a.test/x\nUses C++ &lt; \"C\"\n\n2. B\nhttps://b.test/\n")
    );
    let (_, nothing) = search(SearchProvider::Brave, json!({ "type": "search" }), None).await;
    assert_eq!(nothing, json!("nothing was found; try other words"));
}

#[tokio::test]
async fn tavily_is_asked_as_it_wants() {
    let answer = json!({ "query": "x", "answer": null, "response_time": 1.2, "results": [
        { "title": "A", "url": "https://a.test/", "content": "First\n  line", "score": 0.9, "raw_content": null },
    ] });
    let (sent, data) = search(SearchProvider::Tavily, answer, None).await;
    assert_eq!(
        sent,
        "POST /search\naccept-encoding: gzip\naccept: application/json\nauthorization: Bearer canary-key-1234\n\
         content-length: 42\ncontent-type: application/json\nuser-agent: AGENT\n\n\
         {\"query\":\"C++ & \\\"more\\\"\",\"max_results\":5}"
    );
    assert_eq!(data, json!("1. A\nhttps://a.test/\nFirst line\n"));
}

#[tokio::test]
async fn exa_is_asked_for_short_texts() {
    let answer = json!({ "requestId": "r", "results": [
        { "id": "https://a.test/", "title": null, "url": "https://a.test/", "text": "t".repeat(600) },
    ] });
    let (sent, data) = search(SearchProvider::Exa, answer, Some(10)).await;
    assert_eq!(
        sent,
        "POST /search\naccept-encoding: gzip\naccept: application/json\ncontent-length: 84\n\
         content-type: application/json\nuser-agent: AGENT\nx-api-key: canary-key-1234\n\n\
         {\"query\":\"C++ & \\\"more\\\"\",\"numResults\":10,\"contents\":{\"text\":{\"maxCharacters\":500}}}"
    );
    assert_eq!(data, json!(format!("1. (no title)\nhttps://a.test/\n{}…\n", "t".repeat(499))));
}

#[tokio::test]
async fn searxng_is_sent_no_key_and_cut_to_the_number_that_was_asked_for() {
    let hit = |name: &str| json!({ "title": name, "url": format!("https://{name}.test/"), "content": "" });
    let broken = json!({ "title": "no place", "url": "javascript:alert(1)", "content": "x" });
    let answer = json!({ "query": "x", "number_of_results": 0, "unresponsive_engines": [],
        "results": [broken, hit("a"), hit("b"), hit("c")] });
    let (sent, data) = search(SearchProvider::Searxng, answer, Some(2)).await;
    assert_eq!(
        sent,
        "GET /search?q=C%2B%2B+%26+%22more%22&format=json\n\
         accept-encoding: gzip\naccept: application/json\nuser-agent: AGENT\n\n"
    );
    assert_eq!(data, json!("1. a\nhttps://a.test/\n\n2. b\nhttps://b.test/\n"));
}

async fn failure(provider: SearchProvider, answer: Answer) -> String {
    let server = HttpServer::in_order([answer]).await;
    let error = trial(provider, &server).failed("web_search", json!({ "query": "x" })).await;
    assert!(!error.contains(KEY), "{error}");
    error
}

#[tokio::test]
async fn what_goes_wrong_is_told_with_the_way_out_and_without_the_key() {
    let echo = json!({ "error": format!("bad token\n{KEY}") });
    for (status, expected) in [
        (
            401,
            "refused the key (401 Unauthorized); the user has to correct it: {\"error\":\"bad token\\n[key]\"}",
        ),
        (
            403,
            "refused the key (403 Forbidden); the user has to correct it: {\"error\":\"bad token\\n[key]\"}",
        ),
        (
            429,
            "answered 429: too many searches for now; go on without, or try again later: {\"error\":\"bad token\\n[key]\"}",
        ),
        (500, "answered 500 Internal Server Error: {\"error\":\"bad token\\n[key]\"}"),
        (302, "sends elsewhere (302 Found), which is not followed; the user has to correct base_url"),
    ] {
        for provider in [SearchProvider::Brave, SearchProvider::Tavily, SearchProvider::Exa] {
            let error =
                failure(provider, Answer::json(status, &echo).with_header("location", "/elsewhere")).await;
            assert_eq!(error, format!("web_search: {} {expected}", provider.as_str()));
        }
    }
    let page = |status: u16| Answer::new(status, "text/html", "<html>no</html>");
    assert_eq!(
        failure(SearchProvider::Searxng, page(403)).await,
        "web_search: searxng answered 403 Forbidden: its JSON is off; the user has to add json to search.formats in its \
         settings.yml"
    );
    assert_eq!(
        failure(SearchProvider::Searxng, page(401)).await,
        "web_search: searxng answered 401 Unauthorized"
    );
    assert!(failure(SearchProvider::Searxng, page(429)).await.contains("answered 429: too many searches"));
}

#[tokio::test]
async fn garbage_and_broken_answers_are_no_results() {
    for provider in SearchProvider::ALL {
        for body in
            ["", "<html>", "[]", "{}", "{\"results\":{}}", "{\"results\":[{\"title\":1}]}", "{\"web\":[]}"]
        {
            let error = failure(provider, Answer::new(200, "application/json", body)).await;
            assert!(
                error.ends_with("answered something that is no list of results"),
                "{provider:?} {body}: {error}"
            );
        }
        let cut = Answer::new(200, "application/json", "{\"results\":[").then(Piece::Cut);
        assert!(failure(provider, cut).await.contains("can't be asked: "));
        let flood = Answer::new(200, "application/json", vec![b' '; 2_000_001]);
        assert!(failure(provider, flood).await.ends_with("answered with more than 2000000 bytes"));
    }
}

#[tokio::test]
async fn a_key_that_a_service_repeats_among_its_results_is_taken_out() {
    let answer = json!({ "results": [
        { "title": KEY, "url": format!("https://a.test/?k={KEY}"), "content": format!("your key is {KEY}") },
    ] });
    let (_, data) = search(SearchProvider::Tavily, answer, None).await;
    assert_eq!(data, json!("1. [key]\nhttps://a.test/?k=[key]\nyour key is [key]\n"));
}

#[tokio::test]
async fn a_key_that_no_header_can_hold_is_told_and_not_shown() {
    let server = HttpServer::in_order([Answer::new(200, "text/plain", "")]).await;
    let endpoint =
        SearchEndpoint::new(SearchProvider::Exa, &server.url(), SearchKey::new("canary\nkey-12345")).unwrap();
    assert!(!format!("{endpoint:?}").contains("canary"));
    let mut trial = Trial::new();
    let mut equipment = Equipment::bare();
    equipment.web_search = Some(endpoint);
    trial.tools = attache_tools::builtin(equipment);
    let error = trial.failed("web_search", json!({ "query": "x" })).await;
    assert_eq!(error, "web_search: exa has a key that no request can carry; the user has to correct it");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_session_has_twenty_five_searches_and_failures_count() {
    let fine = Answer::json(200, &json!({ "results": [] }));
    let server = HttpServer::in_order([Answer::new(500, "text/plain", ""), fine]).await;
    let mut trial = trial(SearchProvider::Searxng, &server);
    trial.failed("web_search", json!({ "query": "x" })).await;
    for _ in 1..25 {
        trial.done("web_search", json!({ "query": "x" })).await;
    }
    let error = trial.failed("web_search", json!({ "query": "x" })).await;
    assert_eq!(
        error,
        "web_search: this session has made all its 25 searches; go on with what was found, or read pages with web_fetch"
    );
    assert_eq!(server.requests().len(), 25);
    let session_id = SessionId::new("ses_2");
    trial.workspace = Arc::new(Workspace { session_id, ..(*trial.workspace).clone() });
    trial.done("web_search", json!({ "query": "x" })).await;
}

#[tokio::test]
async fn a_cancelled_search_hangs_up() {
    let server = HttpServer::in_order([Answer::new(200, "application/json", "{").then(Piece::Stall)]).await;
    let trial = trial(SearchProvider::Searxng, &server);
    let cancel = async {
        server.wait_for_requests(1).await;
        trial.cancel.cancel();
    };
    let (error, ()) = tokio::join!(trial.failed("web_search", json!({ "query": "x" })), cancel);
    assert_eq!(error, "web_search: cancelled");
    server.wait_for_hang_ups(1).await;
}

#[tokio::test]
async fn a_plan_names_the_host_and_the_words() {
    let mut trial = Trial::new();
    trial.tools = attache_tools::builtin(equipment(SearchProvider::Brave, "https://API.search.brave.com"));
    let plan = trial.plan("web_search", json!({ "query": " rust\u{202e} 2024 " })).await.unwrap();
    assert_eq!(plan.accesses, [Access::Network { host: "api.search.brave.com".to_owned() }]);
    assert_eq!(plan.presentation.title, "web_search `\"rust\\u{202e} 2024\"`");
    assert_eq!(plan.presentation.kind, Some(ToolKind::Fetch));
    for (input, expected) in [
        (json!({ "query": " " }), "web_search: field `query` must not be empty, for example "),
        (json!({ "query": "x".repeat(401) }), "web_search: field `query` must have at most 400 characters"),
        (json!({ "query": "x", "max_results": 0 }), "field `max_results` must be an integer from 1 to 10"),
    ] {
        let error = trial.plan("web_search", input.clone()).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert_eq!(trial.failed("web_search", input).await, error);
    }
    assert!(trial.plan("web_search", json!({ "query": "é".repeat(400) })).await.is_ok());
}

#[tokio::test]
async fn hits_are_shown_with_what_is_invisible_made_visible() {
    let answer =
        json!({ "results": [{ "title": "a```\u{1b}[2J", "url": "https://a.test/", "content": "b" }] });
    let server = HttpServer::in_order([Answer::json(200, &answer)]).await;
    let (_, presentation) =
        trial(SearchProvider::Searxng, &server).done("web_search", json!({ "query": "x" })).await;
    assert_eq!(shown_text(&presentation), "````\n1. a```␛[2J\nhttps://a.test/\nb\n````");
}
