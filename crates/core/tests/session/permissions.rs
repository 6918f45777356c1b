//! Questions to people: what each answer does, who is asked, and that nothing runs without an allow.

use std::time::Duration;

use attache_core::chunk::FinishReason;
use attache_core::events::RunState;
use attache_core::hub::AttachFrom;
use attache_core::part::ToolState;
use attache_core::ports::client::{About, Answer};
use attache_core::turn::TurnEnd;
use attache_core::watchdog::{Action, Rule};
use attache_testkit::fakes::client::PlannedClient;

use crate::world::*;

const TOUCH: &str = "on *\n call id=t touch {\"path\":\"a\"}\n ---\n text \"on\"";

fn waits(state: &RunState) -> bool {
    *state == RunState::WaitingOnApproval
}

#[tokio::test(start_paused = true)]
async fn an_allowed_call_runs_once() {
    let world = World::new(TOUCH);
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::AllowOnce]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(world.runs.of("t"), 1);
    assert_eq!(client.asked()[0].tool_name, "touch");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_rejected_call_does_not_run_and_the_turn_goes_on() {
    let world = World::new(TOUCH);
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[Answer::RejectOnce])).await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(world.runs.of("t"), 0);
    let parts = &world.answers(session.id())[0];
    assert_eq!(tools_of(parts)[0].state, ToolState::OutputDenied);
    assert_eq!(text_of(parts), "on");
    let stored = decision(&world, session.id());
    assert_eq!((&stored["action"], &stored["by"]), (&"deny".into(), &"person".into()));
    assert_eq!(stored["why"], "it changes a file");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_client_without_a_person_denies_as_a_headless_host_does() {
    let world = World::new(TOUCH);
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[Answer::Nobody])).await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(world.runs.of("t"), 0);
    let parts = &world.answers(session.id())[0];
    let call = &tools_of(parts)[0];
    assert_eq!(call.state, ToolState::OutputDenied);
    let reason = call.approval.as_ref().and_then(|approval| approval.reason.as_deref());
    let told = "refused because it changes a file; no connected person can allow it. Nothing was changed";
    assert_eq!(reason, Some(told));
    // Nobody decided: it is not told as a person's word.
    assert_ne!(decision(&world, session.id())["by"], "person");
    assert_eq!(text_of(parts), "on");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn always_is_not_asked_again_not_even_after_a_restart() {
    let script =
        "on *\n call touch {\"path\":\"a\"}\n ---\n call touch {\"path\":\"a\",\"ms\":1}\n ---\n text \"on\"";
    for (answer, runs) in [(Answer::AllowAlways, 4), (Answer::RejectAlways, 0)] {
        let world = World::new(script);
        let (process, session) = world.session().await;
        let client = answering(&[answer]);
        let attachment = join(&session, client.clone()).await;
        assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
        assert_eq!(client.asked().len(), 1);
        let id = session.id().clone();
        drop((attachment, session));
        process.kill();
        let session = world.process().hub.open(&id).await.unwrap();
        assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
        assert_eq!(world.runs.all().values().sum::<u32>(), runs);
        world.check_rest(&id);
    }
}

#[tokio::test(start_paused = true)]
async fn all_edits_of_the_workspace_can_be_allowed_with_one_answer() {
    let script =
        "on *\n call touch {\"path\":\"a\"}\n ---\n call touch {\"path\":\"deep/b\"}\n ---\n text \"on\"";
    let world = World::new(script);
    let (process, session) = world.session().await;
    let client = answering(&[Answer::AllowEdits]);
    let attachment = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    let [asked] = &client.asked()[..] else { panic!("asked once") };
    let About::Permission(permission) = &asked.about else { panic!("for a permission") };
    assert_eq!(permission.why, "it changes a file");
    assert_eq!(permission.edits_name.as_deref(), Some("all edits in this workspace, for this session"));
    let id = session.id().clone();
    drop((attachment, session));
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(world.runs.all().values().sum::<u32>(), 4);
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn a_call_of_the_loop_does_not_run_with_arguments_that_nobody_offered_to_edit() {
    let world = World::new(TOUCH);
    let (_process, session) = world.session().await;
    let edited = Answer::AllowEdited(serde_json::json!({ "path": "elsewhere" }));
    let _participant = join(&session, answering(&[edited])).await;
    say(&session, "go").await;
    assert_eq!(world.runs.of("t"), 0);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_question_ends_the_turn() {
    let world = World::new(TOUCH);
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[Answer::Cancelled])).await;
    assert_eq!(say(&session, "go").await, TurnEnd::Aborted);
    assert_eq!(world.runs.of("t"), 0);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_leaves_the_question_open_for_the_next() {
    let world = World::new(TOUCH);
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[Answer::Gone])).await;
    let ticket = session.prompt(prompt("go"));
    until(&session, waits).await;
    pause(100).await;
    assert!(waits(&session.status().await.unwrap().state));
    let _second = join(&session, answering(&[Answer::AllowOnce])).await;
    assert_eq!(end_of(ticket).await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(world.runs.of("t"), 1);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_left_can_not_allow_any_more() {
    let world = World::new(TOUCH);
    let (_process, session) = world.session().await;
    let slow = PlannedClient::new([(Duration::from_millis(200), Answer::AllowOnce)]);
    let attachment = join(&session, slow).await;
    let _ticket = session.prompt(prompt("go"));
    until(&session, waits).await;
    drop(attachment);
    pause(1_000).await;
    assert_eq!(world.runs.of("t"), 0);
    assert!(waits(&session.status().await.unwrap().state));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_before_its_load_is_answered() {
    let world = World::new(TOUCH);
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::AllowOnce]);
    let attachment = session.attach(Some(client.clone()), AttachFrom::Beginning).await.unwrap();
    let ticket = session.prompt(prompt("go"));
    until(&session, waits).await;
    pause(100).await;
    assert!(client.asked().is_empty());
    attachment.participant.ready();
    assert_eq!(end_of(ticket).await, TurnEnd::Finished(FinishReason::Stop));
}

#[tokio::test(start_paused = true)]
async fn the_first_of_two_answers_wins() {
    let world = World::new(TOUCH);
    let (_process, session) = world.session().await;
    let _fast = join(&session, answering(&[Answer::RejectOnce])).await;
    let slow = PlannedClient::new([(Duration::from_millis(50), Answer::AllowOnce)]);
    let _slow = join(&session, slow).await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    pause(200).await;
    assert_eq!(world.runs.of("t"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_new_prompt_supersedes_the_question() {
    let world = World::new("on \"go\"\n call id=t touch {\"path\":\"a\"}\non *\n text \"new\"");
    let (_process, session) = world.session().await;
    let first = session.prompt(prompt("go"));
    until(&session, waits).await;
    let second = session.prompt(prompt("instead"));
    assert_eq!(end_of(first).await, TurnEnd::Aborted);
    assert_eq!(end_of(second).await, TurnEnd::Finished(FinishReason::Stop));
    let tool = &tools_of(&world.answers(session.id())[0])[0];
    assert_eq!(tool.state, ToolState::OutputDenied);
    assert_eq!(tool.approval.as_ref().unwrap().reason.as_deref(), Some("superseded by a new prompt"));
    assert_eq!(world.runs.of("t"), 0);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_read_outside_the_roots_asks() {
    let world = World::new("on *\n call id=l look {\"path\":\"/etc/passwd\"}\n ---\n text \"on\"");
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::RejectOnce]);
    let _participant = join(&session, client.clone()).await;
    say(&session, "go").await;
    assert_eq!(client.asked().len(), 1);
    assert_eq!(world.runs.of("l"), 0);
}

/// What is stored with the only call of the session.
fn decision(world: &World, session: &attache_core::ids::SessionId) -> serde_json::Value {
    let tool = tools_of(&world.answers(session)[0])[0].clone();
    tool.tool_metadata.unwrap()["attache"]["decision"].clone()
}

#[tokio::test(start_paused = true)]
async fn why_a_call_ran_or_did_not_is_stored_with_it() {
    let rule = |action| Rule::new("edit", "a", action);
    let told = |action: &str| serde_json::json!({"permission": "edit", "pattern": "a", "action": action});
    for (action, name, runs) in [(Action::Allow, "allow", 1), (Action::Deny, "deny", 0)] {
        let world = World::new(TOUCH).with_settings(|settings| settings.rules = [rule(action)].into());
        let (_process, session) = world.session().await;
        let client = answering(&[]);
        let _participant = join(&session, client.clone()).await;
        assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
        assert_eq!((client.asked().len(), world.runs.of("t")), (0, runs));
        let stored = decision(&world, session.id());
        assert_eq!((&stored["by"], &stored["scope"]), (&"rule".into(), &"configuration".into()));
        assert_eq!((&stored["action"], &stored["rule"]), (&name.into(), &told(name)));
        world.check_rest(session.id());
    }
    let world = World::new(TOUCH);
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
    say(&session, "go").await;
    let stored = decision(&world, session.id());
    assert_eq!((&stored["by"], &stored["action"]), (&"person".into(), &"allow".into()));
    assert_eq!(stored["why"], "it changes a file");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_came_while_the_question_was_open_holds_against_the_answer() {
    let world = World::new(TOUCH);
    let (process, session) = world.session().await;
    let _ticket = session.prompt(prompt("go"));
    until(&session, waits).await;
    let id = session.id().clone();
    drop(session);
    process.kill();
    let world =
        world.with_settings(|settings| settings.rules = [Rule::new("edit", "*", Action::Deny)].into());
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    let client = answering(&[Answer::AllowOnce]);
    let _participant = join(&session, client.clone()).await;
    until(&session, |state| *state == RunState::Idle).await;
    assert_eq!((client.asked().len(), world.runs.of("t")), (1, 0));
    assert_eq!(decision(&world, &id)["by"], "rule");
    world.check_rest(&id);
}
