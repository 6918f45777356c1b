//! Calls: panics, bad arguments, tools that ignore cancellation or go on talking, repeated and doubled calls.

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::events::RunState;
use attache_core::part::ToolState;
use attache_core::turn::{FailureKind, TurnEnd};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_tool_fails_its_call_only() {
    let script = "on *\n call boom {\"path\":\"a\"}\n call look {\"path\":\"a\"}\n ---\n text \"on\"";
    let world = World::new(script);
    let (process, session) = world.session().await;
    let other = process.create().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    let tools = tools_of(&world.answers(session.id())[0]);
    assert_eq!(tools[0].state, ToolState::OutputError);
    assert_eq!(tools[1].output, Some("look done".into()));
    assert_eq!(say(&other, "go").await, TurnEnd::Finished(FinishReason::Stop));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_planning_is_an_answer_to_the_model() {
    let world = World::new("on *\n call boom_in_plan {\"path\":\"a\"}\n ---\n text \"on\"");
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(tools_of(&world.answers(session.id())[0])[0].state, ToolState::OutputError);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn bad_arguments_and_unknown_tools_are_answers_to_the_model() {
    let script = "on *\n call look not-json\n call nothing {}\n call look {\"x\":1}\n ---\n text \"on\"";
    let world = World::new(script);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    let tools = tools_of(&world.answers(session.id())[0]);
    assert_eq!(tools.len(), 3);
    assert!(tools.iter().all(|tool| tool.state == ToolState::OutputError));
    assert!(tools[2].error_text.as_ref().unwrap().contains("path"));
    assert!(world.runs.all().is_empty());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_talks_on_after_its_end_is_not_heard() {
    let world = World::new("on \"go\"\n call id=c deaf {\"path\":\"a\"}\non *\n delay 1s\n text \"next\"");
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("go"));
    until_stored(&world, |_| world.runs.of("c") == 1).await;
    pause(300).await;
    session.cancel();
    let outcome = answer(ticket).await.unwrap();
    assert_eq!(outcome.end, TurnEnd::Aborted);
    pause(1_000).await;
    assert_eq!(say(&session, "more").await, TurnEnd::Finished(FinishReason::Stop));
    pause(1_000).await;
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn the_same_call_for_ever_is_stopped() {
    let mut script = "on *\n".to_string();
    for _ in 0..15 {
        script.push_str(" call look {\"path\":\"a\"}\n ---\n");
    }
    script.push_str(" text \"never\"");
    let world = World::new(&script);
    let (_process, session) = world.session().await;
    assert!(matches!(say(&session, "go").await, TurnEnd::Failed { kind: FailureKind::Model, .. }));
    let tools = tools_of(&world.answers(session.id())[0]);
    assert_eq!(tools.len(), 10);
    assert!(tools[2].output.as_ref().unwrap().as_str().unwrap().contains("3 times"));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn two_calls_of_one_id_are_two_calls() {
    let script = "on *\n call id=same look {\"path\":\"a\"}\n call id=same look {\"path\":\"b\"}\n ---\n \
                  call id=same look {\"path\":\"c\"}\n ---\n text \"on\"";
    let world = World::new(script);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    let tools = tools_of(&world.answers(session.id())[0]);
    let mut ids: Vec<_> = tools.iter().map(|tool| tool.call_id.to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert!(tools.iter().all(|tool| tool.output.is_some()));
    assert!(world.runs.all().values().all(|runs| *runs == 1), "{:?}", world.runs.all());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_call_runs_side_by_side_with_others_that_only_read() {
    let script = "on *\n call look {\"path\":\"a\",\"ms\":500}\n call look {\"path\":\"b\",\"ms\":500}\n ---\n text \"x\"";
    let world = World::new(script);
    let (_process, session) = world.session().await;
    let started = tokio::time::Instant::now();
    say(&session, "go").await;
    assert!(started.elapsed().as_millis() < 900, "{:?}", started.elapsed());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_hanging_call_leaves_the_session_busy_until_it_is_cancelled() {
    let world = World::new("on *\n call id=h hang {\"path\":\"a\"}");
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("go"));
    until_stored(&world, |_| world.runs.of("h") == 1).await;
    assert_eq!(session.status().await.unwrap().state, RunState::Busy);
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    let message = world.disk.lock().unwrap().conversation(session.id())[1].id.clone();
    let chunks = world.chunks_of(session.id(), &message);
    assert!(matches!(chunks.last(), Some(Chunk::Abort { .. })));
    world.check_rest(session.id());
}
