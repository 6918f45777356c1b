//! A graph of LangChain on a LangGraph server with its in-memory runtime.

use attache_testkit::binary::Home;
use attache_testkit::client::Reply;
use serde_json::{Value, json};

use crate::peer::*;

/// What the middleware makes of a rejection.
const REJECTED: &str = "User rejected the tool call for `refund` with reason: the user rejected this call";

async fn server() -> (Peer, Home) {
    let peer = Peer::python("langgraph").await;
    let home = home_with(&langgraph_entry(&peer), "");
    (peer, home)
}

#[tokio::test]
async fn its_thread_is_the_session_and_a_new_process_goes_on_with_it() {
    let (_peer, home) = server().await;
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    let mark = agent.client.mark();
    assert_eq!(told(&agent, &session, "the weather").await, "Result: clear");
    let updates = agent.client.updates_since(mark, &session);
    assert_eq!(calls(&updates), [("call-1".to_owned(), "completed".to_owned())]);
    // What the tool writes to the graph's own stream is a line of thought.
    let thought = updates.iter().find(|update| update["sessionUpdate"] == "agent_thought_chunk").unwrap();
    assert_eq!(thought["content"]["text"], "custom: {\"progress\":\"looking at Oslo\"}\n");
    assert_eq!(told(&agent, &session, "the history").await, "human ai human ai tool ai human");
    agent.finish(&home).await;
    let again = home.start();
    again.initialize().await;
    let loaded = again.load(&session, &home.workspace()).await;
    assert_eq!(text_of(&loaded), "Hello worldResult: clearhuman ai human ai tool ai human");
    let said = told(&again, &session, "the history").await;
    assert_eq!(said, "human ai human ai tool ai human ai human");
    again.finish(&home).await;
}

#[tokio::test]
async fn what_interrupts_it_is_asked_and_the_answer_resumes_it() {
    let (_peer, home) = server().await;
    let (agent, session) = opened(&home).await;
    agent.client.always_choose("allow_once");
    assert_eq!(told(&agent, &session, "please refund").await, "Result: refunded 5");
    agent.client.always_choose("reject_once");
    let mark = agent.client.mark();
    assert_eq!(told(&agent, &session, "please refund").await, format!("Result: {REJECTED}"));
    let updates = agent.client.updates_since(mark, &session);
    assert_eq!(calls(&updates).last().map(|(_, status)| status.as_str()), Some("failed"));
    let mut answers = ["allow_once", "reject_once"].into_iter();
    agent.client.set_policy(move |_, params| Reply::choose(answers.next().unwrap(), params));
    let said = told(&agent, &session, "both refunds").await;
    assert_eq!(said, format!("Result: {REJECTED}; refunded 1"));
    agent.client.always_choose("allow_always");
    told(&agent, &session, "please refund").await;
    let asked = agent.client.received().iter().filter(|message| is_question(message)).count();
    assert_eq!(told(&agent, &session, "please refund").await, "Result: refunded 5");
    assert_eq!(agent.client.received().iter().filter(|message| is_question(message)).count(), asked);
    agent.finish(&home).await;
}

/// What a rule says of `pay`, what the person says of `refund`, what runs, and what does not. `refund` is asked
/// about first, but the rule has decided before the person does.
const MIXED: [(&str, &str, &str, &str); 2] =
    [("deny", "allow_once", "refunded 1", "paid 2"), ("allow", "reject_once", "paid 2", "refunded 1")];

fn with_rule(peer: &Peer, action: &str) -> Home {
    let rule = format!(
        "\n[[permissions]]\npermission = \"agent:support:pay\"\npattern = \"*\"\naction = \"{action}\"\n"
    );
    home_with(&format!("{}{rule}", langgraph_entry(peer)), "")
}

#[tokio::test]
async fn a_rule_and_a_person_decide_about_calls_of_one_interrupt_each_about_its_own() {
    for (action, choice, ran, refused) in MIXED {
        let peer = Peer::python("langgraph").await;
        let home = with_rule(&peer, action);
        let (agent, session) = opened(&home).await;
        agent.client.always_choose(choice);
        let said = told(&agent, &session, "both").await;
        assert!(said.contains(ran) && !said.contains(refused), "{action}: {said}");
        assert_eq!(agent.client.received().iter().filter(|message| is_question(message)).count(), 1);
        agent.finish(&home).await;
    }
}

#[tokio::test]
async fn killed_between_a_rule_and_a_person_each_call_keeps_its_own_decision() {
    for (action, choice, ran, refused) in MIXED {
        let peer = Peer::python("langgraph").await;
        let home = with_rule(&peer, action);
        let (mut agent, session) = opened(&home).await;
        agent.client.set_policy(|_, _| Reply::Never);
        drop(agent.start_prompt(&session, "both"));
        agent.client.wait_for("a question", is_question).await;
        agent.kill().await;
        let again = home.start();
        again.initialize().await;
        again.client.always_choose(choice);
        again.load(&session, &home.workspace()).await;
        let rest = |message: &Value| {
            let update = &message["params"]["update"];
            update["sessionUpdate"] == "agent_message_chunk" && update.to_string().contains("Result:")
        };
        again.client.wait_for("the rest of the answer", rest).await;
        // The rest of the answer may still be on its way.
        told(&again, &session, "hi").await;
        let said = text_of(&again.client.updates(&session));
        assert!(said.contains(ran) && !said.contains(refused), "{action}: {said}");
        again.finish(&home).await;
    }
}

#[tokio::test]
async fn cancelled_while_it_asks_the_next_prompt_finds_no_open_call() {
    let (_peer, home) = server().await;
    let (agent, session) = opened(&home).await;
    agent.client.set_policy(|_, _| Reply::Never);
    let pending = agent.start_prompt(&session, "please refund");
    let asked = agent.client.wait_for("a question", is_question).await;
    agent.client.notify("session/cancel", json!({ "sessionId": session }));
    agent.client.reply(&asked["id"], Reply::cancelled());
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(told(&agent, &session, "the history").await, "human ai tool human");
    agent.finish(&home).await;
}

#[tokio::test]
async fn its_assistants_can_be_chosen_and_a_lost_thread_is_filled_again() {
    let (mut peer, home) = server().await;
    let agent = home.start_with(&["--agent", "support"]);
    let session = agent.open_session(&home).await;
    let is_list = |message: &Value| {
        message["params"]["update"]["sessionUpdate"] == "config_option_update"
            && message.to_string().contains("agent.assistant")
    };
    let listed = agent.client.wait_for("the assistants", is_list).await;
    let options = listed["params"]["update"]["configOptions"].as_array().unwrap();
    let assistants = options.iter().find(|option| option["id"] == "agent.assistant").unwrap();
    assert_eq!(assistants["options"].as_array().unwrap().len(), 2, "{assistants}");
    let other = assistants["options"].as_array().unwrap().iter().find(|one| one["name"] == "other").unwrap();
    let choice = json!({ "sessionId": session, "configId": "agent.assistant", "value": other["value"] });
    agent.client.expect("session/set_config_option", choice).await;
    assert_eq!(told(&agent, &session, "the weather").await, "Result: clear");
    let port = peer.port();
    peer.kill().await;
    let error = agent.prompt(&session, "hi").await.unwrap_err();
    assert!(error.message.contains("can't be reached"), "{error:?}");
    let _peer = Peer::python_at("langgraph", port).await;
    let said = told(&agent, &session, "the history").await;
    assert_eq!(said, "human ai tool ai human human");
    let told_of_it = agent.client.updates(&session).iter().any(|update| update.to_string().contains("anew"));
    assert!(told_of_it);
    agent.finish(&home).await;
}

#[tokio::test]
async fn its_failure_is_the_turn_s_and_a_cancel_stops_its_run() {
    let (_peer, home) = server().await;
    let (agent, session) = opened(&home).await;
    let error = agent.prompt(&session, "please fail").await.unwrap_err();
    assert!(error.message.contains("the model is broken"), "{error:?}");
    let pending = agent.start_prompt(&session, "talk long");
    agent.client.wait_for_update(&session, "agent_message_chunk").await;
    agent.client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.finish(&home).await;
}
