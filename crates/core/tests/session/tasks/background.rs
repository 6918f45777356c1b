//! Tasks in the background: at once an id, later a message.

use std::time::Duration;

use attache_core::events::RunState;
use attache_core::part::Role;
use attache_core::ports::client::Answer;
use attache_core::turn::TurnEnd;
use attache_testkit::fakes::client::PlannedClient;

use super::stages::*;
use super::{FINISHED, children};
use crate::world::*;

fn script(agent: &str) -> String {
    format!(
        "on \"go\"\n {}\n ---\n text \"started\"\non \"job\"\n delay 1000ms\n text \"found it\"\non \"slow\"\n delay 3000ms\n text \"slow answer\"\non *\n text \"fine\"",
        in_background("t", agent, "job")
    )
}

/// The texts of all answers, in their order.
fn said(world: &World, session: &attache_core::ids::SessionId) -> Vec<String> {
    world.answers(session).iter().map(|parts| text_of(parts)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_background_task_gives_an_id_at_once_and_its_result_as_a_message_later() {
    let world = stage(&script("reader"));
    let (_process, session) = world.session().await;
    let attachment = join(&session, answering(&[])).await;
    let (shown, _reading) = read(attachment);
    let begun = tokio::time::Instant::now();
    assert_eq!(say(&session, "go").await, FINISHED);
    assert!(begun.elapsed() < Duration::from_millis(500));
    let child = children(&world, session.id())[0].clone();
    let output = tools_of(&world.answers(session.id())[0])[0].output.clone().unwrap();
    assert!(output.as_str().unwrap().contains(child.as_str()), "{output}");
    assert_eq!(session.status().await.unwrap().state, RunState::Idle);
    until_stored(&world, |disk| disk.conversation(session.id()).len() == 3).await;
    let told = said(&world, session.id())[1].clone();
    assert!(told.contains("“job”") && told.contains(child.as_str()) && told.ends_with("found it"), "{told}");
    // It began no turn: the model sees it with the next request.
    pause(100).await;
    assert_eq!(world.prompts(session.id()), ["go"]);
    world.check_rest(session.id());
    assert!(shown.lock().unwrap().iter().any(|(_, _, chunk)| format!("{chunk:?}").contains("found it")));
    assert_eq!(say(&session, "and now").await, FINISHED);
    let request = world.model.requests().pop().unwrap();
    let texts: Vec<_> =
        request.passages.iter().map(|passage| (passage.role, text_of(&passage.parts))).collect();
    let place = texts.iter().position(|(role, text)| *role == Role::Assistant && text.contains("found it"));
    assert_eq!(place, Some(texts.len() - 2), "{texts:?}");
    world.check_rest(&child);
}

#[tokio::test(start_paused = true)]
async fn a_result_waits_for_the_end_of_the_turn_under_way() {
    let world = stage(&script("reader"));
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let slow = session.prompt(prompt("slow"));
    let next = session.prompt(prompt("next"));
    pause(2_000).await;
    assert_eq!(said(&world, session.id()).len(), 2, "nothing comes into the middle of a turn");
    assert_eq!(end_of(slow).await, FINISHED);
    assert_eq!(end_of(next).await, FINISHED);
    let answers = said(&world, session.id());
    assert_eq!(answers.len(), 4);
    assert_eq!(answers[1], "slow answer");
    assert!(answers[2].contains("found it"));
    assert_eq!(answers[3], "fine");
    // The prompt that waited was answered with it.
    let request = world.model.requests().pop().unwrap();
    assert!(request.passages.iter().any(|passage| text_of(&passage.parts).contains("found it")));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_manifest_may_wake_an_idle_session() {
    let world = stage(&script("waker"));
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    until_stored(&world, |disk| disk.conversation(session.id()).len() == 5).await;
    until(&session, |state| *state == RunState::Idle).await;
    let prompts = world.prompts(session.id());
    assert!(prompts[1].contains("background task has ended"), "{prompts:?}");
    assert_eq!(said(&world, session.id())[2], "fine");
    let woken = world.disk.lock().unwrap().conversation(session.id())[3].metadata.clone();
    assert_eq!(woken.trigger(), Some("task"));
    pause(10).await;
    world.check_rest(session.id());
}

/// What people send and what is triggered take their turns by one clock: neither goes before the other.
#[tokio::test(start_paused = true)]
async fn a_result_that_wakes_takes_no_persons_turn() {
    let world = stage(&script("waker"));
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let slow = session.prompt(prompt("slow"));
    let next = session.prompt(prompt("next"));
    pause(2_000).await;
    assert_eq!(world.prompts(session.id()), ["go", "slow"], "it ended, and the turn under way goes on");
    assert_eq!((end_of(slow).await, end_of(next).await), (FINISHED, FINISHED));
    pause(2_000).await;
    let prompts = world.prompts(session.id());
    assert_eq!(prompts, ["go", "slow", "next"], "the prompt that waited was answered with the result");
    let request = world.model.requests().pop().unwrap();
    assert!(request.passages.iter().any(|passage| text_of(&passage.parts).contains("found it")));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_person_waits_for_the_turn_that_a_result_began() {
    let script =
        script("waker").replace("on *", "on \"A background task\"*\n delay 800ms\n text \"went on\"\non *");
    let world = stage(&script);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    until(&session, |state| *state == RunState::Busy).await;
    assert_eq!(say(&session, "next").await, FINISHED);
    let prompts = world.prompts(session.id());
    assert!(prompts.len() == 3 && prompts[1].contains("has ended") && prompts[2] == "next", "{prompts:?}");
    assert_eq!(said(&world, session.id())[2..], ["went on", "fine"]);
    world.check_rest(session.id());
}

/// Two that end while a turn runs: the first would wake, the second would not.
fn two_of_two_kinds() -> String {
    format!(
        "on \"go\"\n {}\n {}\n ---\n text \"started\"\non \"job\"\n delay 100ms\n text \"found it\"\non \"other\"\n delay 200ms\n text \"nothing\"\non \"slow\"\n delay 1000ms\n text \"slow answer\"\non *\n text \"fine\"",
        in_background("t", "waker", "job"),
        in_background("u", "reader", "other")
    )
}

#[tokio::test(start_paused = true)]
async fn of_several_results_one_that_wakes_is_enough_and_there_is_one_turn() {
    let world = stage(&two_of_two_kinds());
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    assert_eq!(say(&session, "slow").await, FINISHED);
    until_stored(&world, |disk| disk.conversation(session.id()).len() == 8).await;
    until(&session, |state| *state == RunState::Idle).await;
    let answers = said(&world, session.id());
    assert!(answers[2].contains("found it") && answers[3].contains("nothing"), "{answers:?}");
    let prompts = world.prompts(session.id());
    assert_eq!(prompts.len(), 3, "{prompts:?}");
    assert!(prompts[2].starts_with("Background tasks have ended; their results"), "{prompts:?}");
    pause(10).await;
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn after_a_cancel_no_result_begins_a_turn() {
    let world = stage(&two_of_two_kinds());
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let slow = session.prompt(prompt("slow"));
    pause(500).await;
    session.cancel();
    assert_eq!(end_of(slow).await, TurnEnd::Aborted);
    until_stored(&world, |disk| disk.conversation(session.id()).len() == 6).await;
    pause(500).await;
    assert_eq!(world.prompts(session.id()), ["go", "slow"], "who says stop wants nothing to go on by itself");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn while_it_runs_the_session_stays_with_its_process() {
    let world = stage(&script("reader"));
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let other = world.process().hub.open(session.id()).await.unwrap();
    let refused = answer(other.prompt(prompt("x"))).await.unwrap_err();
    assert!(refused.to_string().contains("running in another process"), "{refused}");
    until_stored(&world, |disk| disk.conversation(session.id()).len() == 3).await;
    pause(10).await;
    assert_eq!(answer(other.prompt(prompt("x"))).await.unwrap().end, FINISHED);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_background_tasks_too() {
    let world = stage(&script("waker"));
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    pause(100).await;
    let begun = tokio::time::Instant::now();
    session.cancel();
    until_stored(&world, |disk| disk.conversation(session.id()).len() == 3).await;
    assert!(begun.elapsed() <= Duration::from_millis(500));
    assert!(said(&world, session.id())[1].contains("it was cancelled"));
    pause(100).await;
    assert_eq!(world.prompts(session.id()).len(), 1, "nobody goes on with what was cancelled");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn closing_the_session_ends_what_works_for_it() {
    let world = stage(&script("reader"));
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let child = children(&world, session.id())[0].clone();
    pause(100).await;
    session.close().await.unwrap();
    assert!(said(&world, session.id())[1].contains("the session was closed"));
    until_stored(&world, |disk| disk.leases.get(&child).is_none_or(|lease| lease.run.is_none())).await;
    pause(3_000).await;
    assert_eq!(said(&world, session.id()).len(), 2, "told once");
    world.check_rest(session.id());
    world.check_rest(&child);
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_background_task_is_asked_while_the_session_rests() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"started\"\non \"job\"\n delay 500ms\n call id=a touch {{\"path\":\"a\"}}\n ---\n text \"touched\"\non *\n text \"fine\"",
        in_background("t", "worker", "job")
    );
    let world = stage(&script);
    let (_process, session) = world.session().await;
    let client = PlannedClient::new([(Duration::from_millis(700), Answer::AllowOnce)]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, FINISHED);
    while client.asked().is_empty() {
        pause(1).await;
    }
    // Nobody's turn waits for it: prompts go on.
    assert_eq!(session.status().await.unwrap().state, RunState::Idle);
    assert_eq!(say(&session, "meanwhile").await, FINISHED);
    assert_eq!(world.runs.of("a"), 0);
    until_stored(&world, |disk| disk.conversation(session.id()).len() == 5).await;
    assert_eq!(world.runs.of("a"), 1);
    pause(10).await;
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_rewind_past_a_task_leaves_its_child_and_hides_its_result() {
    let world = stage(&script("reader"));
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    until_stored(&world, |disk| disk.conversation(session.id()).len() == 3).await;
    let child = children(&world, session.id())[0].clone();
    let first = world.disk.lock().unwrap().conversation(session.id())[0].id.clone();
    session.rewind(None, first).await.unwrap();
    assert!(world.answers(&child).len() == 1);
    assert_eq!(say(&session, "other").await, FINISHED);
    let request = world.model.requests().pop().unwrap();
    assert!(request.passages.iter().all(|passage| !text_of(&passage.parts).contains("found it")));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_ends_tells_it() {
    let world = stage(&script("reader"));
    let (process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    pause(100).await;
    let id = session.id().clone();
    process.hub.shutdown().await;
    assert!(said(&world, &id)[1].contains("attache ended"));
    world.check_rest(&id);
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "next").await, FINISHED);
    assert_eq!(said(&world, &id).len(), 3);
}
