//! Agents of Python by a process of our own: pydantic-ai and LangChain themselves, with scripted models.

use std::path::Path;
use std::process::Stdio;

use attache_testkit::binary::Home;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::peer::*;

fn home(agent: &str) -> Home {
    home_with(&python_entry(agent, ""), "")
}

#[tokio::test]
async fn the_package_keeps_to_its_own_tests() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests");
    let mut command = Command::new("python3");
    command.args(["-m", "unittest", "discover", "-s"]).arg(&tests).current_dir(&tests);
    command.env("PYTHONPATH", python_agents().join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    let ended = command.stdin(Stdio::null()).output().await.unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[tokio::test]
async fn a_pydantic_ai_agent_answers_and_keeps_to_the_decisions_of_the_user() {
    let home = home("agents:pydantic_agent");
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.client.always_choose("allow_once");
    assert_eq!(told(&agent, &session, "deploy").await, "Result: deployed to x");
    agent.client.always_choose("reject_once");
    assert_eq!(told(&agent, &session, "deploy").await, "Result: the user rejected this call");
    let error = agent.prompt(&session, "fail").await.unwrap_err();
    assert!(error.message.contains("RuntimeError: the model is broken"), "{error:?}");
    let details = error.data.as_ref().unwrap()["details"].as_str().unwrap();
    assert!(details.starts_with(&error.message) && details.contains("Traceback"), "{details}");
    // What failed is part of the conversation all the same.
    assert_eq!(told(&agent, &session, "history").await, "hi | deploy | deploy | fail | history");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_graph_answers_and_keeps_to_the_decisions_of_the_user() {
    let home = home("agents:graph");
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.client.always_choose("allow_once");
    assert_eq!(told(&agent, &session, "deploy").await, "Result: deployed to x");
    agent.client.always_choose("reject_once");
    let mark = agent.client.mark();
    agent.prompt(&session, "deploy").await.unwrap();
    let states = calls(&agent.client.updates_since(mark, &session));
    assert_eq!(states.iter().map(|(_, state)| state.as_str()).collect::<Vec<_>>(), ["failed"]);
    assert_eq!(told(&agent, &session, "history").await, "hi | deploy | deploy | history");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_prompt_arrives_as_the_framework_has_it() {
    let home = home("agents:pydantic_agent");
    let (agent, session) = opened(&home).await;
    let blocks = json!([
        { "type": "text", "text": "see" },
        { "type": "resource_link", "name": "a.png", "uri": "https://example.org/a.png", "mimeType": "image/png" },
        { "type": "resource", "resource": { "uri": "file:///w/b.py#L1:2", "text": "x = 1" } },
    ]);
    let mark = agent.client.mark();
    agent.client.expect("session/prompt", prompt(&session, blocks)).await;
    let said = text_of(&agent.client.updates_since(mark, &session));
    assert!(said.starts_with("['see', ImageUrl("), "{said}");
    let context =
        "'[@b.py#L1:2](file:///w/b.py#L1:2)\\n<context ref=\"file:///w/b.py#L1:2\">\\nx = 1\\n</context>'";
    assert!(said.contains(context), "{said}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn tools_ask_for_files_and_terminals_within_the_session() {
    let home = home("agents:pydantic_agent");
    std::fs::write(home.workspace().join("notes.txt"), "remember").unwrap();
    let (agent, session) = opened(&home).await;
    agent.client.always_choose("allow_once");
    assert_eq!(told(&agent, &session, "read").await, "Result: remember");
    let refused = told(&agent, &session, "outside").await;
    assert!(refused.starts_with("Result: refused: "), "{refused}");
    assert_eq!(told(&agent, &session, "shell").await, "Result: from the shell 0");
    agent.client.always_choose("reject_once");
    let error = agent.prompt(&session, "shell").await.unwrap_err();
    assert!(error.message.contains("the user rejected this call"), "{error:?}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_cancelled_answer_ends_soon_and_the_next_prompt_works() {
    let home = home("agents:pydantic_agent");
    let (agent, session) = opened(&home).await;
    let pending = agent.start_prompt(&session, "never ends");
    agent.client.wait_for_update(&session, "agent_message_chunk").await;
    agent.client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_process_that_dies_ends_the_turn_and_is_started_again() {
    let home = home("agents:pydantic_agent");
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    for _ in 0..times() {
        let error = agent.prompt(&session, "leave").await.unwrap_err();
        assert!(error.message.contains("exited with code 7"), "{error:?}");
        assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    }
    agent.finish(&home).await;
}

#[tokio::test]
async fn an_agent_that_can_not_be_loaded_is_told_and_its_prompt_fails_with_the_reason() {
    for (module, said) in [
        ("no_such_module:agent", "there is no module `no_such_module`"),
        ("agents:no_such_agent", "`agents` has no `no_such_agent`"),
    ] {
        let home = home(module);
        let (agent, session) = opened(&home).await;
        let notice = |message: &Value| message.to_string().contains(said);
        agent.client.wait_for("a notice", notice).await;
        let error = agent.prompt(&session, "hi").await.unwrap_err();
        assert!(error.message.contains(said), "{error:?}");
        agent.finish(&home).await;
    }
}
