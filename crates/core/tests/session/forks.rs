//! Forks: new ids, sums, title; refused while a turn is under way, here or elsewhere.

use attache_core::hub::{HubError, NewSession};
use attache_core::ports::client::Answer;

use crate::world::*;

const SCRIPT: &str = "on \"talk\"\n stream 50 \"word \" every 10ms\non \"ask\"\n call touch {\"path\":\"a\"}\n ---\n text \"x\"\n\
                      on *\n usage input=4 output=2\n text \"fine\"";

fn new() -> NewSession {
    NewSession { root: "/w".into(), place: Default::default() }
}

#[tokio::test(start_paused = true)]
async fn a_copy_has_ids_sums_and_a_title_of_its_own() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let attachment = join(&session, answering(&[Answer::AllowAlways])).await;
    say(&session, "one").await;
    say(&session, "ask").await;
    drop(attachment);
    let copy = process.hub.fork(session.id(), new()).await.unwrap();
    {
        let disk = world.disk.lock().unwrap();
        let (from, to) = (disk.conversation(session.id()), disk.conversation(copy.id()));
        assert_eq!(from.len(), to.len());
        for (from, to) in from.iter().zip(&to) {
            assert_ne!(from.id, to.id);
            assert_eq!(parts(&disk, &from.id), parts(&disk, &to.id));
        }
        let row = &disk.sessions[copy.id()];
        assert_eq!(row.metadata.as_map()["title"], "one (copy)");
        assert_eq!(row.parent_id.as_ref(), Some(session.id()));
        assert_eq!(row.parent_message_id.as_ref(), from.last().map(|row| &row.id));
        assert_eq!(row.permissions, serde_json::json!([]));
        assert_eq!(row.totals, disk.sessions[session.id()].totals);
    }
    say(&copy, "more").await;
    assert_eq!(world.prompts(copy.id()), ["one", "ask", "more"]);
    assert_eq!(world.prompts(session.id()), ["one", "ask"]);
    world.check_rest(copy.id());
}

#[tokio::test(start_paused = true)]
async fn a_running_session_is_not_copied() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let ticket = session.prompt(prompt("talk"));
    pause(50).await;
    let busy = HubError::Busy(session.id().clone());
    assert_eq!(process.hub.fork(session.id(), new()).await.unwrap_err(), busy);
    assert_eq!(world.process().hub.fork(session.id(), new()).await.unwrap_err(), busy);
    answer(ticket).await.unwrap();
    process.hub.fork(session.id(), new()).await.unwrap();
    process.hub.fork(&attache_core::ids::SessionId::new("ses_x"), new()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_process_left_is_settled_before_it_is_copied() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let id = session.id().clone();
    let _ticket = session.prompt(prompt("talk"));
    pause(200).await;
    process.kill();
    let copy = world.process().hub.fork(&id, new()).await.unwrap();
    let text = text_of(&world.answers(copy.id())[0]);
    assert!(text.matches("word").count() > 5, "{text:?}");
    world.check_rest(&id);
}
