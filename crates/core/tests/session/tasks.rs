//! Tasks: a child is a session of its own, bounded by its parent; what comes back, what people are asked, and
//! what an abort, a background and a crash do to it.

mod background;
mod bounds;
mod crashes;
mod schemas;
mod stages;

use std::time::Duration;

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::hub::{ForkPoint, NewSession};
use attache_core::part::ToolState;
use attache_core::ports::store::{ListedSessions, SessionQuery};
use attache_core::ports::{ModelRequest, Store};
use attache_core::turn::TurnEnd;
use serde_json::json;

use crate::world::*;
use stages::*;

const FINISHED: TurnEnd = TurnEnd::Finished(FinishReason::Stop);

#[tokio::test(start_paused = true)]
async fn a_blocking_task_gives_the_last_message_of_a_session_of_its_own() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non \"look at a\"\n text \"I begin.\"\n call id=l look {{\"path\":\"a\"}}\n ---\n text \"It is fine.\"",
        task("t", "reader", "look at a")
    );
    let world = stage(&script);
    let (process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let call = &tools_of(&world.answers(session.id())[0])[0];
    assert_eq!(call.output, Some(json!("It is fine.")));
    assert_eq!(world.runs.of("l"), 1);
    let [child] = &children(&world, session.id())[..] else { panic!("one child") };
    let row = world.disk.lock().unwrap().sessions[child].clone();
    assert_eq!((row.agent.as_str(), row.metadata.title()), ("reader", Some("look at a")));
    assert_eq!(row.parent_id.as_ref(), Some(session.id()));
    let answer = world.disk.lock().unwrap().conversation(session.id())[1].id.clone();
    assert_eq!(row.parent_message_id, Some(answer));
    assert_eq!(world.prompts(child), ["look at a"]);
    // What it used is its own.
    let spent = |id| world.disk.lock().unwrap().sessions[id].totals.prompt_tokens;
    assert!(spent(child) > 0 && spent(session.id()) > 0);
    world.check_rest(session.id());
    world.check_rest(child);
    // Nobody needs it any more: it is not kept open.
    while world.runs.ended().is_empty() {
        pause(1).await;
    }
    assert_eq!(world.runs.ended(), std::slice::from_ref(child));
    // In no list, unless somebody asks.
    let listed = |listed| {
        let query = SessionQuery { limit: 9, listed, ..SessionQuery::default() };
        let rows = process.store.list_sessions(query);
        async move { rows.await.unwrap().into_iter().map(|row| row.id).collect::<Vec<_>>() }
    };
    assert_eq!(listed(ListedSessions::Own).await, [session.id().clone()]);
    assert_eq!(listed(ListedSessions::WithChildren).await.len(), 2);
    assert_eq!(listed(ListedSessions::ChildrenOf(session.id().clone())).await, std::slice::from_ref(child));
}

#[tokio::test(start_paused = true)]
async fn a_task_in_the_terms_of_another_agent_runs_as_it_was_meant() {
    let call = json!({
        "description": "Look at it", "prompt": "look at a", "subagent_type": "Reader", "background": "false", "model": "small",
    });
    let script =
        format!("on \"go\"\n call id=t task {call}\n ---\n text \"done\"\non *\n text \"It is fine.\"");
    let world = stage(&script);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let call = &tools_of(&world.answers(session.id())[0])[0];
    let told = call.output.as_ref().unwrap().to_string();
    assert!(told.contains("It is fine.") && told.contains("`model`"), "{told}");
    let [child] = &children(&world, session.id())[..] else { panic!("one child") };
    let row = world.disk.lock().unwrap().sessions[child].clone();
    assert_eq!(row.metadata.title(), Some("Look at it"));
    assert_eq!(world.prompts(child), ["look at a"]);
}

#[tokio::test(start_paused = true)]
async fn the_tool_names_the_subagents_and_an_unknown_one_gets_the_nearest() {
    let world = stage(&format!(
        "on \"go\"\n {}\n call id=e task {{\"subagent_type\":\"reader\",\"prompt\":\" \"}}\n ---\n text \"done\"",
        task("t", "raeder", "x")
    ));
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let calls = tools_of(&world.answers(session.id())[0]);
    let error = calls[0].error_text.clone().unwrap();
    assert!(error.contains("no subagent `raeder`; the nearest is `reader`;"), "{error}");
    assert!(calls[1].error_text.as_ref().unwrap().contains("`prompt` is empty"));
    assert!(children(&world, session.id()).is_empty());
    let request = &world.model.requests()[0];
    let tool = request.tools.iter().find(|tool| &*tool.id == "task").unwrap();
    assert!(tool.description.contains("\n- reader: Looks."), "{}", tool.description);
    assert!(!tool.description.contains("build"), "{}", tool.description);
}

#[tokio::test(start_paused = true)]
async fn who_is_not_offered_the_tool_delegates_nothing() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non *\n {}\n ---\n text \"alone\"",
        task("t", "loner", "x"),
        task("s", "reader", "y")
    );
    let loner = "---\nmode: subagent\ndescription: Is alone.\ntools: [\"!task\"]\n---\nYou are alone.";
    let world = stage(&script).with_agents(&[("loner", loner)]);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let offers = |request: &ModelRequest| request.tools.iter().any(|tool| &*tool.id == "task");
    let requests = world.model.requests();
    assert!(offers(&requests[0]) && !offers(&requests[1]));
    let child = &children(&world, session.id())[0];
    let refused = tools_of(&world.answers(child)[0])[0].error_text.clone().unwrap();
    assert!(refused.contains("`task` is not available to the loner agent"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn five_levels_deep_nobody_delegates_any_more() {
    let mut script = String::new();
    for level in 0..7 {
        let next = task(&format!("t{level}"), "worker", &format!("level {}", level + 1));
        script += &format!("on \"level {level}\"\n {next}\n ---\n text \"back from {level}\"\n");
    }
    let world = stage(&script);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "level 0").await, FINISHED);
    let mut id = session.id().clone();
    let mut depth = 0;
    while let [child] = &children(&world, &id)[..] {
        id = child.clone();
        depth += 1;
    }
    assert_eq!(depth, 5);
    let call = &tools_of(&world.answers(&id)[0])[0];
    assert!(call.error_text.as_ref().unwrap().contains("there is no tool `task`"), "{call:?}");
    let offers = |depth: usize| world.model.requests()[depth].tools.iter().any(|tool| &*tool.id == "task");
    assert!(offers(4) && !offers(5));
}

#[tokio::test(start_paused = true)]
async fn tasks_that_only_read_run_at_the_same_time_and_others_in_their_order() {
    for (agent, seconds) in [("reader", 1), ("worker", 3)] {
        let calls: Vec<_> = (0..3).map(|n| task(&format!("t{n}"), agent, &format!("job {n}"))).collect();
        let script = format!(
            "on \"go\"\n {}\n ---\n text \"done\"\non \"job\"*\n delay 1000ms\n text \"ok\"",
            calls.join("\n ")
        );
        let world = stage(&script);
        let (_process, session) = world.session().await;
        let begun = tokio::time::Instant::now();
        assert_eq!(say(&session, "go").await, FINISHED);
        assert_eq!(begun.elapsed().as_secs(), seconds, "{agent}");
        assert_eq!(children(&world, session.id()).len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn eight_work_at_once_and_the_rest_waits() {
    let calls: Vec<_> = (0..20).map(|n| task(&format!("t{n}"), "reader", &format!("job {n}"))).collect();
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non \"job\"*\n delay 1000ms\n text \"ok\"",
        calls.join("\n ")
    );
    let world = stage(&script);
    let (_process, session) = world.session().await;
    let begun = tokio::time::Instant::now();
    assert_eq!(say(&session, "go").await, FINISHED);
    assert_eq!(begun.elapsed().as_secs(), 3, "three rounds of eight at most");
    let calls = tools_of(&world.answers(session.id())[0]);
    assert!(calls.iter().all(|call| call.output == Some(json!("ok"))), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn children_of_children_never_wait_for_each_others_places() {
    let calls: Vec<_> = (0..8).map(|n| task(&format!("t{n}"), "lead", &format!("lead {n}"))).collect();
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non \"lead\"*\n {}\n ---\n text \"led\"\non \"job\"*\n delay 10ms\n text \"ok\"",
        calls.join("\n "),
        task("s", "reader", "job")
    );
    let world = stage(&script);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let calls = tools_of(&world.answers(session.id())[0]);
    assert!(calls.iter().all(|call| call.output == Some(json!("led"))), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_child_does_is_seen_in_its_parents_call() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non \"job\"\n call look {{\"path\":\"a\",\"ms\":600}}\n call look {{\"path\":\"b\",\"ms\":600}}\n ---\n delay 600ms\n text \"ok\"",
        task("t", "reader", "job")
    );
    let world = stage(&script);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let answer = world.disk.lock().unwrap().conversation(session.id())[1].id.clone();
    let shown: Vec<String> = world
        .chunks_of(session.id(), &answer)
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::ToolOutputAvailable { preliminary: Some(true), rest, .. } => {
                rest.tool_metadata()?["attache"]["content"][0]["text"].as_str().map(str::to_owned)
            }
            _ => None,
        })
        .collect();
    assert!(shown[0].contains("begins: 0 calls"), "{shown:?}");
    assert!(!shown.iter().any(|text| text.contains("waits for its turn")), "its place was free: {shown:?}");
    assert!(
        shown.iter().any(|text| text.contains("2 calls") && text.contains("\n- … look\n- … look")),
        "{shown:?}"
    );
    let last = shown.last().unwrap();
    assert!(last.contains("\n- ✓ look") && last.contains("tokens"), "{last}");
    assert!(shown.len() < 12, "renewed too often: {}", shown.len());
}

#[tokio::test(start_paused = true)]
async fn an_abort_reaches_every_level() {
    let mut script = String::new();
    for level in 0..4 {
        let next = task(&format!("t{level}"), "worker", &format!("level {}", level + 1));
        script += &format!("on \"level {level}\"\n {next}\n ---\n text \"back\"\n");
    }
    script += "on \"level 4\"\n call id=h hang {\"path\":\"a\"}\n ---\n text \"back\"";
    let world = stage(&script);
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("level 0"));
    while world.runs.of("h") == 0 {
        pause(1).await;
    }
    let begun = tokio::time::Instant::now();
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    let mut id = session.id().clone();
    for _ in 0..4 {
        let child = children(&world, &id)[0].clone();
        until_stored(&world, |disk| disk.leases.get(&child).is_none_or(|lease| lease.run.is_none())).await;
        assert!(begun.elapsed() <= Duration::from_millis(500), "{:?}", begun.elapsed());
        let call = &tools_of(&world.answers(&child)[0])[0];
        assert_eq!(call.state, ToolState::OutputError);
        world.check_rest(&child);
        id = child;
    }
}

#[tokio::test(start_paused = true)]
async fn deleting_a_session_deletes_its_children_and_a_fork_has_none() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non \"lead\"\n {}\n ---\n text \"led\"\non *\n text \"ok\"",
        task("t", "lead", "lead"),
        task("s", "reader", "job")
    );
    let world = stage(&script);
    let (process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let new = NewSession { root: "/w".into(), place: Default::default() };
    let fork = process.hub.fork_at(session.id(), &ForkPoint::End, new).await.unwrap();
    assert_eq!(world.disk.lock().unwrap().sessions.len(), 4);
    assert!(children(&world, fork.id()).is_empty());
    process.hub.delete(session.id()).await.unwrap();
    let left: Vec<_> = world.disk.lock().unwrap().sessions.keys().cloned().collect();
    assert_eq!(left, [fork.id().clone()]);
}

#[tokio::test(start_paused = true)]
async fn an_opaque_child_is_in_its_parents_call_and_in_no_list() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non \"job\"\n text \"One.\"\n call look {{\"path\":\"a\"}}\n ---\n text \"Two.\"",
        task("t", "opaque", "job")
    );
    let world = stage(&script);
    let (process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let call = &tools_of(&world.answers(session.id())[0])[0];
    assert_eq!(call.output, Some(json!("Two.")));
    let shown = call.tool_metadata.as_ref().unwrap()["attache"]["content"].to_string();
    assert!(shown.contains("One.") && shown.contains("Two."), "{shown}");
    let child = children(&world, session.id())[0].clone();
    let row = world.disk.lock().unwrap().sessions[&child].clone();
    assert_eq!(row.metadata.child_of().unwrap().transcript(), attache_core::agents::Transcript::Nested);
    assert!(!shown.contains(child.as_str()), "its session is for nobody to find: {shown}");
    let query = SessionQuery { limit: 10, listed: ListedSessions::WithChildren, ..SessionQuery::default() };
    let listed = process.hub.list(query).await.unwrap();
    assert_eq!(listed.iter().map(|row| &row.id).collect::<Vec<_>>(), [session.id()]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_is_told_with_what_it_had_said() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non \"job\"\n text \"Half of it.\"\n call look {{\"path\":\"a\"}}\n ---\n error permanent \"no more\"",
        task("t", "reader", "job")
    );
    let world = stage(&script);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    let error = tools_of(&world.answers(session.id())[0])[0].error_text.clone().unwrap();
    assert!(
        error.contains("it failed: ") && error.contains("no more") && error.contains("Half of it."),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_prompt_of_an_agent_is_never_a_command() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non \"/help\"\n text \"taken as text\"",
        task("t", "reader", "/help")
    );
    let world = stage(&script);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    assert_eq!(tools_of(&world.answers(session.id())[0])[0].output, Some(json!("taken as text")));
}
