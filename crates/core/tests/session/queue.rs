//! The queue: first in, first out, one turn at a time, idempotent by message id, survives restarts.

use std::time::Duration;

use attache_core::chunk::FinishReason;
use attache_core::events::RunState;
use attache_core::hub::HubError;
use attache_core::ids::MessageId;
use attache_core::part::Role;
use attache_core::ports::client::Answer;
use attache_core::prompt::{Arrival, Prompt};
use attache_core::turn::TurnEnd;
use attache_testkit::fakes::client::PlannedClient;

use crate::world::*;

const SCRIPT: &str = "on \"fail\"\n delay 20ms\n error permanent \"no\"\non \"ask\"\n call touch {\"path\":\"a\"}\n\
                      on *\n delay 20ms\n text \"fine\"";

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

#[tokio::test(start_paused = true)]
async fn fifty_prompts_are_answered_in_order_and_never_interleave() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let tickets: Vec<_> = (0..50).map(|number| session.prompt(prompt(&format!("p{number}")))).collect();
    let mut last = 0;
    for ticket in tickets {
        let outcome = answer(ticket).await.unwrap();
        assert_eq!(outcome.end, finished());
        assert!(outcome.after_index > last);
        last = outcome.after_index;
    }
    let expected: Vec<_> = (0..50).map(|number| format!("p{number}")).collect();
    assert_eq!(world.prompts(session.id()), expected);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn the_same_id_and_content_is_one_message() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let first = session.prompt(prompt_with_id("a", "msg_1"));
    let live_again = session.prompt(prompt_with_id("a", "msg_1"));
    let queued = session.prompt(prompt_with_id("b", "msg_2"));
    let queued_again = session.prompt(prompt_with_id("b", "msg_2"));
    for ticket in [first, live_again, queued, queued_again] {
        assert_eq!(end_of(ticket).await, finished());
    }
    assert_eq!(end_of(session.prompt(prompt_with_id("a", "msg_1"))).await, finished());
    assert_eq!(world.prompts(session.id()), ["a", "b"]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_message_sent_again_is_told_how_its_turn_ended() {
    let world =
        World::new("on \"long\"\n  finish length\non \"bad\"\n  error permanent \"no\"\non *\n  delay 60s\n");
    let (_process, session) = world.session().await;
    let aborted = session.prompt(prompt_with_id("wait", "msg_1"));
    session.cancel();
    assert_eq!(end_of(aborted).await, TurnEnd::Aborted);
    let cut = end_of(session.prompt(prompt_with_id("long", "msg_2"))).await;
    assert_eq!(cut, TurnEnd::Finished(FinishReason::Length));
    let failed = end_of(session.prompt(prompt_with_id("bad", "msg_3"))).await;
    assert!(matches!(failed, TurnEnd::Failed { .. }), "{failed:?}");
    assert_eq!(end_of(session.prompt(prompt_with_id("wait", "msg_1"))).await, TurnEnd::Aborted);
    assert_eq!(end_of(session.prompt(prompt_with_id("long", "msg_2"))).await, cut);
    assert_eq!(end_of(session.prompt(prompt_with_id("bad", "msg_3"))).await, failed);
    assert_eq!(world.prompts(session.id()), ["wait", "long", "bad"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_id_with_other_content_is_a_conflict() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    assert_eq!(end_of(session.prompt(prompt_with_id("a", "msg_1"))).await, finished());
    let conflict = answer(session.prompt(prompt_with_id("b", "msg_1"))).await;
    assert!(matches!(conflict, Err(HubError::Invalid(_))), "{conflict:?}");
    let other = process.create().await;
    let conflict = answer(other.prompt(prompt_with_id("a", "msg_1"))).await;
    assert!(matches!(conflict, Err(HubError::Invalid(_))), "{conflict:?}");
    assert_eq!(world.prompts(session.id()), ["a"]);
    world.check_rest(session.id());
    world.check_rest(other.id());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_message_never_fires_and_leaves_a_tombstone() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let live = session.prompt(prompt("a"));
    let waiting = session.prompt(prompt_with_id("b", "msg_b"));
    session.cancel_queued(MessageId::new("msg_b")).await.unwrap();
    assert_eq!(end_of(waiting).await, TurnEnd::Aborted);
    assert_eq!(end_of(live).await, finished());
    assert!(session.cancel_queued(MessageId::new("msg_b")).await.is_err());
    assert_eq!(end_of(session.prompt(prompt_with_id("b", "msg_b"))).await, TurnEnd::Aborted);
    assert_eq!(world.prompts(session.id()), ["a"]);
    let disk = world.disk.lock().unwrap();
    assert!(disk.messages[&MessageId::new("msg_b")].metadata.is_hidden());
    drop(disk);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn an_edited_message_fires_with_its_new_content() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let _live = session.prompt(prompt("a"));
    let waiting = session.prompt(prompt_with_id("b", "msg_b"));
    session.edit_queued(MessageId::new("msg_b"), prompt("c")).await.unwrap();
    assert_eq!(session.queued().await.unwrap()[0].parts, prompt("c").parts);
    assert_eq!(end_of(waiting).await, finished());
    assert_eq!(world.prompts(session.id()), ["a", "c"]);
    assert!(session.edit_queued(MessageId::new("msg_b"), prompt("d")).await.is_err());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn after_an_error_only_messages_somebody_waits_for_fire() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let failing = session.prompt(prompt("fail"));
    let waiting = session.prompt(prompt("b"));
    assert!(matches!(end_of(failing).await, TurnEnd::Failed { .. }));
    assert_eq!(end_of(waiting).await, finished());
    world.check_rest(session.id());
}

/// Leaves a queue without waiting callers behind an error: its process dies, the next one's first turn fails.
async fn paused_queue(world: &World) -> (Process, attache_core::hub::SessionHandle) {
    let (process, session) = world.session().await;
    let _live = session.prompt(prompt("a"));
    let _first = session.prompt(prompt_with_id("fail", "msg_1"));
    let _second = session.prompt(prompt_with_id("b", "msg_2"));
    let _third = session.prompt(prompt_with_id("c", "msg_3"));
    until_stored(world, |disk| disk.messages.contains_key(&MessageId::new("msg_3"))).await;
    let id = session.id().clone();
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    until(&session, |state| matches!(state, attache_core::events::RunState::Error { .. })).await;
    pause(100).await;
    assert_eq!(session.queued().await.unwrap().len(), 2);
    world.check_rest(&id);
    (process, session)
}

#[tokio::test(start_paused = true)]
async fn a_paused_queue_goes_on_after_the_next_explicit_turn() {
    let world = World::new(SCRIPT);
    let (_process, session) = paused_queue(&world).await;
    assert_eq!(say(&session, "now").await, finished());
    pause(1_000).await;
    assert_eq!(world.prompts(session.id()), ["a", "fail", "now", "b", "c"]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn changing_a_paused_queue_does_not_keep_the_session_to_ourselves() {
    let world = World::new(SCRIPT);
    let (_process, session) = paused_queue(&world).await;
    session.cancel_queued(MessageId::new("msg_2")).await.unwrap();
    world.check_rest(session.id());
    session.edit_queued(MessageId::new("msg_3"), prompt("d")).await.unwrap();
    world.check_rest(session.id());
    assert_eq!(session.queued().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_waits_behind_a_queue_that_another_process_left() {
    let world = World::new(SCRIPT);
    let (first, session) = world.session().await;
    let id = session.id().clone();
    assert_eq!(say(&session, "zero").await, finished());
    let second = world.process();
    let elsewhere = second.hub.open(&id).await.unwrap();
    let _live = session.prompt(prompt("a"));
    let _queued = session.prompt(prompt_with_id("b", "msg_b"));
    until_stored(&world, |disk| disk.messages.contains_key(&MessageId::new("msg_b"))).await;
    first.kill();
    assert_eq!(say(&elsewhere, "c").await, finished());
    assert_eq!(world.prompts(&id), ["zero", "a", "b", "c"]);
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn messages_of_one_moment_keep_their_order_over_a_restart() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let _live = session.prompt(prompt("a"));
    for id in ["msg_9", "msg_5", "msg_7", "msg_1"] {
        drop(session.prompt(prompt_with_id(id, id)));
    }
    until_stored(&world, |disk| disk.messages.contains_key(&MessageId::new("msg_1"))).await;
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    until(&session, |state| *state == attache_core::events::RunState::Idle).await;
    assert_eq!(world.prompts(&id), ["a", "msg_9", "msg_5", "msg_7", "msg_1"]);
}

/// A turn of two model calls with a look between them.
const STEERED: &str = "on \"work\"\n delay 20ms\n call look {\"path\":\"a\"}\n ---\n delay 20ms\n text \"done\"\n\
                       on *\n text \"fine\"";

fn steering(text: &str) -> Prompt {
    Prompt { arrival: Arrival::Steers, ..prompt(text) }
}

/// What the model was sent last: the user's words, and `call` for each step with calls.
fn last_request(world: &World) -> Vec<String> {
    let requests = world.model.requests();
    let passages = &requests.last().unwrap().passages;
    let said = passages.iter().filter_map(|passage| match passage.role {
        Role::User => Some(text_of(&passage.parts)),
        _ if tools_of(&passage.parts).is_empty() => None,
        _ => Some("call".to_owned()),
    });
    said.collect()
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_steers_goes_before_the_next_model_call_and_before_the_queue() {
    let world = World::new(STEERED);
    let (_process, session) = world.session().await;
    let working = session.prompt(prompt("work"));
    let queued = session.prompt(prompt("later"));
    pause(5).await;
    let steering = session.prompt(steering("not so"));
    assert_eq!(end_of(working).await, TurnEnd::Finished(FinishReason::ToolCalls));
    assert_eq!(end_of(steering).await, finished());
    assert_eq!(last_request(&world), ["work", "call", "not so"]);
    assert_eq!(end_of(queued).await, finished());
    assert_eq!(world.prompts(session.id()), ["work", "not so", "later"]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn several_that_steer_reach_the_model_in_one_request() {
    let world = World::new(STEERED);
    let (_process, session) = world.session().await;
    let working = session.prompt(prompt("work"));
    pause(5).await;
    let (first, second) = (session.prompt(steering("one")), session.prompt(steering("two")));
    for ticket in [working, first, second] {
        assert!(matches!(end_of(ticket).await, TurnEnd::Finished(_)));
    }
    assert_eq!(world.model.requests().len(), 2);
    assert_eq!(last_request(&world), ["work", "call", "one", "two"]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_was_taken_back_or_is_a_command_steers_nothing() {
    let world = World::new(STEERED);
    let (_process, session) = world.session().await;
    let working = session.prompt(prompt("work"));
    pause(5).await;
    let taken_back =
        session.prompt(Prompt { message_id: Some(MessageId::new("msg_s")), ..steering("not so") });
    let command = session.prompt(steering("/status"));
    session.cancel_queued(MessageId::new("msg_s")).await.unwrap();
    assert_eq!(end_of(taken_back).await, TurnEnd::Aborted);
    assert_eq!(end_of(working).await, finished());
    assert_eq!(end_of(command).await, finished());
    assert_eq!(world.model.requests().len(), 2);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn without_a_turn_a_prompt_that_steers_is_like_any_other() {
    let world = World::new(STEERED);
    let (_process, session) = world.session().await;
    assert_eq!(end_of(session.prompt(steering("work"))).await, finished());
    assert_eq!(last_request(&world), ["work", "call"]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_may_have_fewer_more_and_other_blocks() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let _live = session.prompt(prompt("a"));
    let waiting = session.prompt(prompt_with_id("b", "msg_b"));
    for blocks in [vec!["c", "d", "e"], vec!["f"], vec!["g", "h"]] {
        let parts = blocks.iter().flat_map(|text| prompt(text).parts).collect();
        let edited = Prompt { parts, ..Prompt::default() };
        session.edit_queued(MessageId::new("msg_b"), edited.clone()).await.unwrap();
        assert_eq!(session.queued().await.unwrap()[0].parts, edited.parts);
    }
    assert_eq!(end_of(waiting).await, finished());
    assert_eq!(world.prompts(session.id()), ["a", "gh"]);
    world.check_rest(session.id());
}

/// A turn that asks is not over: what waited before the question goes on waiting, whoever waits for it. Only a
/// prompt that comes later takes the question's place.
#[tokio::test(start_paused = true)]
async fn an_open_question_holds_what_waited_before_it() {
    let script =
        "on \"ask\"\n delay 50ms\n call touch {\"path\":\"a\"}\n ---\n text \"done\"\non *\n text \"fine\"";
    let world = World::new(script);
    let (_process, session) = world.session().await;
    let client = PlannedClient::new([(Duration::from_millis(500), Answer::AllowOnce)]);
    let _participant = join(&session, client).await;
    let asking = session.prompt(prompt("ask"));
    let waiting = session.prompt(prompt("later"));
    until(&session, |state| *state == RunState::WaitingOnApproval).await;
    pause(100).await;
    assert_eq!(session.queued().await.unwrap().len(), 1);
    assert_eq!(end_of(asking).await, finished());
    assert_eq!(end_of(waiting).await, finished());
    assert_eq!(text_of(&world.answers(session.id())[0]), "done", "the question was answered, not superseded");
    assert_eq!(world.prompts(session.id()), ["ask", "later"]);
    world.check_rest(session.id());
}
