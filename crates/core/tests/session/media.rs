//! Images, audio and other files in prompts: what the chosen model can't take is refused before anything is
//! stored, what is too large for a row is kept beside it, what providers would not take is converted once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::events::RunState;
use attache_core::hub::{AttachFrom, HubError, NewSession, SessionHandle};
use attache_core::ids::MessageId;
use attache_core::part::{Part, Role};
use attache_core::ports::store::{Blobs, ModelRef};
use attache_core::ports::{BoxFuture, FittedPicture, Pictures};
use attache_core::prompt::Prompt;
use attache_core::prompt::media::{Block, Marks};
use attache_core::turn::TurnEnd;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::world::*;

const SCRIPT: &str = "model one images=true context=9000000\nmodel two images=true audio=true\nmodel three images=true\n\
     model four images=true\non \"slow\"\n text \"x\"\n delay 1s\non \"ask\"\n call touch {\"path\":\"a\"}\non *\n text \"x\"";

const PNG: &str = "iVBORw0KGgo=";
const WAV: &str = "UklGRgAAAABXQVZF";

/// A prompt with an attachment: a block of its own, or an embedded resource.
pub(crate) fn with_file(text: &str, block: Option<Block>) -> Prompt {
    match block {
        Some(Block::Audio) => with(text, block, "audio/wav", WAV),
        Some(Block::Image) | None => with(text, block, "image/png", PNG),
    }
}

fn with(text: &str, block: Option<Block>, mime: &str, base64: &str) -> Prompt {
    let marks = Marks { block, uri: Some("file:///p/a.png"), ..Marks::default() };
    let mut prompt = prompt(text);
    prompt.parts.push(Part::File {
        media_type: mime.into(),
        url: format!("data:{mime};base64,{base64}"),
        filename: Some("a.png".into()),
        provider_metadata: marks.metadata(),
    });
    prompt
}

/// The file of the last prompt, as it is stored.
fn stored_file(world: &World, session: &SessionHandle) -> (String, String, Option<Value>) {
    let messages = world.messages(session.id(), Role::User);
    match messages.last().unwrap().last().unwrap() {
        Part::File { media_type, url, provider_metadata, .. } => {
            (media_type.clone(), url.clone(), provider_metadata.clone())
        }
        other => panic!("no file: {other:?}"),
    }
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
async fn what_the_model_takes_passes_however_it_was_sent_and_nothing_is_silently_described() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let embedded = refusal(answer(session.prompt(with_file("read", None))).await);
    assert!(embedded.starts_with("prompt[1]: script/default does not take images; "), "{embedded}");
    let pdf = refusal(answer(session.prompt(with("read", None, "application/pdf", "JVBERi0xLjc="))).await);
    assert!(pdf.starts_with("prompt[1]: script/default does not take PDF files; "), "{pdf}");
    session.set_model(ModelRef::new("script", "one")).await.unwrap();
    for block in [None, Some(Block::Image)] {
        let image = session.prompt(with_file("look", block));
        assert_eq!(end_of(image).await, TurnEnd::Finished(FinishReason::Stop));
    }
    refusal(answer(session.prompt(with_file("listen", Some(Block::Audio)))).await);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_no_model_is_shown_is_described_and_the_user_is_told() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let zip = session.prompt(with("unpack", None, "application/zip", "UEsDBA=="));
    assert_eq!(end_of(zip).await, TurnEnd::Finished(FinishReason::Stop));
    pause(10).await;
    let told = world.disk.lock().unwrap().archive[session.id()]
        .iter()
        .flat_map(|segment| decode(&segment.chunks))
        .any(|chunk| {
            matches!(chunk, Chunk::Data { name, data, .. }
                if name == "notice" && data["description"] == "a.png (application/zip)")
        });
    assert!(told);
}

#[tokio::test(start_paused = true)]
async fn the_content_of_a_file_decides_what_it_is() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    session.set_model(ModelRef::new("script", "one")).await.unwrap();
    let jpeg = "/9j/4AAQSkZJRgABAQ==";
    for (block, declared) in
        [(Some(Block::Image), "image/png"), (None, "image/png"), (None, "application/octet-stream")]
    {
        end_of(session.prompt(with("look", block, declared, jpeg))).await;
        let (mime, url, _) = stored_file(&world, &session);
        assert_eq!((mime.as_str(), url), ("image/jpeg", format!("data:image/jpeg;base64,{jpeg}")));
    }
    for (block, data, said) in [
        (Block::Image, "JVBERi0xLjc=", "prompt[1]: is sent as an image, but it is application/pdf"),
        (
            Block::Image,
            "AAAA",
            "prompt[1]: is not an image type that attache supports; send PNG, JPEG, WebP, GIF or BMP",
        ),
    ] {
        let refused = refusal(answer(session.prompt(with("look", Some(block), "image/png", data))).await);
        assert_eq!(refused, said);
    }
}

/// Makes three bytes of everything.
#[derive(Debug, Default)]
struct Small(AtomicUsize);

impl Pictures for Small {
    fn fit(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<Option<FittedPicture>, String>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let fitted = match bytes.starts_with(b"BM") {
            true => Err("this image is a riddle; scale it down".to_owned()),
            false => Ok(Some(FittedPicture { mime: "image/jpeg", bytes: vec![1, 2, 3] })),
        };
        Box::pin(std::future::ready(fitted))
    }
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
async fn a_cancel_gets_through_while_a_picture_is_converted() {
    let world = World::new(SCRIPT).with_pictures(Arc::new(Endless));
    let (_process, session) = world.session().await;
    session.set_model(ModelRef::new("script", "one")).await.unwrap();
    let taken = session.prompt(with_file("look", Some(Block::Image)));
    let soon = std::time::Duration::from_millis(100);
    tokio::time::sleep(soon).await;
    let status = tokio::time::timeout(soon, session.status()).await.expect("the session answers");
    assert_eq!(status.unwrap().state, RunState::Idle);
    session.cancel();
    let end = tokio::time::timeout(soon, end_of(taken)).await.expect("cancelled at once");
    assert_eq!(end, TurnEnd::Aborted);
    assert!(world.prompts(session.id()).is_empty() && world.model.requests().is_empty());
    assert_eq!(say(&session, "go on").await, TurnEnd::Finished(FinishReason::Stop));
}

/// A turn that runs is not held up by what comes in behind it: its cancel gets through, and so does its end.
#[tokio::test(start_paused = true)]
async fn a_turn_ends_while_a_picture_is_converted() {
    let world = World::new(SCRIPT).with_pictures(Arc::new(Endless));
    let (_process, session) = world.session().await;
    session.set_model(ModelRef::new("script", "one")).await.unwrap();
    let running = session.prompt(prompt("slow"));
    let coming = session.prompt(with_file("look", Some(Block::Image)));
    let end = tokio::time::timeout(std::time::Duration::from_secs(3), end_of(running)).await;
    assert_eq!(end.expect("it is answered"), TurnEnd::Finished(FinishReason::Stop));
    session.cancel();
    assert_eq!(end_of(coming).await, TurnEnd::Aborted);
}

#[tokio::test(start_paused = true)]
async fn a_picture_is_fitted_once_and_kept_beside_what_was_sent() {
    let pictures = Arc::new(Small::default());
    let world = World::new(SCRIPT).with_pictures(pictures.clone());
    let (process, session) = world.session().await;
    session.set_model(ModelRef::new("script", "one")).await.unwrap();
    let mut image = with_file("look", Some(Block::Image));
    image.message_id = Some(MessageId::new("m1"));
    end_of(session.prompt(image.clone())).await;
    let (mime, url, metadata) = stored_file(&world, &session);
    assert_eq!((mime.as_str(), url), ("image/png", format!("data:image/png;base64,{PNG}")), "as it was sent");
    let fitted = Marks::of(metadata.as_ref()).fitted.unwrap();
    assert_eq!((fitted.mime, fitted.size), ("image/jpeg", 3));
    assert_eq!(process.store.get(fitted.digest).await.unwrap(), Some(vec![1, 2, 3]));
    say(&session, "and now?").await;
    assert_eq!(pictures.0.load(Ordering::SeqCst), 1, "not again with every request");
    // The same message again is the same message.
    end_of(session.prompt(image)).await;
    assert_eq!(world.prompts(session.id()), ["look", "and now?"]);
    // Two requests for two prompts.
    assert_eq!(world.model.requests().len(), 2);
    let bitmap = with("look", Some(Block::Image), "image/bmp", "Qk0AAAAAAAAAADYAAAAoAAAA");
    let refused = refusal(answer(session.prompt(bitmap)).await);
    assert_eq!(refused, "prompt[1]: this image is a riddle; scale it down");
}

#[tokio::test(start_paused = true)]
async fn a_large_embedded_text_leaves_its_row_and_is_told_again_whole() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let text = "a line of text\n".repeat(100_000);
    let mut prompt = prompt("read");
    let data = json!({ "uri": "file:///p/long.txt", "mime": "text/plain", "text": text });
    prompt.parts.push(Part::Data { name: "context".into(), id: None, data: data.clone() });
    end_of(session.prompt(prompt)).await;
    let rows = {
        let disk = world.disk.lock().unwrap();
        disk.parts.values().map(|row| row.data_json.len()).max().unwrap()
    };
    assert!(rows < 10_000, "{rows} bytes in a row");
    let request = world.model.requests().remove(0);
    let shelved = request.passages.last().unwrap().parts.last().unwrap().clone();
    let Part::Data { data: shelved, .. } = shelved else { panic!("{shelved:?}") };
    assert_eq!(shelved["size"], text.len());
    let digest = attache_core::prompt::shelf::shelved_text(&shelved).unwrap();
    assert_eq!(process.store.get(digest).await.unwrap(), Some(text.into_bytes()));
    // A load tells what was said.
    let mut replay = session.attach(None, AttachFrom::Beginning).await.unwrap().replay.unwrap();
    let mut told = Vec::new();
    while let Some(segment) = replay.next().await.unwrap() {
        told.extend(process.hub.brought_back(segment).await.chunks.clone());
    }
    let again = told.into_iter().find_map(|chunk| match chunk {
        Chunk::Data { name, data, .. } if name == "context" => Some(data),
        _ => None,
    });
    assert_eq!(again, Some(data));
    // A copy refers to it too.
    let new = NewSession { root: "/w".into(), place: Default::default() };
    let copy = process.hub.fork(session.id(), new).await.unwrap();
    process.hub.delete(session.id()).await.unwrap();
    assert!(process.store.get(digest).await.unwrap().is_some(), "{}", copy.id());
}

#[tokio::test(start_paused = true)]
async fn a_large_file_of_the_model_leaves_its_row() {
    let bytes = [b"\x89PNG\r\n\x1a\n".as_slice(), &[7; 2_000_000]].concat();
    let url = format!("data:image/png;base64,{}", STANDARD.encode(&bytes));
    let world = World::new(&format!("on *\n file image/png \"{url}\""));
    let (process, session) = world.session().await;
    say(&session, "draw").await;
    let answers = world.answers(session.id());
    let file = answers[0].iter().find_map(|part| match part {
        Part::File { url, .. } => Some(url.clone()),
        _ => None,
    });
    let digest = file.unwrap().strip_prefix("attache-blob:").unwrap().to_owned();
    assert_eq!(process.store.get(&digest).await.unwrap(), Some(bytes));
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
