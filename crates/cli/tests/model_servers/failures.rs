//! The ways a model's server fails: each is told in its own words, nothing is lost, and the session goes on.

use super::server::{DIALECTS, KEY, Server};

/// What a passing failure looks like: the prompt is answered all the same.
async fn is_tried_again(dialect: &str) {
    let server = Server::start().await;
    let home = server.home(dialect);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    for (prompt, said) in
        [("Slow down", "Here I am."), ("Fall over", "Up again."), ("Hang up", "Called back.")]
    {
        let mark = agent.client.mark();
        let answer = agent.prompt(&session, prompt).await;
        assert_eq!(answer.unwrap()["stopReason"], "end_turn", "{dialect}: {prompt}");
        let updates = agent.client.updates_since(mark, &session);
        let text = |kind: &str| -> String {
            let shown = updates.iter().filter(|update| update["sessionUpdate"] == kind);
            shown.filter_map(|update| update["content"]["text"].as_str()).collect()
        };
        assert_eq!(text("agent_message_chunk"), said, "{dialect}: said once");
        assert!(
            text("agent_thought_chunk").to_lowercase().contains("retry"),
            "{dialect}: {prompt}: {updates:?}"
        );
    }
    agent.finish(&home).await;
}

async fn is_told_and_the_session_goes_on(dialect: &str) {
    let server = Server::start().await;
    let home = server.home(dialect);
    let agent = home.start();
    agent.client.always_choose("allow_once");
    let session = agent.open_session(&home).await;

    let refused = agent.prompt(&session, "Ask for too much").await.unwrap_err();
    assert!(refused.message.contains("that is not allowed here"), "{dialect}: {refused:?}");
    assert!(agent.prompt(&session, "Still there?").await.is_ok(), "{dialect}");

    let nonsense = agent.prompt(&session, "Talk nonsense").await.unwrap_err();
    assert!(
        nonsense.message.chars().count() < 700 && nonsense.message.contains("mock"),
        "{dialect}: {nonsense:?}"
    );

    let mark = agent.client.mark();
    let cut = agent.prompt(&session, "Break off").await.unwrap_err();
    assert!(!cut.message.is_empty(), "{dialect}");
    let said: String = agent
        .client
        .updates_since(mark, &session)
        .iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|update| update["content"]["text"].as_str().map(str::to_owned))
        .collect();
    assert!(
        !said.is_empty()
            && "This sentence is cut somewhere in the middle".starts_with(&said[..said.len().min(20)]),
        "{dialect}: {said:?}"
    );

    assert!(agent.prompt(&session, "Break in a call").await.is_err(), "{dialect}");
    assert!(!home.workspace().join("cut.txt").exists(), "{dialect}: a cut call was run");

    let answer = agent.prompt(&session, "Still there?").await;
    assert_eq!(answer.unwrap()["stopReason"], "end_turn", "{dialect}");
    server.requests(dialect).await;
    agent.finish(&home).await;
}

async fn a_wrong_key_says_what_to_do(dialect: &str) {
    let server = Server::with_key("sk-another-key-0000000000").await;
    let home = server.home(dialect);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    let refused = agent.prompt(&session, "Still there?").await.unwrap_err();
    assert_eq!(refused.code, -32000, "{dialect}: {refused:?}");
    assert!(refused.message.contains("MOCK_KEY"), "{dialect}: {refused:?}");
    assert!(!refused.message.contains(KEY) && !home.log().contains(KEY), "{dialect}: the key was shown");
    agent.finish(&home).await;
}

async fn all(dialect: &str) {
    is_tried_again(dialect).await;
    is_told_and_the_session_goes_on(dialect).await;
    a_wrong_key_says_what_to_do(dialect).await;
}

#[tokio::test]
async fn openai_chat() {
    all(DIALECTS[0]).await;
}

#[tokio::test]
async fn openai_responses() {
    all(DIALECTS[1]).await;
}

#[tokio::test]
async fn anthropic() {
    all(DIALECTS[2]).await;
}
