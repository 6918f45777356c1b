//! Mode, model, titles and notices: stored, told to everybody, in force from the next turn on.

use attache_core::chunk::Chunk;
use attache_core::hub::{AttachFrom, HubError};
use attache_core::ports::store::ModelRef;

use crate::world::*;

const SCRIPT: &str =
    "model big context=9000 max_output=100\non *\n call touch {\"path\":\"a\"}\n ---\n text \"fine\"";

fn model(name: &str) -> ModelRef {
    ModelRef { provider_id: "script".into(), model_id: name.into(), variant: None }
}

#[tokio::test(start_paused = true)]
async fn a_mode_holds_from_the_next_turn_on_and_after_a_restart() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let (shown, _reader) = read(session.attach(None, AttachFrom::Now).await.unwrap());
    assert_eq!(session.set_mode("plan".into()).await.unwrap().agent, "plan");
    assert!(matches!(session.set_mode("nothing".into()).await, Err(HubError::Invalid(_))));
    say(&session, "go").await;
    assert!(world.runs.all().is_empty());
    let tools = &tools_of(&world.answers(session.id())[0]);
    assert!(tools[0].error_text.as_ref().unwrap().contains("plan"));
    assert!(world.model.requests()[0].tools.iter().all(|spec| spec.id != "touch"));
    pause(10).await;
    let told = shown.lock().unwrap().iter().filter(|(_, _, chunk)| is_mode(chunk)).count();
    assert_eq!(told, 1);
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    let attachment = session.attach(None, AttachFrom::Beginning).await.unwrap();
    assert_eq!(attachment.chosen.agent, "plan");
    world.check_rest(&id);
}

fn is_mode(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Data { name, .. } if name == "mode")
}

#[tokio::test(start_paused = true)]
async fn a_model_is_used_by_the_next_turn() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    assert_eq!(session.set_model(model("big")).await.unwrap().model, model("big"));
    assert!(session.set_model(model("unknown")).await.is_err());
    session.set_mode("plan".into()).await.unwrap();
    say(&session, "go").await;
    assert_eq!(*world.model.requests()[0].model(), model("big"));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_could_not_be_stored_is_not_in_force() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    process.store.fail_commit(0);
    assert!(session.set_mode("plan".into()).await.is_err());
    process.store.fail_commit(u64::MAX);
    let attachment = session.attach(None, AttachFrom::Beginning).await.unwrap();
    assert_eq!(attachment.chosen.agent, "build");
    assert_eq!(session.set_mode("plan".into()).await.unwrap().agent, "plan");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_session_is_gone_for_everybody() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let ticket = session.prompt(prompt("go"));
    pause(50).await;
    process.hub.delete(session.id()).await.unwrap();
    drop(answer(ticket).await);
    process.hub.delete(session.id()).await.unwrap();
    assert_eq!(
        process.hub.open(session.id()).await.unwrap_err(),
        HubError::UnknownSession(session.id().clone())
    );
    assert!(world.disk.lock().unwrap().messages.is_empty());
}
