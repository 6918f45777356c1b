//! What an agent asks about, whatever the way to it: allowed, rejected, with other arguments, for always, given
//! up, and asked again by the next process.

use attache_testkit::binary::{Agent, Home};
use attache_testkit::client::Reply;
use serde_json::{Value, json};

use crate::peer::*;

/// An agent of which one prompt makes a call that it asks about.
struct Asking {
    /// Of the backend, and what makes the agent.
    name: &'static str,
    home: Home,
    prompt: &'static str,
    /// What it says once the call ran.
    allowed: &'static str,
    /// What it says once the user rejected it.
    rejected: &'static str,
    edit: Option<Edit>,
    _peer: Option<Peer>,
}

/// Other arguments for the call.
struct Edit {
    field: &'static str,
    before: Value,
    after: Value,
    /// What the agent says once the call ran with them.
    said: &'static str,
}

const REJECTED: &str = "the user rejected this call";

async fn ai_sdk() -> Asking {
    let peer = Peer::ai_sdk("ai").await;
    Asking {
        name: "ai-sdk",
        home: home_with(&ai_sdk_entry(&peer.address, ""), ""),
        prompt: "please refund",
        allowed: "refunded 5",
        rejected: REJECTED,
        edit: None,
        _peer: Some(peer),
    }
}

async fn pydantic_ai_served() -> Asking {
    let peer = Peer::python("pydantic-ai").await;
    Asking {
        name: "ai-sdk: pydantic-ai",
        home: home_with(&ai_sdk_entry(&peer.address, ""), ""),
        prompt: "please refund",
        allowed: "refunded 5",
        rejected: REJECTED,
        edit: None,
        _peer: Some(peer),
    }
}

async fn langgraph() -> Asking {
    let peer = Peer::python("langgraph").await;
    Asking {
        name: "langgraph",
        home: home_with(&langgraph_entry(&peer), ""),
        prompt: "please refund",
        allowed: "refunded 5",
        rejected: REJECTED,
        edit: Some(Edit { field: "amount", before: json!(5), after: json!(3), said: "refunded 3" }),
        _peer: Some(peer),
    }
}

fn python(name: &'static str, agent: &str) -> Asking {
    Asking {
        name,
        home: home_with(&python_entry(agent, ""), ""),
        prompt: "deploy",
        allowed: "deployed to x",
        rejected: REJECTED,
        edit: Some(Edit { field: "to", before: json!("x"), after: json!("y"), said: "deployed to y" }),
        _peer: None,
    }
}

fn acp() -> Asking {
    Asking {
        name: "acp",
        home: home_with(&sdk_entry(), ""),
        prompt: "delete it",
        allowed: "the answer is yes",
        rejected: "the answer is no",
        edit: None,
        _peer: None,
    }
}

async fn all() -> Vec<Asking> {
    vec![
        ai_sdk().await,
        pydantic_ai_served().await,
        langgraph().await,
        python("python: pydantic-ai", "agents:pydantic_agent"),
        python("python: langgraph", "agents:graph"),
        acp(),
    ]
}

fn questions(messages: &[Value]) -> usize {
    messages.iter().filter(|message| is_question(message)).count()
}

async fn loaded_again(asking: &Asking, session: &str, answers: impl FnOnce(&Agent)) -> (Agent, Vec<Value>) {
    let agent = asking.home.start();
    agent.client.expect("initialize", with_forms()).await;
    answers(&agent);
    let updates = agent.load(session, &asking.home.workspace()).await;
    (agent, updates)
}

/// A client that shows forms.
fn with_forms() -> Value {
    json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } })
}

async fn opened_with_forms(home: &Home) -> (Agent, String) {
    let agent = home.start_with(&["--agent", "support"]);
    agent.client.expect("initialize", with_forms()).await;
    let session = agent.new_session(&home.workspace()).await;
    (agent, session)
}

fn choose_edit(agent: &Agent, field: &'static str, value: Value) {
    agent.client.set_policy(move |method, _| match method {
        "session/request_permission" => {
            Reply::Result(json!({ "outcome": { "outcome": "selected", "optionId": "edit_arguments" } }))
        }
        _ => Reply::Result(json!({ "action": "accept", "content": { field: value } })),
    });
}

fn offers_edit(message: &Value) -> bool {
    let options = message["params"]["options"].as_array().unwrap();
    options.iter().any(|option| option["optionId"] == "edit_arguments")
}

#[tokio::test]
async fn allowed_it_runs_and_rejected_the_agent_is_told_by_whom() {
    for asking in all().await {
        let (agent, session) = opened(&asking.home).await;
        for (choice, expected) in [("allow_once", asking.allowed), ("reject_once", asking.rejected)] {
            agent.client.always_choose(choice);
            let said = told(&agent, &session, asking.prompt).await;
            assert!(said.contains(expected), "{}, {choice}: {said}", asking.name);
        }
        // A client without forms has nothing to edit them with.
        let asked = agent.client.received();
        assert!(!asked.iter().filter(|message| is_question(message)).any(offers_edit), "{}", asking.name);
        agent.finish(&asking.home).await;
    }
}

#[tokio::test]
async fn a_call_runs_with_the_arguments_that_the_user_gives_it_where_the_agent_takes_them() {
    for asking in all().await {
        let (agent, session) = opened_with_forms(&asking.home).await;
        let Some(edit) = &asking.edit else {
            agent.client.always_choose("allow_once");
            told(&agent, &session, asking.prompt).await;
            let asked = agent.client.received().into_iter().find(is_question).unwrap();
            assert!(!offers_edit(&asked), "{}: {asked}", asking.name);
            agent.finish(&asking.home).await;
            continue;
        };
        choose_edit(&agent, edit.field, edit.after.clone());
        let mark = agent.client.mark();
        let said = told(&agent, &session, asking.prompt).await;
        assert!(said.contains(edit.said), "{}: {said}", asking.name);
        let form =
            agent.client.received().into_iter().find(|message| message["method"] == "elicitation/create");
        let field = &form.unwrap()["params"]["requestedSchema"]["properties"][edit.field];
        assert_eq!(field["default"], edit.before, "{}", asking.name);
        let shown = |updates: &[Value]| {
            let last = updates.iter().rfind(|update| update["rawInput"].is_object());
            last.map(|update| update["rawInput"][edit.field].clone())
        };
        assert_eq!(
            shown(&agent.client.updates_since(mark, &session)),
            Some(edit.after.clone()),
            "{}",
            asking.name
        );
        agent.finish(&asking.home).await;
        let (again, loaded) = loaded_again(&asking, &session, |_| {}).await;
        assert_eq!(shown(&loaded), Some(edit.after.clone()), "{}", asking.name);
        assert!(told(&again, &session, "hi").await.ends_with("Hello world"), "{}", asking.name);
        again.finish(&asking.home).await;
    }
}

#[tokio::test]
async fn a_form_that_is_put_aside_decides_nothing() {
    let asking = python("python: pydantic-ai", "agents:pydantic_agent");
    let (agent, session) = opened_with_forms(&asking.home).await;
    agent.client.set_policy(|method, params| match method {
        "session/request_permission" => {
            let options = params["options"].as_array().unwrap();
            let edits = options.iter().any(|option| option["optionId"] == "edit_arguments");
            let chosen = if edits { "edit_arguments" } else { "reject_once" };
            Reply::Result(json!({ "outcome": { "outcome": "selected", "optionId": chosen } }))
        }
        _ => Reply::Result(json!({ "action": "cancel" })),
    });
    let said = told(&agent, &session, asking.prompt).await;
    assert!(said.contains(REJECTED), "{said}");
    assert_eq!(questions(&agent.client.received()), 2);
    agent.finish(&asking.home).await;
}

#[tokio::test]
async fn always_is_remembered_by_agent_and_tool_and_outlives_the_process() {
    for asking in all().await {
        let (agent, session) = opened(&asking.home).await;
        agent.client.always_choose("allow_always");
        for _ in 0..2 {
            let said = told(&agent, &session, asking.prompt).await;
            assert!(said.contains(asking.allowed), "{}: {said}", asking.name);
        }
        assert_eq!(questions(&agent.client.received()), 1, "{}", asking.name);
        agent.finish(&asking.home).await;
        let (again, _) = loaded_again(&asking, &session, |_| {}).await;
        let said = told(&again, &session, asking.prompt).await;
        assert!(said.contains(asking.allowed), "{}: {said}", asking.name);
        assert_eq!(questions(&again.client.received()), 0, "{}", asking.name);
        again.finish(&asking.home).await;
    }
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
    let Asking { home, _peer, .. } = ai_sdk().await;
    let (agent, session) = opened(&home).await;
    let mut answers = ["allow_once", "reject_once"].into_iter();
    agent.client.set_policy(move |_, params| Reply::choose(answers.next().unwrap(), params));
    let said = told(&agent, &session, "both refunds").await;
    assert_eq!(said, "Refunds: refunded 1; denied the user rejected this call.");
    agent.finish(&home).await;
}

#[tokio::test]
async fn cancelled_while_it_asks_the_turn_ends_and_the_next_prompt_works() {
    for asking in all().await {
        let (agent, session) = opened(&asking.home).await;
        agent.client.set_policy(|_, _| Reply::Never);
        let pending = agent.start_prompt(&session, asking.prompt);
        let asked = agent.client.wait_for("a question", is_question).await;
        agent.client.notify("session/cancel", json!({ "sessionId": session }));
        agent.client.reply(&asked["id"], Reply::cancelled());
        assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled", "{}", asking.name);
        let said = told(&agent, &session, "hi").await;
        assert!(said.contains("Hello world") || said.contains("You said"), "{}: {said}", asking.name);
        agent.finish(&asking.home).await;
    }
}

/// Kills attache while the question is open; gives the session.
async fn killed_while_it_asks(asking: &Asking) -> String {
    let (mut agent, session) = opened(&asking.home).await;
    agent.client.set_policy(|_, _| Reply::Never);
    drop(agent.start_prompt(&session, asking.prompt));
    agent.client.wait_for("a question", is_question).await;
    agent.kill().await;
    session
}

/// The next process asks again, and the answer goes on as it is answered now.
async fn goes_on(asking: &Asking, session: &str, expected: &str, answers: impl FnOnce(&Agent)) {
    let (agent, _) = loaded_again(asking, session, answers).await;
    let rest = |message: &Value| {
        message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
            && message.to_string().contains(expected.split(' ').next().unwrap_or_default())
    };
    agent.client.wait_for("the rest of the answer", rest).await;
    // The rest of the answer may still be on its way.
    assert!(told(&agent, session, "hi").await.ends_with("Hello world"), "{}", asking.name);
    let said = text_of(&agent.client.updates(session));
    assert!(said.contains(expected), "{}: {said}", asking.name);
    agent.finish(&asking.home).await;
}

#[tokio::test]
async fn killed_while_it_asks_it_asks_again_and_goes_on() {
    for asking in all().await {
        // What an agent over ACP asked has died with its process (`acp.rs`).
        if asking.name == "acp" {
            continue;
        }
        for (choice, expected) in [("allow_once", asking.allowed), ("reject_once", asking.rejected)] {
            let session = killed_while_it_asks(&asking).await;
            goes_on(&asking, &session, expected, |agent| agent.client.always_choose(choice)).await;
        }
        let Some(edit) = &asking.edit else { continue };
        let session = killed_while_it_asks(&asking).await;
        let (field, value) = (edit.field, edit.after.clone());
        goes_on(&asking, &session, edit.said, |agent| choose_edit(agent, field, value)).await;
    }
}

#[tokio::test]
async fn a_question_of_a_graph_is_asked_again_as_the_question_that_it_is() {
    let Asking { home, _peer, .. } = langgraph().await;
    let (mut agent, session) = opened_with_forms(&home).await;
    agent.client.set_policy(|_, _| Reply::Never);
    drop(agent.start_prompt(&session, "please ask"));
    let is_form = |message: &Value| message["method"] == "elicitation/create";
    let asked = agent.client.wait_for("a form", is_form).await;
    assert_eq!(asked["params"]["message"], "Which colour?");
    agent.kill().await;
    let again = home.start();
    again.client.expect("initialize", with_forms()).await;
    again.client.set_policy(|_, _| {
        Reply::Result(json!({ "action": "accept", "content": { "question_1": "green" } }))
    });
    again.load(&session, &home.workspace()).await;
    let rest = |message: &Value| {
        let update = &message["params"]["update"];
        update["sessionUpdate"] == "agent_message_chunk" && update.to_string().contains("green")
    };
    again.client.wait_for("the rest of the answer", rest).await;
    let asked = again.client.received().into_iter().find(is_form).unwrap();
    assert_eq!(asked["params"]["message"], "Which colour?");
    again.finish(&home).await;
}
