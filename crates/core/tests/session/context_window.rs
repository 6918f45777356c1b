//! A conversation that no longer fits its model: compaction is asked before the request, or once the provider
//! refused it; its boundary holds after a restart and in a fork; without it the error says what to do.

use std::sync::{Arc, Mutex};

use attache_core::chunk::{Chunk, FinishReason, Rest};
use attache_core::hub::{NewSession, SessionHandle};
use attache_core::part::{Part, Passage};
use attache_core::ports::compaction::{Compacted, Compaction, CompactionRequest};
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxFuture, BoxStream, Model, ModelError, ModelRequest, StepEvent, Usage};
use attache_core::turn::{FailureKind, TurnEnd};
use attache_testkit::fakes::model::SeededModel;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::world::*;

/// Keeps the prompt of the turn and one line for everything before, or does what it is told instead.
#[derive(Debug, Default)]
struct Shortening {
    asked: Mutex<Vec<CompactionRequest>>,
    instead: Option<Result<Option<Compacted>, ModelError>>,
    never_ends: bool,
}

impl Compaction for Shortening {
    fn compact(
        &self,
        request: CompactionRequest,
        _cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Option<Compacted>, ModelError>> {
        self.asked.lock().unwrap().push(request.clone());
        if self.never_ends {
            return Box::pin(std::future::pending());
        }
        let made = self.instead.clone().unwrap_or_else(|| {
            let summary = "what was said before".to_owned();
            Ok(Some(Compacted {
                summary,
                tail_start: Some(request.prompt),
                tail_call: None,
                summary_tokens: Some(4),
                used: Usage::default(),
                model: None,
            }))
        });
        Box::pin(std::future::ready(made))
    }
}

fn texts(passages: &[Arc<Passage>]) -> Vec<String> {
    let text = |passage: &Arc<Passage>| match text_of(&passage.parts) {
        summary if summary.starts_with("<conversation_summary>") => {
            summary.lines().nth(3).unwrap_or_default().to_owned()
        }
        text => text,
    };
    passages.iter().map(text).collect()
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
    assert_eq!((asked[0].reason.as_str(), texts(&asked[0].conversation).len()), ("3 passages", 3));
    let answer = world.answers(session.id()).remove(1);
    assert!(
        answer.iter().any(|part| matches!(part, Part::Data { name, .. } if name == "compaction")),
        "{answer:?}"
    );
    assert_eq!(text_of(&answer), "fits");
    assert_eq!(say(&session, "three").await, TurnEnd::Finished(FinishReason::Stop), "each turn may ask");
    let asked = shortening.asked.lock().unwrap().pop().unwrap();
    assert_eq!(
        texts(&asked.conversation),
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
    let TurnEnd::Failed { kind: FailureKind::Model, message, .. } = end else { panic!("{end:?}") };
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

const FILLING: &str = "model small context=1000 max_output=100\non *\n text \"x\"\n usage input=850 output=1";

async fn on_small_model(world: &World) -> (Process, SessionHandle) {
    let (process, session) = world.session().await;
    session.set_model(ModelRef::new("script", "small")).await.unwrap();
    (process, session)
}

fn last_request(world: &World) -> Vec<String> {
    texts(&world.model.requests().last().unwrap().passages)
}

#[tokio::test(start_paused = true)]
async fn room_is_made_before_a_request_that_would_not_fit() {
    let shortening = Arc::new(Shortening::default());
    let world = World::new(FILLING).with_compaction(shortening.clone());
    let (_process, session) = on_small_model(&world).await;
    assert_eq!(say(&session, "one").await, TurnEnd::Finished(FinishReason::Stop));
    assert!(shortening.asked.lock().unwrap().is_empty(), "851 of 1000 tokens leave the reserve of 100");
    assert_eq!(say(&session, &"word ".repeat(60)).await, TurnEnd::Finished(FinishReason::Stop));
    let asked = shortening.asked.lock().unwrap()[0].clone();
    assert_eq!((asked.expected_tokens.unwrap() > 900, asked.limit_tokens), (true, 900));
    let sent = last_request(&world);
    assert_eq!((sent.len(), sent[0].as_str()), (2, "what was said before"), "{sent:?}");
    assert_eq!(world.model.requests().len(), 2, "the provider refused nothing");
    let noticed = world.answers(session.id()).concat();
    let noticed = noticed.iter().any(|part| matches!(part, Part::Data { name, .. } if name == "notice"));
    assert!(!noticed, "nobody has to do anything");
    world.check_rest(session.id());
}

/// However long an answer may be: more than 20,000 tokens are not kept free for it.
#[tokio::test(start_paused = true)]
async fn the_reserve_for_an_answer_is_bounded() {
    for (used, is_asked) in [(79_000, false), (79_990, true)] {
        let shortening = Arc::new(Shortening::default());
        let script = format!(
            "model small context=100000 max_output=50000\non *\n text \"x\"\n usage input={used} output=1"
        );
        let world = World::new(&script).with_compaction(shortening.clone());
        let (_process, session) = on_small_model(&world).await;
        say(&session, "one").await;
        say(&session, &"word ".repeat(60)).await;
        let asked = shortening.asked.lock().unwrap();
        assert_eq!(asked.len(), usize::from(is_asked), "{used}");
        assert!(asked.iter().all(|request| request.limit_tokens == 80_000), "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_boundary_holds_after_a_restart_and_in_a_fork() {
    let shortening = Arc::new(Shortening::default());
    let world = World::new(FILLING).with_compaction(shortening.clone());
    let (process, session) = on_small_model(&world).await;
    for text in ["one", &"word ".repeat(60), "three"] {
        assert_eq!(say(&session, text).await, TurnEnd::Finished(FinishReason::Stop));
    }
    let live = last_request(&world);
    assert_eq!(live[0], "what was said before");
    let id = session.id().clone();
    drop(session);
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "four").await, TurnEnd::Finished(FinishReason::Stop));
    let stored = last_request(&world);
    assert_eq!(stored[..live.len()], live, "live and load share one function");
    assert_eq!(world.prompts(&id).len(), 4, "the rows keep everything");
    let new = NewSession { root: "/w".into(), place: Default::default() };
    let fork = process.hub.fork(&id, new).await.unwrap();
    assert_eq!(say(&fork, "five").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(last_request(&world)[..stored.len()], stored);
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn a_tail_and_unfinished_marks_are_read_as_they_were_left() {
    let nothing = Shortening { instead: Some(Ok(None)), ..Shortening::default() };
    let world = World::new(FILLING).with_compaction(Arc::new(nothing));
    let (process, session) = on_small_model(&world).await;
    for text in ["one", &"word ".repeat(60)] {
        assert_eq!(say(&session, text).await, TurnEnd::Finished(FinishReason::Stop), "it fits all the same");
    }
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "three").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(last_request(&world).len(), 5, "a compaction that failed is no boundary");
}

#[tokio::test(start_paused = true)]
async fn a_smaller_model_gets_the_conversation_after_room_was_made() {
    let script = "model large context=9000 max_output=100\nmodel small context=1000 max_output=100\n\
                  on *\n text \"x\"\n usage input=2000 output=1";
    let shortening = Arc::new(Shortening::default());
    let world = World::new(script).with_compaction(shortening.clone());
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "one").await, TurnEnd::Finished(FinishReason::Stop));
    session.set_model(ModelRef::new("script", "small")).await.unwrap();
    assert_eq!(say(&session, "two").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(shortening.asked.lock().unwrap().len(), 1);
    assert_eq!(last_request(&world), ["what was said before", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_switch_to_a_model_that_is_too_small_even_for_a_summary_fails_with_clear_words() {
    let script = "model large context=9000 max_output=100\nmodel small context=1000 max_output=100\n\
                  on *\n text \"x\"\n usage input=2000 output=1";
    let long = Compacted {
        summary: "x".repeat(9_000),
        tail_start: None,
        tail_call: None,
        summary_tokens: None,
        used: Usage::default(),
        model: None,
    };
    let shortening = Shortening { instead: Some(Ok(Some(long))), ..Shortening::default() };
    let world = World::new(script).with_compaction(Arc::new(shortening));
    let (_process, session) = world.session().await;
    session.set_model(ModelRef::new("script", "large")).await.unwrap();
    assert_eq!(say(&session, "one").await, TurnEnd::Finished(FinishReason::Stop));
    session.set_model(ModelRef::new("script", "small")).await.unwrap();
    let end = say(&session, "two").await;
    let TurnEnd::Failed { kind: FailureKind::Model, message, .. } = end else { panic!("{end:?}") };
    assert!(message.starts_with("the conversation no longer fits the model: about "), "{message}");
    assert!(
        message.contains(
            "of the 1000 that script/small takes; start a new session or choose a model with more room"
        ),
        "{message}"
    );
    assert!(message.contains("script/large"), "{message}");
    assert_eq!(world.model.requests().len(), 1, "what can't fit is not sent");
    world.check_rest(session.id());
}
