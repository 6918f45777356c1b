//! What only a test within the module can show: the time, and that no response makes a reader panic or a hit
//! too long.

use std::time::Duration;

use attache_testkit::http_server::{Answer, HttpServer, Piece};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn endpoint(provider: SearchProvider, address: &str) -> SearchEndpoint {
    SearchEndpoint::new(provider, address, SearchKey::new("canary-key")).unwrap()
}

#[tokio::test]
async fn a_service_that_says_nothing_is_given_up() {
    let stalling = Answer::new(200, "application/json", "{").then(Piece::Stall);
    let server = HttpServer::in_order([stalling]).await;
    let endpoint = endpoint(SearchProvider::Searxng, &server.url());
    let usual = Searcher::new(endpoint);
    assert_eq!(usual.time, Duration::from_secs(15));
    let searcher = Searcher { time: Duration::from_millis(100), ..usual };
    let error = searcher.search(WebQuery { query: "x", count: 1 }).await.unwrap_err();
    assert_eq!(error.to_string(), "did not answer within 100ms");
}

#[test]
fn an_endpoint_needs_a_key_and_an_address_of_the_web() {
    for provider in SearchProvider::ALL {
        let made = SearchEndpoint::new(provider, "https://search.test", None);
        assert_eq!(made.is_err(), provider.usual_key_variable().is_some(), "{provider:?}");
        for address in ["search.test", "file:///x", "https://me:canary@search.test/"] {
            let error = SearchEndpoint::new(provider, address, SearchKey::new("k")).unwrap_err().to_string();
            assert!(!error.contains("canary") && error.contains(provider.as_str()), "{error}");
        }
    }
    assert_eq!(SearchKey::new(" \n"), None);
}

#[test]
fn an_address_keeps_its_own_path() {
    let below = |address: &str| below(&Url::parse(address).unwrap(), "/search").to_string();
    assert_eq!(below("https://search.test"), "https://search.test/search");
    assert_eq!(below("https://search.test/own/"), "https://search.test/own/search");
}

#[test]
fn the_oldest_session_is_forgotten_before_memory_grows() {
    use crate::limits::{SEARCH_CALLS, SEARCH_SESSIONS};
    use attache_core::ids::SessionId;
    let budget = Budget::default();
    let first = SessionId::new("first");
    for _ in 0..SEARCH_CALLS {
        assert!(budget.take(&first).is_ok());
    }
    assert!(budget.take(&first).is_err());
    for number in 1..SEARCH_SESSIONS {
        assert!(budget.take(&SessionId::new(format!("ses_{number}"))).is_ok());
    }
    assert!(budget.take(&first).is_err());
    assert!(budget.take(&SessionId::new("one more")).is_ok());
    assert!(budget.take(&first).is_ok());
}

fn address() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "https?://[a-zé./?#@: ]{0,30}", "https://a\\.test/b{0,3000}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_answer_makes_a_reader_panic(body in prop_oneof![
        any::<Vec<u8>>(),
        "\\{(\"(results|web|type)\":(\\[\\]|\\{\\}|null|1|\"search\"|\\[1\\]|\\{\"results\":\\[\\]\\}),?){0,3}\\}"
            .prop_map(String::into_bytes),
    ]) {
        for provider in SearchProvider::ALL {
            let endpoint = endpoint(provider, "https://search.test");
            if let Ok(hits) = endpoint.hits(&body) {
                prop_assert!(hits.is_empty());
            }
            prop_assert!(endpoint.said(&body).chars().count() <= SEARCH_SAID_CHARACTERS * 8 + 2);
        }
    }

    #[test]
    fn a_readable_hit_is_short_and_has_one_line_for_each_part(
        title in "\\PC{0,300}",
        url in address(),
        words in prop::collection::vec("[a-zé€😀\\s]{0,40}", 0..40),
    ) {
        let snippet = words.join("\n");
        let body = json!({ "results": [{ "title": title, "url": url, "content": snippet }] }).to_string();
        let endpoint = endpoint(SearchProvider::Tavily, "https://search.test");
        let hits = endpoint.hits(body.as_bytes()).unwrap();
        for hit in hits.into_iter().filter_map(|hit| hit.readable(str::to_owned)) {
            prop_assert!(!hit.title.is_empty() && hit.title.chars().count() <= 200);
            prop_assert!(hit.snippet.chars().count() <= 500);
            prop_assert!(hit.url.len() <= 2_000 && hit.url.starts_with("http"));
            let lines = [&hit.title, &hit.url, &hit.snippet].map(|part| part.lines().count());
            prop_assert!(lines.iter().all(|count| *count <= 1));
            let whole = snippet.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert!(hit.snippet == whole || hit.snippet.ends_with('…'));
        }
    }
}
