//! What a chat app of the AI SDK asks about: rules first, then a person, whatever happens meanwhile.

use attache_testkit::binary::Home;
use attache_testkit::client::Reply;
use serde_json::{Value, json};

use crate::peer::*;

async fn app() -> (Peer, Home) {
    let peer = Peer::ai_sdk("ai").await;
    let home = home_with(&ai_sdk_entry(&peer.address, ""), "");
    (peer, home)
}

fn questions(messages: &[Value]) -> usize {
    messages.iter().filter(|message| is_question(message)).count()
}

#[tokio::test]
async fn allowed_it_runs_and_rejected_it_does_not() {
    for version in ["ai", "ai7"] {
        let peer = Peer::ai_sdk(version).await;
        let home = home_with(&ai_sdk_entry(&peer.address, ""), "");
        let (agent, session) = opened(&home).await;
        for (choice, said, status) in [
            ("allow_once", "I will refund.Refund: refunded 5.", "completed"),
            ("reject_once", "I will refund.Refund: denied the user rejected this call.", "failed"),
        ] {
            agent.client.always_choose(choice);
            let mark = agent.client.mark();
            assert_eq!(told(&agent, &session, "please refund").await, said);
            let updates = agent.client.updates_since(mark, &session);
            assert_eq!(calls(&updates).last().map(|(_, status)| status.as_str()), Some(status));
        }
        let asked = agent.client.received().into_iter().find(is_question).unwrap();
        assert_eq!(asked["params"]["toolCall"]["title"], "refund");
        agent.finish(&home).await;
    }
}

#[tokio::test]
async fn always_is_remembered_by_agent_and_tool_and_outlives_the_process() {
    let (_peer, home) = app().await;
    let (agent, session) = opened(&home).await;
    agent.client.always_choose("allow_always");
    for _ in 0..2 {
        assert_eq!(told(&agent, &session, "please refund").await, "I will refund.Refund: refunded 5.");
    }
    assert_eq!(questions(&agent.client.received()), 1);
    agent.finish(&home).await;
    let again = home.start();
    again.initialize().await;
    again.load(&session, &home.workspace()).await;
    assert_eq!(told(&again, &session, "please refund").await, "I will refund.Refund: refunded 5.");
    assert_eq!(questions(&again.client.received()), 0);
    again.finish(&home).await;
}

#[tokio::test]
async fn rules_come_before_people() {
    for (action, said) in
        [("allow", "I will refund.Refund: refunded 5."), ("deny", "I will refund.Refund: denied denied by")]
    {
        let peer = Peer::ai_sdk("ai").await;
        let rule = format!(
            "\n[[permissions]]\npermission = \"agent:support:refund\"\npattern = \"*\"\naction = \"{action}\"\n"
        );
        let home = home_with(&format!("{}{rule}", ai_sdk_entry(&peer.address, "")), "");
        let (agent, session) = opened(&home).await;
        let told = told(&agent, &session, "please refund").await;
        assert!(told.starts_with(said), "{told}");
        assert_eq!(questions(&agent.client.received()), 0);
        agent.finish(&home).await;
    }
}

#[tokio::test]
async fn several_questions_of_one_step_are_put_one_after_the_other() {
    let (_peer, home) = app().await;
    let (agent, session) = opened(&home).await;
    let mut answers = ["allow_once", "reject_once"].into_iter();
    agent.client.set_policy(move |_, params| Reply::choose(answers.next().unwrap(), params));
    let said = told(&agent, &session, "both refunds").await;
    assert_eq!(said, "Refunds: refunded 1; denied the user rejected this call.");
    agent.finish(&home).await;
}

#[tokio::test]
async fn cancelled_while_it_asks_the_turn_ends_and_the_next_prompt_works() {
    let (_peer, home) = app().await;
    let (agent, session) = opened(&home).await;
    agent.client.set_policy(|_, _| Reply::Never);
    let pending = agent.start_prompt(&session, "please refund");
    let asked = agent.client.wait_for("a question", is_question).await;
    agent.client.notify("session/cancel", json!({ "sessionId": session }));
    agent.client.reply(&asked["id"], Reply::cancelled());
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.finish(&home).await;
}

#[tokio::test]
async fn killed_while_it_asks_it_asks_again_and_goes_on() {
    for (choice, said) in [
        ("allow_once", "Refund: refunded 5."),
        ("reject_once", "Refund: denied the user rejected this call."),
    ] {
        let (_peer, home) = app().await;
        let (mut agent, session) = opened(&home).await;
        agent.client.set_policy(|_, _| Reply::Never);
        drop(agent.start_prompt(&session, "please refund"));
        agent.client.wait_for("a question", is_question).await;
        agent.kill().await;
        let again = home.start();
        again.initialize().await;
        again.client.always_choose(choice);
        again.load(&session, &home.workspace()).await;
        again.client.wait_for("the rest of the answer", |message| message.to_string().contains(said)).await;
        assert_eq!(told(&again, &session, "hi").await, "Hello world");
        again.finish(&home).await;
    }
}
