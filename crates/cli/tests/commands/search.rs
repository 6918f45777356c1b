//! `attache sessions search`.

use attache_testkit::{binary::Home, database};
use serde_json::Value;

use crate::{SCRIPT, answer, failure, home_with_a_session, no_terminal_codes, run};

async fn hits(home: &Home, words: &[&str]) -> Value {
    let arguments = [&["sessions", "search", "--json"], words].concat();
    let output = run(home, &arguments).await;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn what_was_said_thought_and_done_is_found_with_the_words_marked() {
    let (home, session) = home_with_a_session().await;
    let text = answer(&home, &["sessions", "search", "made"]).await;
    assert!(text.contains(&session) && text.contains("[Made] it."), "{text}");
    assert!(text.contains("assistant: "), "{text}");
    no_terminal_codes(&text);
    for words in [&["say", "hello"][..], &["let me see"], &["\"comma, done\""], &["made.txt"]] {
        let found = hits(&home, words).await;
        assert_eq!(found[0]["session_id"], session, "{words:?}: {found}");
    }
    let found = hits(&home, &["hello", "write"]).await;
    assert_eq!(found.as_array().unwrap().len(), 1, "only the prompt has both: {found}");
    assert_eq!((found[0]["role"].as_str(), found[0]["part"].as_str()), (Some("user"), Some("text")));
    assert!(found[0]["snippet"].to_string().contains(r#"{"text":"hello","hit":true}"#), "{found}");
    assert_eq!(hits(&home, &["hello write"]).await, Value::Array(vec![]), "a phrase");
}

#[tokio::test]
async fn nothing_found_is_an_answer_and_a_question_without_words_is_a_mistake() {
    let (home, _) = home_with_a_session().await;
    let output = run(&home, &["sessions", "search", "zeppelin"]).await;
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing found for zeppelin"));
    let told = failure(&home, &["sessions", "search", "--", "+++", "-"]).await;
    assert!(told.contains("there is no word in `+++ -`"), "{told}");
    for odd in ["AND", "a*b", "NEAR(x", "\"open", "x:y", "(("] {
        assert_ne!(run(&home, &["sessions", "search", odd]).await.status.code(), Some(2), "{odd}");
    }
    let empty = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    assert_eq!(run(&empty, &["sessions", "search", "--json", "x"]).await.stdout, b"[]\n");
}

#[tokio::test]
async fn a_search_keeps_to_a_workspace_and_to_what_is_listed() {
    let (home, session) = home_with_a_session().await;
    let here = home.workspace().to_str().unwrap().to_owned();
    assert_eq!(hits(&home, &["hello", "--workspace", &here]).await.as_array().unwrap().len(), 3);
    assert_eq!(hits(&home, &["hello", "--workspace", "/"]).await, Value::Array(vec![]));
    assert_eq!(hits(&home, &["hello", "--limit", "1"]).await.as_array().unwrap().len(), 1);
    answer(&home, &["sessions", "archive", &session]).await;
    assert_eq!(hits(&home, &["hello"]).await, Value::Array(vec![]));
    assert_eq!(hits(&home, &["hello", "--archived"]).await.as_array().unwrap().len(), 3);
}

/// A database of the version before: its first search makes the index.
#[tokio::test]
async fn an_older_database_is_searched_completely() {
    let (home, session) = home_with_a_session().await;
    database::connect(&home)
        .execute_batch(
            "DROP TABLE search_text; DROP TRIGGER search_documents_deleted; DROP TABLE search_documents; DROP TABLE search_removed; \
             DROP TABLE search_backlog; PRAGMA user_version = 1;",
        )
        .unwrap();
    let text = answer(&home, &["sessions", "search", "made"]).await;
    assert!(text.contains(&session) && text.contains("[Made] it."), "{text}");
}
