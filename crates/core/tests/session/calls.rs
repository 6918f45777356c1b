//! Calls: panics, bad arguments, tools that ignore cancellation or go on talking, repeated and doubled calls.

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::events::RunState;
use attache_core::hub::People;
use attache_core::part::{Part, ToolState};
use attache_core::ports::client::Answer;
use attache_core::turn::{FailureKind, TurnEnd};
use attache_core::watchdog::Approval;
use serde_json::json;

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

/// And judged by its own: one that changes something asks.
#[tokio::test(start_paused = true)]
async fn a_tool_is_found_by_its_name_in_another_case() {
    let script = "on *\n call Look {\"path\":\"a\"}\n call BoomInPlan {\"path\":\"a\"}\n call TOUCH {\"path\":\"a\"}\n \
                  ---\n text \"on\"";
    let world = World::new(script);
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::RejectOnce]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    let tools = tools_of(&world.answers(session.id())[0]);
    assert_eq!(tools[0].output, Some("look done".into()));
    assert_eq!(tools[0].tool_name, "Look", "what the model said is kept");
    assert!(tools[1].error_text.as_ref().unwrap().contains("crashed"), "{:?}", tools[1]);
    assert_eq!((tools[2].state, client.asked().len()), (ToolState::OutputDenied, 1));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn arguments_that_the_length_limit_cut_name_the_limit() {
    let world = World::new("on *\n call look {\"path\":\"a\n finish length\n ---\n text \"on\"");
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    let tools = tools_of(&world.answers(session.id())[0]);
    let error = tools[0].error_text.as_ref().unwrap();
    assert!(error.contains("tokens in the middle of this call") && error.contains("append"), "{error}");
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

/// Who waits for something makes the same call again and again.
#[tokio::test(start_paused = true)]
async fn the_same_call_is_no_circle_while_something_new_comes_of_it() {
    let script =
        format!("on *\n{} text \"on\"", " call look {\"path\":\"a\",\"news\":true}\n ---\n".repeat(15));
    let world = World::new(&script);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    let tools = tools_of(&world.answers(session.id())[0]);
    assert_eq!(tools.len(), 15);
    assert!(tools.iter().all(|tool| !tool.output.as_ref().unwrap().to_string().contains("in a row")));
}

/// Failing, refused, misspelt: what comes of a call does not matter, only that it is the same again.
#[tokio::test(start_paused = true)]
async fn the_same_call_for_ever_is_stopped_whatever_comes_of_it() {
    for call in [
        "change {\"path\":\"nowhere\"}",
        "boom {\"path\":\"a\"}",
        "nothing {}",
        "look not-json",
        "touch {\"path\":\"a\"}",
        "touch {\"path\":\"/etc/a\"}",
    ] {
        let script = format!("on *\n{} text \"never\"", format!(" call {call}\n ---\n").repeat(15));
        let world = World::new(&script).with_settings(|settings| settings.people = People::Absent);
        let (_process, session) = world.session().await;
        let end = say(&session, "go").await;
        assert!(matches!(end, TurnEnd::Failed { kind: FailureKind::Model, .. }), "{call}: {end:?}");
        let tools = tools_of(&world.answers(session.id())[0]);
        assert_eq!(tools.len(), 10, "{call}");
        let error = |index: usize| tools[index].error_text.clone().unwrap();
        assert!(!error(1).contains("in a row"), "{call}: {}", error(1));
        assert!(error(2).contains("3 times in a row"), "{call}: {}", error(2));
        world.check_rest(session.id());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_person_rejects_again_and_again_is_warned_of() {
    let script = format!("on *\n{} text \"on\"", " call touch {\"path\":\"a\"}\n ---\n".repeat(3));
    let world = World::new(&script);
    let (_process, session) = world.session().await;
    let _participant =
        join(&session, answering(&[Answer::RejectOnce, Answer::RejectOnce, Answer::RejectOnce])).await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    let tools = tools_of(&world.answers(session.id())[0]);
    let told: Vec<_> =
        tools.iter().map(|tool| serde_json::to_string(&Part::Tool(Box::new(tool.clone())))).collect();
    assert!(!told[1].as_ref().unwrap().contains("in a row"));
    assert!(told[2].as_ref().unwrap().contains("3 times in a row"), "{told:?}");
}

/// What `touch` makes is there when `change` is understood, whether it was asked about or not.
#[tokio::test(start_paused = true)]
async fn a_call_is_understood_when_its_turn_comes() {
    let script =
        "on *\n call id=t touch {\"path\":\"a\"}\n call id=c change {\"path\":\"a\"}\n ---\n text \"on\"";
    for approval in [Approval::Ask, Approval::Edits] {
        let world = World::new(script).with_settings(|settings| settings.approval = approval);
        let (_process, session) = world.session().await;
        let client = answering(&[Answer::AllowOnce, Answer::AllowOnce]);
        let _participant = join(&session, client.clone()).await;
        assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
        let tools = tools_of(&world.answers(session.id())[0]);
        assert_eq!(tools[1].output, Some("change done".into()), "{approval:?}");
        let titles: Vec<_> = client.asked().iter().map(|ask| ask.presentation.title.clone()).collect();
        match approval {
            Approval::Ask => assert_eq!(titles, ["touch", "change a"]),
            Approval::Edits | Approval::All => assert_eq!(titles, [""; 0]),
        }
        // How it looks is told once it is known, before anything is done about it.
        let message = world.disk.lock().unwrap().conversation(session.id())[1].id.clone();
        let chunks = world.chunks_of(session.id(), &message);
        let told = chunks.iter().filter_map(|chunk| match chunk {
            Chunk::ToolInputAvailable { call_id, rest, .. } if call_id.as_str() == "c" => {
                Some(json!(rest.tool_metadata())["attache"]["title"].clone())
            }
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), ["change", "change a"]);
        world.check_rest(session.id());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_changes_something_waits_for_those_before_it_and_is_waited_for() {
    let script = "on *\n call id=l look {\"path\":\"b\",\"ms\":300}\n call id=m look {\"path\":\"b\",\"ms\":200}\n \
                  call id=t touch {\"path\":\"a\",\"ms\":200}\n call id=n look {\"path\":\"a\",\"ms\":5}\n ---\n text \"on\"";
    let world = World::new(script).with_settings(|settings| settings.approval = Approval::Edits);
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("go"));
    until_stored(&world, |_| world.runs.of("m") == 1).await;
    assert_eq!((world.runs.of("l"), world.runs.of("t")), (1, 0));
    pause(250).await;
    assert_eq!(world.runs.of("t"), 0, "`l` still runs");
    until_stored(&world, |_| world.runs.of("t") == 1).await;
    assert_eq!(world.runs.of("n"), 0);
    assert_eq!(end_of(ticket).await, TurnEnd::Finished(FinishReason::Stop));
    assert!(world.runs.all().values().all(|runs| *runs == 1), "{:?}", world.runs.all());
    world.check_rest(session.id());
}

/// The short one has its result on disk while the long one runs.
#[tokio::test(start_paused = true)]
async fn results_of_calls_side_by_side_are_recorded_as_each_lands() {
    let script = "on *\n call id=long look {\"path\":\"a\",\"ms\":5000}\n call id=short look {\"path\":\"b\"}\n ---\n text \"x\"";
    let world = World::new(script);
    let (process, session) = world.session().await;
    let _ticket = session.prompt(prompt("go"));
    until_stored(&world, |_| world.runs.of("short") == 1).await;
    pause(100).await;
    let message = world.disk.lock().unwrap().conversation(session.id())[1].id.clone();
    let chunks = world.chunks_of(session.id(), &message);
    let done = chunks.iter().any(|chunk| {
        matches!(chunk, Chunk::ToolOutputAvailable { call_id, preliminary: None, .. } if call_id.as_str() == "short")
    });
    assert!(done, "{chunks:#?}");
    // A crash now costs only the call that had not landed.
    process.kill();
    let again = world.process().hub.open(session.id()).await.unwrap();
    let tools = tools_of(&world.answers(again.id())[0]);
    assert_eq!(
        tools[0].error_text.as_deref(),
        Some("aborted by host restart: attache ended while this ran; it may have had effects")
    );
    assert_eq!(tools[1].output, Some("look done".into()));
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

/// Two that change what the session keeps for itself (its tasks, its background commands): no question, but
/// the second begins when the first has ended.
#[tokio::test(start_paused = true)]
async fn calls_that_change_what_the_session_keeps_run_in_their_order() {
    let script = "on *\n call id=one note {\"path\":\"a\",\"ms\":500}\n call id=two note {\"path\":\"b\",\"ms\":100}\n ---\n text \"x\"";
    let world = World::new(script);
    let (_process, session) = world.session().await;
    let started = tokio::time::Instant::now();
    let ticket = session.prompt(prompt("go"));
    until_stored(&world, |_| world.runs.of("one") == 1).await;
    pause(200).await;
    assert_eq!(world.runs.of("two"), 0, "`one` still runs");
    assert_eq!(end_of(ticket).await, TurnEnd::Finished(FinishReason::Stop));
    assert!(started.elapsed().as_millis() >= 600, "{:?}", started.elapsed());
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
