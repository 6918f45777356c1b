//! Context for one turn: in every request of that turn and nowhere else, cut when the model has no room for it.

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::events::RunState;
use attache_core::ids::{MessageId, SessionId};
use attache_core::ports::client::Answer;
use attache_core::prompt::Prompt;
use attache_core::turn::TurnEnd;

use crate::world::*;

const SECRET: &str = "cursor at line 7";

fn with_context(text: &str) -> Prompt {
    Prompt { runtime_context: vec![(Some("editor".into()), SECRET.into())], ..prompt(text) }
}

/// The contexts of all requests, joined per request.
fn contexts(world: &World) -> Vec<String> {
    let joined = |items: &[(Option<String>, String)]| items.iter().map(|(_, text)| text.as_str()).collect();
    world.model.requests().iter().map(|request| joined(&request.runtime_context)).collect()
}

fn notices(world: &World, session: &SessionId) -> Vec<String> {
    let disk = world.disk.lock().unwrap();
    let chunks = disk.archive[session].iter().flat_map(|segment| decode(&segment.chunks));
    let notice = |chunk| match chunk {
        Chunk::Data { name, data, .. } if name == "notice" => data["description"].as_str().map(str::to_owned),
        _ => None,
    };
    chunks.filter_map(notice).collect()
}

#[tokio::test(start_paused = true)]
async fn every_request_of_the_turn_has_it_and_no_other() {
    let script = "on \"go\"\n error transient \"busy\" times=1\n call look {\"path\":\"a\"}\n ---\n \
                  call touch {\"path\":\"a\"}\n ---\n text \"x\"\non *\n text \"y\"";
    let world = World::new(script);
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
    assert_eq!(end_of(session.prompt(with_context("go"))).await, TurnEnd::Finished(FinishReason::Stop));
    say(&session, "next").await;
    // A try that failed, the try after it, the step after a call, the step after a question; then another turn.
    assert_eq!(contexts(&world), [SECRET, SECRET, SECRET, SECRET, ""]);
    assert_eq!(world.model.requests()[0].runtime_context[0].0.as_deref(), Some("editor"));
}

#[tokio::test(start_paused = true)]
async fn it_is_stored_nowhere() {
    let world = World::new("on *\n call look {\"path\":\"a\"}\n ---\n text \"x\"");
    let (_process, session) = world.session().await;
    let waiting = session.prompt(with_context("first"));
    let behind = session.prompt(with_context("second"));
    end_of(waiting).await;
    end_of(behind).await;
    let disk = world.disk.lock().unwrap();
    let everything = format!("{:?}{:?}{:?}{:?}", disk.sessions, disk.messages, disk.parts, disk.archive);
    assert!(everything.contains("second") && !everything.contains(SECRET));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_prompt_keeps_it_in_memory_only() {
    let world = World::new("on \"slow\"\n delay 1s\n text \"x\"\non *\n text \"y\"");
    let (process, session) = world.session().await;
    let slow = session.prompt(prompt("slow"));
    let waiting = session.prompt(with_context("waiting"));
    end_of(slow).await;
    end_of(waiting).await;
    assert_eq!(contexts(&world), ["", SECRET]);
    let slow = session.prompt(prompt("slow"));
    let waiting = session.prompt(with_context("waiting again"));
    let id = session.id().clone();
    until_stored(&world, |disk| format!("{:?}", disk.parts).contains("waiting again")).await;
    process.kill();
    drop((slow, waiting));
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    until(&session, |state| *state == RunState::Idle).await;
    until_stored(&world, |_| world.model.requests().len() == 4).await;
    assert_eq!(contexts(&world)[3], "", "it died with its process");
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_a_waiting_prompt_may_bring_another() {
    let world = World::new("on \"slow\"\n delay 1s\n text \"x\"\non *\n text \"y\"");
    let (_process, session) = world.session().await;
    let slow = session.prompt(prompt("slow"));
    let waiting =
        session.prompt(Prompt { message_id: Some(MessageId::new("m1")), ..with_context("waiting") });
    session.edit_queued(MessageId::new("m1"), prompt("kept")).await.unwrap();
    let other = Prompt { runtime_context: vec![(None, "line 8".into())], ..prompt("replaced") };
    let behind = session.prompt(Prompt { message_id: Some(MessageId::new("m2")), ..with_context("behind") });
    session.edit_queued(MessageId::new("m2"), other).await.unwrap();
    end_of(slow).await;
    end_of(waiting).await;
    end_of(behind).await;
    assert_eq!(contexts(&world), ["", SECRET, "line 8"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_model_has_no_room_for_is_cut_and_told() {
    let world = World::new("model small context=3000 max_output=500\non *\n text \"x\"");
    let (_process, session) = world.session().await;
    session.set_model(attache_core::ports::store::ModelRef::new("script", "small")).await.unwrap();
    let long = "é".repeat(20_000);
    let items =
        vec![(None, "short".to_owned()), (Some("long".to_owned()), long.clone()), (None, "never".to_owned())];
    let prompted = session.prompt(Prompt { runtime_context: items, ..prompt("go") });
    assert_eq!(end_of(prompted).await, TurnEnd::Finished(FinishReason::Stop));
    let sent = contexts(&world).remove(0);
    // The model is told as well.
    let (sent, note) = sent.split_once("The context of this turn did not fit").unwrap();
    assert!(note.contains(&format!("{} of its 40010 bytes", sent.len())), "{note}");
    assert!(
        sent.starts_with("shorté") && sent.len() < 3_000 * 4 && !sent.contains("never"),
        "{}",
        sent.len()
    );
    assert_eq!(notices(&world, session.id())[0], format!("{} of 40010 bytes are sent", sent.len()));
}

#[tokio::test(start_paused = true)]
async fn it_gives_way_before_the_turn_fails() {
    let world = World::new("on *\n error overflow \"too long\" times=1\n text \"x\"");
    let (_process, session) = world.session().await;
    assert_eq!(end_of(session.prompt(with_context("go"))).await, TurnEnd::Finished(FinishReason::Stop));
    let note = "The context of this turn did not fit: 0 of its 16 bytes are shown.";
    assert_eq!(contexts(&world), [SECRET, note]);
    assert_eq!(notices(&world, session.id()), ["0 of 16 bytes are sent"]);
    world.check_rest(session.id());
}
