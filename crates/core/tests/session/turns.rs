//! Plain turns: one token, steps, limits, retries, cuts, refusals, panics of the model.

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::events::{EventKind, FinishedBy, HubEvent, RunState};
use attache_core::hub::AttachFrom;
use attache_core::ids::CallId;
use attache_core::part::Part;
use attache_core::turn::{FailureKind, TurnEnd};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn one_token_is_a_turn() {
    let world = World::new("on *\n text \"Hi\"");
    let (_process, session) = world.session().await;
    let attachment = session.attach(None, AttachFrom::Now).await.unwrap();
    let (shown, _reader) = read(attachment);
    let outcome = answer(session.prompt(prompt("hello"))).await.unwrap();
    assert_eq!(outcome.end, TurnEnd::Finished(FinishReason::Stop));
    pause(10).await;
    assert_eq!(world.prompts(session.id()), ["hello"]);
    assert_eq!(text_of(&world.answers(session.id())[0]), "Hi");
    let shown = shown.lock().unwrap();
    let indexes: Vec<u64> = shown.iter().map(|(index, ..)| *index).collect();
    assert_eq!(indexes, (0..outcome.after_index).collect::<Vec<_>>());
    assert!(matches!(shown.last(), Some((_, _, Chunk::Finish { .. }))));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_before_the_next_step() {
    let world = World::new("on *\n call id=c1 look {\"path\":\"a\"}\n ---\n text \"done\"");
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    let parts = &world.answers(session.id())[0];
    assert_eq!(tools_of(parts)[0].output, Some("look done".into()));
    assert_eq!(text_of(parts), "done");
    let second = &world.model.requests()[1];
    assert!(second.passages.last().unwrap().parts.iter().any(|part| part.tool().is_some()));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn the_step_limit_ends_the_turn() {
    let script =
        "on *\n call look {\"path\":\"a\"}\n ---\n call look {\"path\":\"b\"}\n ---\n text \"never\"";
    let world = World::new(script).with_max_steps(2);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::StepLimit);
    assert_eq!(world.model.requests().len(), 2);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_transient_error_is_tried_again_and_told() {
    let world = World::new("on *\n error transient \"overloaded\" times=2\n text \"at last\"");
    let (process, session) = world.session().await;
    let mut events = process.hub.events();
    let ticket = session.prompt(prompt("go"));
    until(&session, |state| matches!(state, RunState::Retrying { attempt: 1, .. })).await;
    assert_eq!(end_of(ticket).await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(text_of(&world.answers(session.id())[0]), "at last");
    let retries = states(&mut events);
    let attempts: Vec<_> = retries
        .iter()
        .filter_map(
            |state| if let RunState::Retrying { attempt, .. } = state { Some(*attempt) } else { None },
        )
        .collect();
    assert_eq!(attempts, [1, 2]);
    assert!(!matches!(session.status().await.unwrap().state, RunState::Retrying { .. }));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn tries_end_and_the_error_is_clear() {
    let world = World::new("on *\n error transient \"overloaded\"");
    let (_process, session) = world.session().await;
    let TurnEnd::Failed { kind: FailureKind::Model, message, .. } = say(&session, "go").await else {
        panic!("it did not fail")
    };
    assert!(message.contains("overloaded"), "{message}");
    assert_eq!(world.model.requests().len(), 5);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_cut_keeps_the_text_and_the_next_prompt_goes_on_from_it() {
    let world = World::new("on \"go\"\n text \"half a\"\n cut\non *\n text \"rest\"");
    let (_process, session) = world.session().await;
    assert!(matches!(say(&session, "go").await, TurnEnd::Failed { kind: FailureKind::Model, .. }));
    assert_eq!(world.model.requests().len(), 1, "a cut after the first word is not tried again");
    assert_eq!(text_of(&world.answers(session.id())[0]), "half a");
    assert_eq!(say(&session, "on").await, TurnEnd::Finished(FinishReason::Stop));
    let request = world.model.requests().pop().unwrap();
    assert!(request.passages.iter().any(|passage| text_of(&passage.parts) == "half a"));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_refused_prompt_is_left_out_of_the_next_request() {
    let world = World::new("on \"bad\"\n error refused \"no\"\non *\n text \"fine\"");
    let (_process, session) = world.session().await;
    say(&session, "first").await;
    assert_eq!(say(&session, "bad").await, TurnEnd::Finished(FinishReason::ContentFilter));
    say(&session, "good").await;
    let request = world.model.requests().pop().unwrap();
    let texts: Vec<_> = request.passages.iter().map(|passage| text_of(&passage.parts)).collect();
    assert_eq!(texts, ["first", "fine", "good"]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_model_fails_that_turn_only() {
    let world = World::new("on \"boom\"\n text \"so far\"\n panic\non *\n delay 50ms\n text \"fine\"");
    let (process, session) = world.session().await;
    let other = process.create().await;
    let beside = other.prompt(prompt("hello"));
    let end = say(&session, "boom").await;
    assert!(matches!(end, TurnEnd::Failed { kind: FailureKind::Internal, .. }), "{end:?}");
    assert_eq!(text_of(&world.answers(session.id())[0]), "so far");
    assert_eq!(end_of(beside).await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(say(&session, "again").await, TurnEnd::Finished(FinishReason::Stop));
    world.check_rest(session.id());
    world.check_rest(other.id());
}

#[tokio::test(start_paused = true)]
async fn usage_is_summed_on_message_and_session() {
    let world = World::new(
        "on *\n usage input=10 output=2\n call look {\"path\":\"a\"}\n ---\n usage input=5 output=1\n text \"x\"",
    );
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    let disk = world.disk.lock().unwrap();
    let totals = disk.sessions[session.id()].totals;
    assert_eq!((totals.prompt_tokens, totals.completion_tokens), (15, 3));
    let row = disk.conversation(session.id())[1].clone();
    assert_eq!(row.metadata.as_map()["usage"]["input"], 15);
}

#[tokio::test(start_paused = true)]
async fn the_first_line_of_the_first_prompt_is_the_title() {
    let world = World::new("on *\n text \"x\"");
    let (_process, session) = world.session().await;
    say(&session, "\n  fix the parser \nplease").await;
    say(&session, "and another thing").await;
    assert_eq!(
        world.disk.lock().unwrap().sessions[session.id()].metadata.as_map()["title"],
        "fix the parser"
    );
}

#[tokio::test(start_paused = true)]
async fn every_answer_starts_with_a_step() {
    let world = World::new("on *\n text \"x\"");
    let (_process, session) = world.session().await;
    say(&session, "go").await;
    assert_eq!(world.answers(session.id())[0].first(), Some(&Part::StepStart));
}

/// Events in short: `start`, `asks CALL`, `end REASON [CALL]`, or a state with the prompt that it is about.
fn told(events: &mut tokio::sync::broadcast::Receiver<HubEvent>) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(HubEvent { session_id, kind }) = events.try_recv() {
        assert!(session_id.as_str().starts_with("ses_"));
        told.push(match kind {
            EventKind::TurnStarted { message_id } => format!("start {message_id}"),
            EventKind::ApprovalRequested { call_id } => format!("asks {call_id}"),
            EventKind::TurnFinished { message_id, reason, pending_approval } => {
                let reason = match reason {
                    FinishedBy::Finish => "finish",
                    FinishedBy::Abort => "abort",
                    FinishedBy::Error => "error",
                };
                let pending = pending_approval.as_ref().map_or("", CallId::as_str);
                format!("end {message_id} {reason} {pending}").trim_end().to_owned()
            }
            EventKind::Status(status) => {
                assert_eq!(status.message_id.is_some(), status.is_active(), "{status:?}");
                assert_eq!(status.started_at.is_some(), status.is_active(), "{status:?}");
                let about = status.message_id.map(|id| id.to_string()).unwrap_or_default();
                let state = match status.state {
                    RunState::Idle => "idle".to_owned(),
                    RunState::Busy => "busy".to_owned(),
                    RunState::Retrying { attempt, .. } => format!("retrying {attempt}"),
                    RunState::WaitingOnApproval => "waiting_on_approval".to_owned(),
                    RunState::WaitingOnUserInput => "waiting_on_user_input".to_owned(),
                    RunState::Error { message } => format!("error {message}"),
                };
                format!("{state} {about}").trim_end().to_owned()
            }
        });
    }
    told
}

#[tokio::test(start_paused = true)]
async fn every_transition_is_published_to_all_who_listen() {
    let script = "on \"slow\"\n delay 60s\non \"retry\"\n error transient \"busy\" times=1\n text \"x\"\n\
                  on \"fail\"\n error permanent \"no\"\non \"ask\"\n call id=c1 touch {\"path\":\"a\"}\n\
                  on *\n text \"fine\"";
    let world = World::new(script);
    let (process, session) = world.session().await;
    let (mut one, mut other) = (process.hub.events(), process.hub.events());
    let _participant = join(&session, answering(&[])).await;
    for (id, expected) in [
        (
            "retry",
            ["start retry", "busy retry", "retrying 1 retry", "busy retry", "end retry finish", "idle"]
                .as_slice(),
        ),
        ("fail", &["start fail", "busy fail", "end fail error", "error no"]),
        ("slow", &["start slow", "busy slow", "end slow abort", "idle"]),
        ("ask", &["start ask", "busy ask", "asks c1", "waiting_on_approval ask", "end ask abort c1", "idle"]),
        ("other", &["start other", "busy other", "end other finish", "idle"]),
    ] {
        let ticket = session.prompt(prompt_with_id(id, id));
        if let "slow" | "ask" = id {
            pause(100).await;
            session.cancel();
        }
        drop(answer(ticket).await);
        pause(10).await;
        let heard = told(&mut one);
        assert_eq!(heard, expected);
        assert_eq!(told(&mut other), heard);
    }
    world.check_rest(session.id());
}
