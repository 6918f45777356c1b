//! A process that dies while tasks run.

use std::time::Duration;

use attache_core::hub::AttachFrom;
use attache_core::ports::client::Answer;

use super::stages::*;
use super::{FINISHED, children};
use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_background_task_of_a_dead_host_gets_its_failure_message_once() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"started\"\non \"job\"\n delay 10s\n text \"late\"\non *\n text \"fine\"",
        in_background("t", "waker", "job")
    );
    let world = stage(&script);
    let (process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, FINISHED);
    pause(100).await;
    let id = session.id().clone();
    drop(session);
    process.kill();
    for _ in 0..3 {
        let process = world.process();
        let session = process.hub.open(&id).await.unwrap();
        pause(100).await;
        let answers = world.answers(&id);
        assert_eq!(answers.len(), 2);
        let told = text_of(&answers[1]);
        assert!(told.contains("“job”") && told.contains("aborted by host restart"), "{told}");
        drop(session);
        process.kill();
    }
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "next").await, FINISHED);
    let request = world.model.requests().pop().unwrap();
    assert!(
        request.passages.iter().any(|passage| text_of(&passage.parts).contains("aborted by host restart"))
    );
    world.check_rest(&id);
    // What it had done is in its own session, which ends in order when somebody looks.
    let child = children(&world, &id)[0].clone();
    let _opened = world.process().hub.open(&child).await.unwrap();
    pause(10).await;
    world.check_rest(&child);
}

#[tokio::test(start_paused = true)]
async fn a_blocking_task_of_a_dead_host_closes_as_aborted() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non \"job\"\n delay 10s\n text \"late\"\non *\n text \"fine\"",
        task("t", "worker", "job")
    );
    let world = stage(&script);
    let (process, session) = world.session().await;
    let _ticket = session.prompt(prompt("go"));
    until_stored(&world, |disk| disk.sessions.len() == 2).await;
    pause(100).await;
    let id = session.id().clone();
    drop(session);
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    let call = &tools_of(&world.answers(&id)[0])[0];
    assert!(call.error_text.as_ref().unwrap().contains("aborted by host restart"));
    assert_eq!(world.answers(&id).len(), 1, "only its call says so");
    assert_eq!(say(&session, "next").await, FINISHED);
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_question_of_a_child_stays_open_in_its_own_session() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"done\"\non \"job\"\n call id=a touch {{\"path\":\"a\"}}\n ---\n text \"touched\"",
        task("t", "worker", "job")
    );
    let world = stage(&script);
    let (process, session) = world.session().await;
    let client = answering(&[]);
    let participant = join(&session, client.clone()).await;
    let _ticket = session.prompt(prompt("go"));
    while client.asked().is_empty() {
        pause(1).await;
    }
    let (id, child) = (session.id().clone(), children(&world, session.id())[0].clone());
    drop((participant, session));
    process.kill();
    let process = world.process();
    let parent = process.hub.open(&id).await.unwrap();
    let at_parent = answering(&[Answer::AllowOnce]);
    let _participant = join(&parent, at_parent.clone()).await;
    pause(100).await;
    assert!(at_parent.asked().is_empty(), "the call that waited for it is over");
    let opened = process.hub.open(&child).await.unwrap();
    let at_child = answering(&[Answer::AllowOnce]);
    let attachment = opened.attach(Some(at_child.clone()), AttachFrom::Beginning).await.unwrap();
    attachment.participant.ready();
    until_stored(&world, |disk| disk.leases.get(&child).is_none_or(|lease| lease.run.is_none())).await;
    assert_eq!((at_child.asked().len(), world.runs.of("a")), (1, 1));
    assert_eq!(text_of(&world.answers(&child)[0]), "touched");
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_moment_a_background_task_is_told_exactly_once() {
    let script = format!(
        "on \"go\"\n {}\n ---\n text \"started\"\non \"job\"\n delay 20ms\n text \"found it\"\non *\n text \"fine\"",
        in_background("t", "reader", "job")
    );
    for milliseconds in 0..60 {
        let world = stage(&script);
        let (process, session) = world.session().await;
        let id = session.id().clone();
        let _ticket = session.prompt(prompt("go"));
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        drop(session);
        process.kill();
        let process = world.process();
        let session = process.hub.open(&id).await.unwrap();
        pause(50).await;
        let told = world.answers(&id).iter().filter(|parts| text_of(parts).contains("has ended")).count();
        let stored = world.disk.lock().unwrap().sessions[&id].metadata.background_tasks().len();
        let was_started = world.disk.lock().unwrap().sessions.len() > 1
            && world.answers(&id).iter().flat_map(|parts| tools_of(parts)).any(|call| call.output.is_some());
        assert_eq!(stored, 0, "nothing is owed any more");
        assert!(told <= 1 && (told == 1 || !was_started), "{milliseconds} ms: told {told} times");
        assert_eq!(say(&session, "next").await, FINISHED);
        world.check_rest(&id);
    }
}
