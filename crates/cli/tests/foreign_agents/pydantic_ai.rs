//! A pydantic-ai agent by its Vercel AI adapter under uvicorn: an AI SDK endpoint of another make.

use serde_json::json;

use crate::peer::*;

#[tokio::test]
async fn it_answers_calls_its_tools_and_keeps_to_the_decisions_of_the_user() {
    let peer = Peer::python("pydantic-ai").await;
    let home = home_with(&ai_sdk_entry(&peer.address, ""), "");
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    assert_eq!(told(&agent, &session, "the weather").await, "Result: clear");
    agent.client.always_choose("allow_once");
    assert_eq!(told(&agent, &session, "please refund").await, "Result: refunded 5");
    agent.client.always_choose("reject_once");
    let said = told(&agent, &session, "please refund").await;
    assert_eq!(said, "Result: the user rejected this call");
    // A strict server: messages of every kind go back to it.
    assert!(told(&agent, &session, "the history").await.starts_with("request response request"));
    let error = agent.prompt(&session, "please fail").await.unwrap_err();
    assert!(error.message.contains("the model is broken"), "{error:?}");
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.finish(&home).await;
}

#[tokio::test]
async fn it_gets_the_parts_that_are_documented() {
    let peer = Peer::python("pydantic-ai").await;
    let home = home_with(&ai_sdk_entry(&peer.address, "audio = true\n"), "");
    let (agent, session) = opened(&home).await;
    let blocks = json!([
        { "type": "resource_link", "name": "a.png", "uri": "https://example.org/a.png", "mimeType": "image/png" },
        { "type": "resource_link", "name": "a.txt", "uri": "file:///w/a.txt" },
        { "type": "resource", "resource": { "uri": "file:///w/b.py#L1:2", "text": "x = 1" } },
        { "type": "text", "text": "what is attached" },
    ]);
    let mark = agent.client.mark();
    agent.client.expect("session/prompt", prompt(&session, blocks)).await;
    let said = text_of(&agent.client.updates_since(mark, &session));
    assert!(said.contains("ImageUrl(") && said.contains("https://example.org/a.png"), "{said}");
    assert!(said.contains("'[@a.txt](file:///w/a.txt)'"), "{said}");
    let context =
        "'[@b.py#L1:2](file:///w/b.py#L1:2)\\n<context ref=\"file:///w/b.py#L1:2\">\\nx = 1\\n</context>'";
    assert!(said.contains(context), "{said}");
    agent.finish(&home).await;
}
