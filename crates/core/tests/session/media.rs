//! Images and audio in prompts: what the chosen model can't take is refused before anything is stored.

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::events::RunState;
use attache_core::hub::{AttachFrom, HubError};
use attache_core::ids::MessageId;
use attache_core::part::Part;
use attache_core::ports::store::ModelRef;
use attache_core::prompt::Prompt;
use attache_core::prompt::media::{Block, Marks};
use attache_core::turn::TurnEnd;

use crate::world::*;

const SCRIPT: &str = "model one images=true\nmodel two images=true audio=true\nmodel three images=true\n\
     model four images=true\non \"slow\"\n text \"x\"\n delay 1s\non \"ask\"\n call touch {\"path\":\"a\"}\non *\n text \"x\"";

/// A prompt with an attachment: a block of its own, or an embedded resource.
pub(crate) fn with_file(text: &str, block: Option<Block>) -> Prompt {
    let marks = Marks { block, uri: Some("file:///p/a.png"), ..Marks::default() };
    let mut prompt = prompt(text);
    prompt.parts.push(Part::File {
        media_type: "image/png".into(),
        url: "data:image/png;base64,iVBORw0KGgo=".into(),
        filename: Some("a.png".into()),
        provider_metadata: marks.metadata(),
    });
    prompt
}

fn refusal(result: Result<attache_core::hub::TurnOutcome, HubError>) -> String {
    match result {
        Err(HubError::Invalid(reason)) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_is_refused_before_anything_is_stored_with_what_to_do() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let image = refusal(answer(session.prompt(with_file("look", Some(Block::Image)))).await);
    assert_eq!(
        image,
        "prompt[1]: script/default does not take images; choose a model that does (script/one, script/two, \
         script/three) or leave it out"
    );
    let audio = refusal(answer(session.prompt(with_file("listen", Some(Block::Audio)))).await);
    assert_eq!(
        audio,
        "prompt[1]: script/default does not take audio; choose a model that does (script/two) or leave it out"
    );
    assert!(world.disk.lock().unwrap().messages.is_empty());
    assert!(world.model.requests().is_empty());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn without_any_model_that_could_the_advice_is_to_leave_it_out() {
    let world = World::new("on *\n text \"x\"");
    let (_process, session) = world.session().await;
    let reason = refusal(answer(session.prompt(with_file("look", Some(Block::Image)))).await);
    assert_eq!(
        reason,
        "prompt[1]: script/default does not take images; no configured model does, so leave it out"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_model_takes_and_what_is_only_embedded_passes() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let embedded = session.prompt(with_file("read", None));
    assert_eq!(end_of(embedded).await, TurnEnd::Finished(FinishReason::Stop));
    session.set_model(ModelRef::new("script", "one")).await.unwrap();
    let image = session.prompt(with_file("look", Some(Block::Image)));
    assert_eq!(end_of(image).await, TurnEnd::Finished(FinishReason::Stop));
    refusal(answer(session.prompt(with_file("listen", Some(Block::Audio)))).await);
}

#[tokio::test(start_paused = true)]
async fn a_refused_prompt_leaves_an_open_question_open() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let asked = session.prompt(prompt("ask"));
    until(&session, |state| *state == RunState::WaitingOnApproval).await;
    refusal(answer(session.prompt(with_file("look", Some(Block::Image)))).await);
    assert_eq!(session.status().await.unwrap().state, RunState::WaitingOnApproval);
    session.cancel();
    assert_eq!(end_of(asked).await, TurnEnd::Aborted);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_image_is_checked_again_when_it_fires() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    session.set_model(ModelRef::new("script", "one")).await.unwrap();
    let slow = session.prompt(prompt("slow"));
    let image = session.prompt(with_file("look", Some(Block::Image)));
    let after = session.prompt(prompt("after"));
    session.set_model(ModelRef::new("script", "default")).await.unwrap();
    assert_eq!(end_of(slow).await, TurnEnd::Finished(FinishReason::Stop));
    assert!(refusal(answer(image).await).contains("does not take images"));
    assert_eq!(end_of(after).await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(world.prompts(session.id()), ["slow", "after"]);
    assert_eq!(world.model.requests().len(), 2);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_a_waiting_message_is_held_to_the_same() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let slow = session.prompt(prompt("slow"));
    let waiting = session.prompt(prompt_with_id("look", "m1"));
    let edited = session.edit_queued(MessageId::new("m1"), with_file("look", Some(Block::Image))).await;
    assert!(matches!(edited, Err(HubError::Invalid(reason)) if reason.contains("does not take images")));
    end_of(slow).await;
    end_of(waiting).await;
    assert_eq!(world.prompts(session.id()), ["slow", "look"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_image_that_nobody_waits_for_is_told_to_everybody() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    session.set_model(ModelRef::new("script", "one")).await.unwrap();
    let slow = session.prompt(prompt("slow"));
    let image = session.prompt(with_file("look", Some(Block::Image)));
    session.set_model(ModelRef::new("script", "default")).await.unwrap();
    let id = session.id().clone();
    process.kill();
    drop((slow, image));
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    let attachment = session.attach(None, AttachFrom::LiveRun).await.unwrap();
    let (shown, _reader) = read(attachment);
    pause(50).await;
    assert!(session.queued().await.unwrap().is_empty());
    let stored = world.disk.lock().unwrap().archive[&id]
        .iter()
        .flat_map(|segment| decode(&segment.chunks))
        .any(is_notice);
    assert!(stored, "{shown:?}");
    assert_eq!(world.model.requests().len(), 1);
    world.check_rest(&id);
}

fn is_notice(chunk: Chunk) -> bool {
    matches!(chunk, Chunk::Data { name, data, .. } if name == "notice" && data["title"] == "A waiting message could not be sent")
}
