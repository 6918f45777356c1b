//! Questions to the person at the other end, and what each answer does.

use attache_testkit::client::Reply;
use serde_json::{Value, json};

use crate::world::*;

const TOUCH: &str = "on *\n call id=t touch {\"path\":\"a\"}\n ---\n text \"on\"";

fn last_status(line: &Line, session: &str) -> Value {
    let updates = line.client.updates(session);
    let calls = updates.iter().rev().filter(|update| update["toolCallId"] == "t");
    calls.map(|update| update["status"].clone()).find(|status| !status.is_null()).unwrap()
}

fn is_question(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

#[tokio::test(start_paused = true)]
async fn only_an_allow_that_was_offered_lets_a_call_run() {
    let selected = |id: &str| Reply::Result(json!({ "outcome": { "outcome": "selected", "optionId": id } }));
    for (reply, runs, status) in [
        (selected("allow_once"), 1, "completed"),
        (selected("reject_once"), 0, "failed"),
        (selected("reject_always"), 0, "failed"),
        (selected("allow_everything"), 0, "failed"),
        (Reply::Result(json!({ "yes": true })), 0, "failed"),
        (Reply::Error { code: -32603, message: "no".into() }, 0, "failed"),
    ] {
        let world = World::new(TOUCH);
        let (line, session) = world.process().session().await;
        let answer = reply.clone();
        line.client.set_policy(move |_, _| answer.clone());
        assert_eq!(line.say(&session, "go").await, "end_turn", "{reply:?}");
        assert_eq!(world.runs.of("t"), runs, "{reply:?}");
        assert_eq!(last_status(&line, &session), status, "{reply:?}");
        line.client.finish();
    }
}

#[tokio::test(start_paused = true)]
async fn the_call_is_shown_before_the_question() {
    let world = World::new(TOUCH);
    let (line, session) = world.process().session().await;
    line.client.always_choose("allow_once");
    line.say(&session, "go").await;
    let received = line.client.received();
    let question = received.iter().position(is_question).unwrap();
    let shown =
        received.iter().position(|message| message["params"]["update"]["rawInput"].is_object()).unwrap();
    assert!(shown < question);
    assert_eq!(received[question]["params"]["toolCall"]["toolCallId"], "t");
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn turning_away_ends_the_prompt_as_cancelled() {
    let world = World::new(TOUCH);
    let (line, session) = world.process().session().await;
    line.client.set_policy(|_, _| Reply::cancelled());
    assert_eq!(line.say(&session, "go").await, "cancelled");
    assert_eq!((world.runs.of("t"), last_status(&line, &session)), (0, json!("failed")));
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn cancel_withdraws_an_open_question() {
    let world = World::new(TOUCH);
    let (line, session) = world.process().session().await;
    line.client.set_policy(|_, _| Reply::Never);
    let pending = line.client.start("session/prompt", prompt(&session, "go"));
    let question = line.client.wait_for("a question", is_question).await;
    line.client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    let withdrawn = line.client.wait_for("its end", |message| message["method"] == "$/cancel_request").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    line.client.reply(&question["id"], Reply::cancelled());
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn all_are_asked_and_the_first_answer_wins() {
    let world = World::new(TOUCH);
    let process = world.process();
    let (one, session) = process.session().await;
    let two = process.connect().await;
    two.resume(&session).await;
    one.client.set_policy(|_, _| Reply::Never);
    two.client.set_policy(|_, _| Reply::Never);
    let pending = one.client.start("session/prompt", prompt(&session, "go"));
    let asked_one = one.client.wait_for("a question", is_question).await;
    let asked_two = two.client.wait_for("a question", is_question).await;
    two.client.reply(&asked_two["id"], Reply::choose("allow_once", &asked_two["params"]));
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
    one.client.wait_for("its end", |message| message["method"] == "$/cancel_request").await;
    one.client.reply(&asked_one["id"], Reply::cancelled());
    assert_eq!(world.runs.of("t"), 1);
    one.client.finish();
    two.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_no_answer() {
    let world = World::new(TOUCH);
    let process = world.process();
    let (gone, session) = process.session().await;
    gone.client.set_policy(|_, _| Reply::Never);
    drop(gone.client.start("session/prompt", prompt(&session, "go")));
    gone.client.wait_for("a question", is_question).await;
    gone.client.end_input();
    let line = process.connect().await;
    line.client.always_choose("allow_once");
    let mark = line.client.mark();
    line.load(&session).await;
    line.client.wait_for_update(&session, "usage_update").await;
    line.client.wait_for("the end", |message| message["params"]["update"]["content"]["text"] == "on").await;
    assert_eq!(world.runs.of("t"), 1);
    let received = line.client.received().split_off(mark);
    let answered = received.iter().position(|message| message["result"]["modes"].is_object()).unwrap();
    let question = received.iter().position(is_question).unwrap();
    assert!(answered < question, "asked again only after the load was answered");
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_killed_process_leaves_its_question_to_the_next() {
    let world = World::new(TOUCH);
    let process = world.process();
    let (line, session) = process.session().await;
    line.client.set_policy(|_, _| Reply::Never);
    drop(line.client.start("session/prompt", prompt(&session, "go")));
    line.client.wait_for("a question", is_question).await;
    process.kill();
    for resume in [true, false] {
        let next = world.process();
        let line = next.connect().await;
        line.client.set_policy(move |_, params| match resume {
            true => Reply::Never,
            false => Reply::choose("allow_once", params),
        });
        match resume {
            true => drop(line.resume(&session).await),
            false => drop(line.load(&session).await),
        }
        line.client.wait_for("a question", is_question).await;
        if !resume {
            line.client
                .wait_for("the end", |message| message["params"]["update"]["content"]["text"] == "on")
                .await;
        }
        next.kill();
    }
    assert_eq!(world.runs.of("t"), 1);
}
