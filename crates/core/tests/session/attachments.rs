//! Attachments that the provider rejects: described instead, told, kept so, and no session is bricked by one.

use std::sync::Arc;

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::ids::SessionId;
use attache_core::part::{Part, Role};
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxStream, Model, ModelError, ModelRequest, StepEvent, Usage};
use attache_core::prompt::Prompt;
use attache_core::prompt::media::{Block, Marks, rejected_name};
use attache_core::turn::{FailureKind, TurnEnd};
use futures_util::StreamExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::media::with_file;
use crate::world::*;

/// A provider that takes no attachment called `bad`, whatever else it is sent.
#[derive(Debug)]
struct Picky;

impl Model for Picky {
    fn available(&self) -> Arc<[ModelInfo]> {
        let info = ModelInfo::undescribed(ModelRef::new("picky", "model"));
        Arc::new([ModelInfo { images: true, ..info }])
    }

    fn stream(
        &self,
        request: ModelRequest,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let parts = request.passages.iter().flat_map(|passage| &passage.parts);
        let shown: Vec<_> = parts.filter(|part| is_shown(part)).collect();
        if shown.iter().any(|part| format!("{part:?}").contains("bad")) {
            let reason = format!("could not process image {}", "x".repeat(300));
            return futures_util::stream::iter([Err(ModelError::AttachmentRejected(reason))]).boxed();
        }
        let id = "t".into();
        let said = [
            Ok(StepEvent::Chunk(Chunk::TextStart { id, rest: attache_core::chunk::Rest::none() })),
            Ok(StepEvent::Chunk(Chunk::text_delta(&"t".into(), format!("I see {}", shown.len())))),
            Ok(StepEvent::End { reason: FinishReason::Stop, usage: Usage::default() }),
        ];
        futures_util::stream::iter(said).boxed()
    }
}

fn is_shown(part: &Part) -> bool {
    let attached = matches!(part, Part::File { .. })
        || matches!(part, Part::Data { name, data, .. } if name == "file-ref" && data.get("mime").is_some());
    attached && rejected_name(part).is_none()
}

fn named(text: &str, file: &str) -> Prompt {
    let mut prompt = with_file(text, Some(Block::Image));
    if let Some(Part::File { filename, .. }) = prompt.parts.last_mut() {
        *filename = Some(file.into());
    }
    prompt
}

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

fn last_answer(world: &World, session: &SessionId) -> String {
    world.answers(session).last().map(|parts| text_of(parts)).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_rejected_image_is_described_told_and_stays_so_after_a_restart() {
    let world = World::with_model(Arc::new(Picky));
    let (process, session) = world.session().await;
    assert_eq!(end_of(session.prompt(named("look", "good.png"))).await, finished());
    assert_eq!(end_of(session.prompt(named("and here", "bad.png"))).await, finished());
    assert_eq!(last_answer(&world, session.id()), "I see 1", "what was taken before is still shown");
    assert_eq!(world.model.requests().len(), 3, "tried again once and at once");
    let stored = world.messages(session.id(), Role::User);
    let Part::File { provider_metadata, .. } = &stored[1][1] else { panic!("{stored:?}") };
    let marks = Marks::of(provider_metadata.as_ref());
    assert_eq!(marks.rejected.map(str::len), Some(200));
    assert_eq!((marks.block, marks.uri), (Some(Block::Image), Some("file:///p/a.png")));
    assert_eq!(rejected_name(&stored[0][1]), None);
    let notices: Vec<_> = notices(&world, session.id());
    assert_eq!(notices.len(), 1);
    assert!(notices[0].starts_with("bad.png: could not process image"), "{notices:?}");
    assert_eq!(say(&session, "again").await, finished());
    assert_eq!(world.model.requests().len(), 4, "the next turn is not rejected again");
    let id = session.id().clone();
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "after a restart").await, finished());
    assert_eq!(world.model.requests().len(), 5);
    assert_eq!(last_answer(&world, &id), "I see 1");
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn when_nothing_new_is_to_blame_all_attachments_are_described() {
    let world = World::with_model(Arc::new(Picky));
    let (_process, session) = world.session().await;
    assert_eq!(end_of(session.prompt(named("look", "good.png"))).await, finished());
    // What came before an answer is taken no longer.
    rename_stored(&world, "good.png", "bad.png");
    let id = session.id().clone();
    session.close().await.unwrap();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "and?").await, finished());
    assert_eq!(last_answer(&world, &id), "I see 0");
    assert_eq!(end_of(session.prompt(named("look", "bad.png"))).await, finished());
    assert_eq!(end_of(session.prompt(named("look", "good.png"))).await, finished());
    assert_eq!(last_answer(&world, &id), "I see 1");
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn a_link_that_the_provider_can_not_fetch_is_only_named() {
    let world = World::with_model(Arc::new(Picky));
    let (_process, session) = world.session().await;
    let data = json!({ "name": "bad", "uri": "https://example.org/bad.png", "mime": "image/png" });
    let mut linked = prompt("look");
    linked.parts.push(Part::Data { name: "file-ref".into(), id: None, data });
    assert_eq!(end_of(session.prompt(linked)).await, finished());
    let stored = world.messages(session.id(), Role::User);
    assert_eq!(rejected_name(&stored[0][1]), Some("https://example.org/bad.png"));
}

#[tokio::test(start_paused = true)]
async fn what_no_attachment_explains_is_an_error_and_never_a_loop() {
    let world = World::new("model vision images=true\non *\n error attachment \"image is broken\"");
    let (_process, session) = world.session().await;
    session.set_model(ModelRef::new("script", "vision")).await.unwrap();
    let end = say(&session, "no attachment at all").await;
    let TurnEnd::Failed { kind: FailureKind::Model, message, .. } = end else { panic!("{end:?}") };
    assert_eq!(message, "an attachment was rejected: image is broken");
    assert_eq!(world.model.requests().len(), 1);
    assert!(matches!(end_of(session.prompt(named("one", "a"))).await, TurnEnd::Failed { .. }));
    assert_eq!(world.model.requests().len(), 3, "once with it, once without");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn the_same_message_again_is_still_the_same_message() {
    let world = World::with_model(Arc::new(Picky));
    let (_process, session) = world.session().await;
    let prompt =
        || Prompt { message_id: Some(attache_core::ids::MessageId::new("m1")), ..named("look", "bad.png") };
    assert_eq!(end_of(session.prompt(prompt())).await, finished());
    assert_eq!(end_of(session.prompt(prompt())).await, finished());
    assert_eq!(world.prompts(session.id()), ["look"]);
}

fn notices(world: &World, session: &SessionId) -> Vec<String> {
    let disk = world.disk.lock().unwrap();
    let chunks = disk.archive[session].iter().flat_map(|segment| decode(&segment.chunks));
    let described = |chunk| match chunk {
        Chunk::Data { name, data, .. } if name == "notice" => data["description"].as_str().map(str::to_owned),
        _ => None,
    };
    chunks.filter_map(described).collect()
}

fn rename_stored(world: &World, from: &str, to: &str) {
    for row in world.disk.lock().unwrap().parts.values_mut() {
        row.data_json = row.data_json.replace(from, to);
    }
}
