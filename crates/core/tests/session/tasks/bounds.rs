//! What a child may do: never more than its parent, and what people are asked for it.

use std::time::Duration;

use attache_core::events::RunState;
use attache_core::hub::AttachFrom;
use attache_core::part::ToolState;
use attache_core::ports::client::{About, Answer};
use attache_core::turn::TurnEnd;
use attache_core::watchdog::{Action, Approval, Rule};
use attache_testkit::fakes::client::PlannedClient;
use serde_json::json;

use super::stages::*;
use super::{FINISHED, children};
use crate::world::*;

fn touching(calls: &str) -> String {
    format!(
        "on \"go\"\n {calls}\n ---\n text \"done\"\non \"touch a\"\n call id=a touch {{\"path\":\"a\"}}\n ---\n text \"touched\"\non \"touch b\"\n call id=b touch {{\"path\":\"b\"}}\n ---\n text \"touched\"\non *\n text \"other\""
    )
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_child_reaches_the_people_of_its_parent() {
    let world = stage(&touching(&task("t", "worker", "touch a")));
    let (_process, session) = world.session().await;
    let client = PlannedClient::new([(Duration::from_millis(50), Answer::AllowOnce)]);
    let _participant = join(&session, client.clone()).await;
    let ticket = session.prompt(prompt("go"));
    until(&session, |state| *state == RunState::WaitingOnApproval).await;
    assert_eq!(end_of(ticket).await, FINISHED);
    assert_eq!(world.runs.of("a"), 1);
    let [ask] = &client.asked()[..] else { panic!("asked once") };
    assert_eq!(ask.session_id, *session.id());
    assert_eq!(ask.presentation.title, "Worker (touch a): touch");
    assert_eq!(ask.call_id.as_str(), format!("{}/a", children(&world, session.id())[0]));
    let About::Permission(permission) = &ask.about else { panic!("for a permission") };
    assert_eq!(permission.why, "it changes a file");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_grandchild_asks_with_the_whole_way_in_the_title() {
    let script = format!(
        "{}\non \"lead it\"\n {}\n ---\n text \"led\"",
        touching(&task("t", "worker", "lead it")).replace("\non *\n text \"other\"", ""),
        task("s", "worker", "touch a")
    );
    let world = stage(&script);
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::AllowOnce]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, FINISHED);
    assert_eq!(world.runs.of("a"), 1);
    assert_eq!(client.asked()[0].presentation.title, "Worker (lead it): Worker (touch a): touch");
}

#[tokio::test(start_paused = true)]
async fn what_is_rejected_does_not_run_and_the_child_goes_on() {
    let world = stage(&touching(&task("t", "worker", "touch a")));
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[Answer::RejectOnce])).await;
    assert_eq!(say(&session, "go").await, FINISHED);
    assert_eq!(world.runs.of("a"), 0);
    assert_eq!(tools_of(&world.answers(session.id())[0])[0].output, Some(json!("touched")));
    let child = &children(&world, session.id())[0];
    assert_eq!(tools_of(&world.answers(child)[0])[0].state, ToolState::OutputDenied);
}

#[tokio::test(start_paused = true)]
async fn several_children_ask_at_once_and_each_gets_its_own_answer() {
    // Background tasks work side by side although they change something.
    let calls =
        format!("{}\n {}", in_background("t", "worker", "touch a"), in_background("u", "worker", "touch b"));
    let world = stage(&touching(&calls));
    let (_process, session) = world.session().await;
    let client = PlannedClient::new([
        (Duration::from_millis(100), Answer::AllowOnce),
        (Duration::from_millis(50), Answer::RejectOnce),
    ]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, FINISHED);
    until_stored(&world, |disk| disk.conversation(session.id()).len() == 4).await;
    assert_eq!(client.asked().len(), 2);
    let first_is_a = client.asked()[0].call_id.as_str().ends_with("/a");
    let (allowed, rejected) = if first_is_a { ("a", "b") } else { ("b", "a") };
    assert_eq!((world.runs.of(allowed), world.runs.of(rejected)), (1, 0));
    pause(50).await;
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn always_holds_for_the_whole_family_and_after_a_restart() {
    let script =
        touching(&format!("{}\n ---\n {}", task("t", "worker", "touch a"), task("u", "worker", "touch a")));
    let script = format!("{script}\non \"self\"\n call id=x touch {{\"path\":\"a\"}}\n ---\n text \"done\"")
        .replace("\non *\n text \"other\"", "");
    let world = stage(&script);
    let (process, session) = world.session().await;
    let client = answering(&[Answer::AllowAlways]);
    let participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, FINISHED);
    assert_eq!(client.asked().len(), 1);
    assert_eq!(world.runs.of("a"), 2);
    // The rule is the session's own, whoever asked.
    assert_eq!(say(&session, "self").await, FINISHED);
    let id = session.id().clone();
    drop((participant, session));
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "self").await, FINISHED);
    assert_eq!(world.runs.all().values().sum::<u32>(), 4);
    assert_eq!(client.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_people_always_reject_is_denied_to_children_without_a_question() {
    let script = format!(
        "{}\non \"self\"\n call id=x touch {{\"path\":\"a\"}}\n ---\n text \"done\"",
        touching(&task("t", "worker", "touch a")).replace("\non *\n text \"other\"", "")
    );
    let world = stage(&script);
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::RejectAlways]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "self").await, FINISHED);
    assert_eq!(say(&session, "go").await, FINISHED);
    assert_eq!(client.asked().len(), 1);
    assert_eq!(world.runs.all().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_only_reads_has_children_that_only_read() {
    for agent in ["plan", "lead"] {
        let script = touching(&task("t", "worker", "touch a"));
        let script =
            format!("{script}\non \"lead\"\n {}\n ---\n text \"led\"", task("s", "worker", "touch a"))
                .replace("\non *\n text \"other\"", "");
        let script = match agent {
            "plan" => script,
            _ => script.replacen(&task("t", "worker", "touch a"), &task("t", "lead", "lead"), 1),
        };
        let world = stage(&script).with_settings(|settings| settings.approval = Approval::Edits);
        let (_process, session) = world.session().await;
        let client = answering(&[Answer::AllowOnce]);
        let _participant = join(&session, client.clone()).await;
        if agent == "plan" {
            session.set_mode("plan".into()).await.unwrap();
        }
        assert_eq!(say(&session, "go").await, FINISHED);
        assert_eq!(world.runs.of("a"), 0, "{agent}");
        assert!(client.asked().is_empty(), "{agent}: nobody can allow what the parent may not do");
        if agent == "plan" {
            // It is told what holds for it, not what only its parent can do.
            let child = &children(&world, session.id())[0];
            let error = tools_of(&world.answers(child)[0])[0].error_text.clone().unwrap();
            assert!(error.contains("a subagent of the plan agent: say in your last message"), "{error}");
            let requests = world.model.requests();
            let own = requests.iter().find(|request| prompt_in(request) == "touch a").unwrap();
            assert!(own.system.contains("commands that may change something are refused"), "{}", own.system);
        }
        let offered = |request: &attache_core::ports::ModelRequest| {
            request.tools.iter().any(|tool| &*tool.id == "touch")
        };
        assert!(
            !world.model.requests().iter().filter(|request| prompt_in(request) == "touch a").any(offered)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_a_manifest_above_is_final() {
    let guarded = "---\nmode: all\ndescription: Guards.\npermissions:\n  - permission: edit\n    pattern: a\n    action: deny\n---\nYou guard.";
    let free = "---\nmode: subagent\ndescription: Is free.\npermissions:\n  - permission: edit\n    pattern: \"*\"\n    action: allow\n---\nYou are free.";
    let calls = format!("{}\n {}", task("t", "free", "touch a"), task("u", "free", "touch b"));
    let world = World::new(&touching(&calls))
        .with_agents(&[("guarded", guarded), ("free", free)])
        .with_settings(|settings| settings.agent = "guarded".into());
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::AllowOnce]);
    let _participant = join(&session, client.clone()).await;
    assert_eq!(say(&session, "go").await, FINISHED);
    // What the manifest of the child allows its parent would have to ask for.
    assert_eq!((world.runs.of("a"), world.runs.of("b")), (0, 1));
    assert_eq!(client.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_rule_binds_children_too() {
    let world = stage(&touching(&task("t", "worker", "touch a"))).with_settings(|settings| {
        settings.approval = Approval::Edits;
        settings.rules = [Rule::new("edit", "a", Action::Deny)].into();
    });
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    assert_eq!(world.runs.of("a"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_child_follows_the_approval_of_its_parent_at_its_next_call() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non \"both\"\n call id=a touch {{\"path\":\"a\"}}\n ---\n call look {{\"path\":\"a\",\"ms\":100}}\n ---\n call id=b touch {{\"path\":\"b\"}}\n ---\n text \"ok\"",
        task("t", "worker", "both")
    );
    let world = stage(&script).with_settings(|settings| settings.approval = Approval::Edits);
    let (_process, session) = world.session().await;
    let client = answering(&[Answer::RejectOnce]);
    let _participant = join(&session, client.clone()).await;
    let ticket = session.prompt(prompt("go"));
    while world.runs.of("a") == 0 {
        pause(1).await;
    }
    session.set_approval(Approval::Ask).await.unwrap();
    assert_eq!(end_of(ticket).await, FINISHED);
    assert_eq!((world.runs.of("b"), client.asked().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_new_prompt_supersedes_the_question_of_a_child_its_turn_waits_for() {
    let world = stage(&touching(&task("t", "worker", "touch a")));
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[])).await;
    let first = session.prompt(prompt("go"));
    until(&session, |state| *state == RunState::WaitingOnApproval).await;
    let second = session.prompt(prompt("instead"));
    assert_eq!(end_of(first).await, TurnEnd::Aborted);
    assert_eq!(end_of(second).await, FINISHED);
    assert_eq!(world.runs.of("a"), 0);
    let child = &children(&world, session.id())[0];
    assert_eq!(tools_of(&world.answers(child)[0])[0].state, ToolState::OutputDenied);
    world.check_rest(child);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn who_turns_away_from_the_question_ends_the_prompt() {
    let world = stage(&touching(&task("t", "worker", "touch a")));
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[Answer::Cancelled])).await;
    assert_eq!(say(&session, "go").await, TurnEnd::Aborted);
    assert_eq!(world.runs.of("a"), 0);
}

#[tokio::test(start_paused = true)]
async fn who_comes_later_is_asked_too_and_the_first_answer_wins() {
    let world = stage(&touching(&task("t", "worker", "touch a")));
    let (_process, session) = world.session().await;
    let gone = answering(&[Answer::Gone]);
    let _first = join(&session, gone.clone()).await;
    let ticket = session.prompt(prompt("go"));
    until(&session, |state| *state == RunState::WaitingOnApproval).await;
    pause(50).await;
    let second = answering(&[Answer::AllowOnce]);
    let _second = join(&session, second.clone()).await;
    assert_eq!(end_of(ticket).await, FINISHED);
    assert_eq!((gone.asked().len(), second.asked().len(), world.runs.of("a")), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_a_person_loads_stays_within_its_bounds() {
    let world = stage(&touching(&task("t", "worker", "touch a")));
    let (process, session) = world.session().await;
    session.set_mode("plan".into()).await.unwrap();
    assert_eq!(say(&session, "go").await, FINISHED);
    let id = children(&world, session.id())[0].clone();
    let parent = session.id().clone();
    drop(session);
    process.kill();
    let process = world.process();
    let child = process.hub.open(&id).await.unwrap();
    let client = answering(&[Answer::AllowOnce]);
    let attachment = child.attach(Some(client.clone()), AttachFrom::Beginning).await.unwrap();
    attachment.participant.ready();
    assert_eq!(attachment.chosen.agent, "worker");
    assert_eq!(attachment.chosen.modes.len(), 1);
    assert_eq!(say(&child, "touch b").await, FINISHED);
    assert_eq!((world.runs.of("b"), client.asked().len()), (0, 0));
    assert!(child.set_mode("build".into()).await.is_err());
    assert!(child.set_approval(Approval::Edits).await.is_err());
    // Whose bounds are not known runs nothing.
    drop((attachment, child));
    process.kill();
    world.disk.lock().unwrap().sessions.remove(&parent);
    let child = world.process().hub.open(&id).await.unwrap();
    let refused = answer(child.prompt(prompt("touch b"))).await.unwrap_err();
    assert!(refused.to_string().contains("can only be read"), "{refused}");
}
