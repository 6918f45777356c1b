//! Pictures that calls give: kept beside the rows, shown to models that take them, described once a provider
//! would not.

use std::sync::Arc;
use std::time::Duration;

use attache_core::chunk::FinishReason;
use attache_core::hub::{NewSession, SessionHandle};
use attache_core::limits::FILE_TOKENS;
use attache_core::part::{Part, ToolPart, ToolState};
use attache_core::picture::Picture;
use attache_core::ports::store::ModelRef;
use attache_core::ports::tool::{Presentation, Shown};
use attache_core::ports::{BoxFuture, FittedPicture, Pictures};
use attache_core::prompt::digest;
use attache_core::turn::TurnEnd;
use serde_json::json;

use crate::world::*;

const SCRIPT: &str = "model seeing images=true\n\
     on \"look\"\n call show {\"path\":\"a.gif\"}\n ---\n text \"I see\"\n\
     on \"broken\"\n call show {\"path\":\"b.gif\"}\n ---\n error attachment \"could not process image\" times=1\n text \"I am told\"\n\
     on *\n text \"x\"";

async fn seeing(world: &World) -> (Process, SessionHandle) {
    let (process, session) = world.session().await;
    session.set_model(ModelRef::new("script", "seeing")).await.unwrap();
    (process, session)
}

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

/// The only call of the last answer, as it is stored.
fn call(world: &World, session: &SessionHandle) -> ToolPart {
    let answers = world.answers(session.id());
    let calls: Vec<_> = answers.last().unwrap().iter().filter_map(Part::tool).collect();
    match calls.as_slice() {
        [call] => (*call).clone(),
        other => panic!("not one call: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_picture_is_in_the_blob_store_and_in_no_row() {
    let world = World::new(SCRIPT);
    let (_process, session) = seeing(&world).await;
    assert_eq!(say(&session, "look").await, finished());
    let call = call(&world, &session);
    let id = digest(b"GIF89a");
    let path =
        format!("{}/a.gif", world.disk.lock().unwrap().sessions[session.id()].workspace_root.display());
    let url = format!("attache-blob:{id}");
    let output = json!({ "type": "image", "path": path, "mime": "image/gif", "size": 6, "url": url });
    assert_eq!(call.output, Some(output));
    assert_eq!(world.disk.lock().unwrap().blobs[&id].1, b"GIF89a");
    let shown: Presentation = serde_json::from_value(call.tool_metadata.unwrap()["attache"].clone()).unwrap();
    assert_eq!(shown.content, [Shown::Image { mime: "image/gif".into(), data: "R0lGODlh".into() }]);
    let requests = world.model.requests();
    assert_eq!(requests.last().unwrap().passages.size().files, 1, "{FILE_TOKENS} tokens, not its bytes");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_model_that_takes_no_images_is_not_offered_the_tool_and_told_so_if_it_calls_it() {
    let world = World::new(SCRIPT);
    let (_process, session) = seeing(&world).await;
    let offers = |world: &World| {
        let requests = world.model.requests();
        requests.last().unwrap().tools.iter().any(|tool| &*tool.id == "show")
    };
    say(&session, "hello").await;
    assert!(offers(&world));
    session.set_model(ModelRef::new("script", "default")).await.unwrap();
    assert_eq!(say(&session, "look").await, finished());
    assert!(!offers(&world));
    let call = call(&world, &session);
    assert_eq!(call.state, ToolState::OutputError);
    assert_eq!(call.error_text.as_deref(), Some("`show` shows images, and script/default does not take any"));
    assert!(world.runs.all().is_empty());
    assert!(world.disk.lock().unwrap().blobs.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_rejected_picture_is_marked_for_good_and_the_turn_goes_on() {
    let world = World::new(SCRIPT);
    let (process, session) = seeing(&world).await;
    assert_eq!(say(&session, "look").await, finished());
    assert_eq!(say(&session, "broken").await, finished());
    let marked = |parts: &[Part]| {
        let outputs = parts.iter().filter_map(Part::tool).filter_map(|tool| tool.output.as_ref());
        outputs
            .filter_map(Picture::of)
            .filter_map(|picture| picture.rejected.map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let stored: Vec<_> = world.answers(session.id()).iter().map(|parts| marked(parts)).collect();
    assert_eq!(stored, [vec![], vec!["could not process image".to_owned()]], "only what was new is to blame");
    let id = session.id().clone();
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "and now").await, finished());
    let last = world.model.requests().pop().unwrap();
    let sent: Vec<_> = last.passages.iter().flat_map(|passage| marked(&passage.parts)).collect();
    assert_eq!(sent, ["could not process image"]);
    assert_eq!(last.passages.size().files, 1);
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_the_session_keeps_the_picture_when_the_first_is_deleted() {
    let world = World::new(SCRIPT);
    let (process, session) = seeing(&world).await;
    say(&session, "look").await;
    let new = NewSession { root: "/w".into(), place: Default::default() };
    let copy = process.hub.fork(session.id(), new).await.unwrap();
    process.hub.delete(session.id()).await.unwrap();
    let disk = world.disk.lock().unwrap();
    let (owners, _) = &disk.blobs[&digest(b"GIF89a")];
    assert!(owners.contains(copy.id()) && owners.len() == 1, "{owners:?}");
}

/// Never done.
#[derive(Debug)]
struct Endless;

impl Pictures for Endless {
    fn fit(&self, _bytes: Vec<u8>) -> BoxFuture<'static, Result<Option<FittedPicture>, String>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_gets_through_while_the_picture_of_a_call_is_converted() {
    let world = World::new(SCRIPT).with_pictures(Arc::new(Endless));
    let (_process, session) = seeing(&world).await;
    let turn = session.prompt(prompt("look"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    session.cancel();
    let end = tokio::time::timeout(Duration::from_millis(500), end_of(turn)).await;
    assert_eq!(end.expect("cancelled at once"), TurnEnd::Aborted);
    assert_eq!(call(&world, &session).state, ToolState::OutputError);
}
