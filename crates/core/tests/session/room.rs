//! A conversation that no longer fits its model: compaction is asked once, and without it the error says what to do.

use std::sync::{Arc, Mutex};

use attache_core::chunk::{Chunk, FinishReason, Rest};
use attache_core::part::{Part, Passage, Role};
use attache_core::ports::compaction::{Compaction, Crowded, Room};
use attache_core::ports::model::ModelInfo;
use attache_core::ports::{BoxFuture, BoxStream, Model, ModelError, ModelRequest, StepEvent, Usage};
use attache_core::turn::{FailureKind, TurnEnd};
use attache_testkit::fakes::model::SeededModel;
use futures_util::StreamExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::*;

/// Keeps the prompt of the turn and one line for everything before, or does what it is told instead.
#[derive(Debug, Default)]
struct Shortening {
    asked: Mutex<Vec<Crowded>>,
    instead: Option<Result<Option<Room>, ModelError>>,
    never_ends: bool,
}

impl Compaction for Shortening {
    fn make_room(
        &self,
        crowded: Crowded,
        _cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Option<Room>, ModelError>> {
        self.asked.lock().unwrap().push(crowded.clone());
        if self.never_ends {
            return Box::pin(std::future::pending());
        }
        let made = self.instead.clone().unwrap_or_else(|| {
            let text =
                Part::Text { text: "what was said before".into(), state: None, provider_metadata: None };
            let summary = Passage::new(crowded.prompt.clone(), Role::User, vec![text]);
            let turn = crowded.passages.iter().skip_while(|passage| passage.message_id != crowded.prompt);
            let passages = std::iter::once(Arc::new(summary)).chain(turn.cloned()).collect();
            let told = vec![Chunk::data("compaction", json!({ "id": "c", "status": "completed" }))];
            Ok(Some(Room { passages, told }))
        });
        Box::pin(std::future::ready(made))
    }
}

fn texts(passages: &[Arc<Passage>]) -> Vec<String> {
    passages.iter().map(|passage| text_of(&passage.parts)).collect()
}

/// A model with room for two passages.
#[derive(Debug)]
struct Narrow;

impl Model for Narrow {
    fn available(&self) -> Arc<[ModelInfo]> {
        SeededModel::new(0).available()
    }

    fn stream(
        &self,
        request: ModelRequest,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        if request.passages.len() > 2 {
            let overflow = ModelError::Overflow(format!("{} passages", request.passages.len()));
            return futures_util::stream::iter([Err(overflow)]).boxed();
        }
        let said = [
            StepEvent::Chunk(Chunk::TextStart { id: "t".into(), rest: Rest::none() }),
            StepEvent::Chunk(Chunk::text_delta(&"t".into(), "fits")),
            StepEvent::End { reason: FinishReason::Stop, usage: Usage::default() },
        ];
        futures_util::stream::iter(said.map(Ok)).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn room_is_made_and_the_turn_goes_on_with_the_shorter_history() {
    let shortening = Arc::new(Shortening::default());
    let world = World::with_model(Arc::new(Narrow)).with_compaction(shortening.clone());
    let (_process, session) = world.session().await;
    say(&session, "one").await;
    assert!(shortening.asked.lock().unwrap().is_empty());
    assert_eq!(say(&session, "two").await, TurnEnd::Finished(FinishReason::Stop));
    let requests = world.model.requests();
    assert_eq!(texts(&requests[1].passages), ["one", "fits", "two"]);
    assert_eq!(texts(&requests[2].passages), ["what was said before", "two"]);
    let asked = shortening.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].reason.as_str(), texts(&asked[0].passages).len()), ("3 passages", 3));
    let answer = world.answers(session.id()).remove(1);
    assert!(
        answer.iter().any(|part| matches!(part, Part::Data { name, .. } if name == "compaction")),
        "{answer:?}"
    );
    assert_eq!(text_of(&answer), "fits");
    assert_eq!(say(&session, "three").await, TurnEnd::Finished(FinishReason::Stop), "each turn may ask");
    let asked = shortening.asked.lock().unwrap().pop().unwrap();
    assert_eq!(
        texts(&asked.passages),
        ["what was said before", "two", "fits", "three"],
        "and from what was kept"
    );
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn without_compaction_the_error_says_what_to_do() {
    let script =
        "model small context=1000\nmodel large context=900000\non *\n error overflow \"200001 tokens\"";
    let world = World::new(script);
    let (_process, session) = world.session().await;
    let end = say(&session, "go").await;
    let TurnEnd::Failed { kind: FailureKind::Model, message } = end else { panic!("{end:?}") };
    assert_eq!(
        message,
        "the conversation no longer fits the model: 200001 tokens; start a new session or choose a model with more \
         room (script/large)"
    );
    assert_eq!(world.model.requests().len(), 1);
    world.check_rest(session.id());
}

async fn failure(shortening: Shortening) -> (String, usize, usize) {
    let shortening = Arc::new(shortening);
    let world = World::new("on *\n error overflow \"too long\"").with_compaction(shortening.clone());
    let (_process, session) = world.session().await;
    let end = say(&session, "go").await;
    world.check_rest(session.id());
    let TurnEnd::Failed { message, .. } = end else { panic!("{end:?}") };
    let asked = shortening.asked.lock().unwrap().len();
    (message, asked, world.model.requests().len())
}

#[tokio::test(start_paused = true)]
async fn room_that_is_not_enough_ends_the_turn_and_never_loops() {
    let (message, asked, requests) = failure(Shortening::default()).await;
    assert_eq!(message, "the conversation no longer fits the model: too long; start a new session");
    assert_eq!((asked, requests), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn when_no_room_can_be_made_the_turn_ends() {
    let nothing = Shortening { instead: Some(Ok(None)), ..Shortening::default() };
    let (message, asked, requests) = failure(nothing).await;
    assert_eq!(message, "the conversation no longer fits the model: too long; start a new session");
    assert_eq!((asked, requests), (1, 1));
    let broken = Shortening {
        instead: Some(Err(ModelError::Permanent("no summary".into()))),
        ..Shortening::default()
    };
    let (message, ..) = failure(broken).await;
    assert!(message.contains("too long; making room failed: no summary"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn cancel_reaches_a_compaction_that_takes_long() {
    let shortening = Arc::new(Shortening { never_ends: true, ..Shortening::default() });
    let world = World::new("on *\n error overflow \"x\"").with_compaction(shortening.clone());
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("too much"));
    until_stored(&world, |_| !shortening.asked.lock().unwrap().is_empty()).await;
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    world.check_rest(session.id());
}
