//! A session in a small window goes on for as long as one likes: a model writes notes about what no longer
//! fits, and what it can't write is made without it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use attache_core::chunk::{Chunk, FinishReason, Rest};
use attache_core::compactor::Compactor;
use attache_core::estimate;
use attache_core::part::Part;
use attache_core::ports::model::{ModelInfo, Price};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxStream, Model, ModelError, ModelRequest, StepEvent, Usage};
use attache_core::turn::TurnEnd;
use attache_testkit::fakes::store::MemoryStore;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::world::*;

const WINDOW: u64 = 8_192;
const FACT: &str = "FACT: the port is 4711";

/// Answers at length; as a summariser it keeps the lines with facts and forgets the rest.
#[derive(Debug, Default)]
struct SmallWindow {
    /// What summarising comes to, instead of a note.
    fails_with: Option<ModelError>,
    notes: AtomicUsize,
    largest: Mutex<u64>,
    last_request: Mutex<String>,
}

impl SmallWindow {
    fn said(&self, request: &ModelRequest) -> Result<String, ModelError> {
        let text: String = request.passages.iter().map(|passage| text_of(&passage.parts) + "\n").collect();
        if text.ends_with("Write the note now.\n") {
            if let Some(error) = &self.fails_with {
                return Err(error.clone());
            }
            self.notes.fetch_add(1, Ordering::Relaxed);
            let fact = if text.contains(FACT) { FACT } else { "none" };
            return Ok(format!("## Goal\nwork\n## Facts from the user\n{fact}"));
        }
        *self.last_request.lock().unwrap() = text;
        Ok("a long answer ".repeat(60))
    }
}

impl Model for SmallWindow {
    fn available(&self) -> Arc<[ModelInfo]> {
        let price = Some(Price { input: 1.0, output: 1.0, cache_read: 1.0, cache_write: 1.0 });
        let info = ModelInfo::undescribed(ModelRef::new("script", "default"));
        Arc::new([ModelInfo { context: WINDOW, max_output: 1_000, price, ..info }])
    }

    fn stream(
        &self,
        request: ModelRequest,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let size = estimate::request_tokens(&request);
        let mut largest = self.largest.lock().unwrap();
        *largest = size.max(*largest);
        let text = match self.said(&request) {
            Ok(text) => text,
            Err(error) => return futures_util::stream::iter([Err(error)]).boxed(),
        };
        let usage = Usage { input: size, output: estimate::tokens(text.len() as u64), ..Usage::default() };
        let said = [
            StepEvent::Chunk(Chunk::TextStart { id: "t".into(), rest: Rest::none() }),
            StepEvent::Chunk(Chunk::text_delta(&"t".into(), &text)),
            StepEvent::End { reason: FinishReason::Stop, usage },
        ];
        futures_util::stream::iter(said.map(Ok)).boxed()
    }
}

fn world(model: &Arc<SmallWindow>) -> World {
    let world = World::with_model(model.clone());
    let blobs = Arc::new(MemoryStore::open(world.disk.clone(), 1_000, 1_000));
    let compactor = Compactor { model: model.clone(), blobs, small_model: None };
    world.with_compaction(Arc::new(compactor))
}

#[tokio::test(start_paused = true)]
async fn three_hundred_turns_in_a_small_window_and_a_fact_of_the_third_is_known() {
    let model = Arc::new(SmallWindow::default());
    let world = world(&model);
    let (mut process, mut session) = world.session().await;
    let id = session.id().clone();
    for turn in 1..=300 {
        let text = if turn == 3 { FACT.to_owned() } else { format!("prompt {turn}") };
        assert!(matches!(say(&session, &text).await, TurnEnd::Finished(_)), "turn {turn}");
        if turn % 100 == 0 {
            // What was summarised is so after a restart, too.
            process.kill();
            process = world.process();
            session = process.hub.open(&id).await.unwrap();
        }
    }
    let sent = model.last_request.lock().unwrap().clone();
    assert!(sent.contains(FACT) && sent.contains("prompt 300"), "{sent}");
    assert!(!sent.contains("prompt 100\n"), "old prompts are not sent any more");
    assert!(*model.largest.lock().unwrap() <= WINDOW, "{:?}", model.largest);
    let notes = model.notes.load(Ordering::Relaxed);
    assert!((10..=120).contains(&notes), "{notes} notes");
    assert_eq!(world.prompts(&id).len(), 300, "nothing is deleted");
}

#[tokio::test(start_paused = true)]
async fn a_note_is_paid_like_a_step() {
    let model = Arc::new(SmallWindow::default());
    let world = world(&model);
    let (_process, session) = world.session().await;
    let mut turns = 0;
    while model.notes.load(Ordering::Relaxed) == 0 {
        say(&session, "go on").await;
        turns += 1;
    }
    let answers = world.answers(session.id());
    let of_steps = |parts: &Vec<Part>| {
        parts.iter().find_map(|part| match part {
            Part::Data { name, data, .. } if name == "usage" => data["input"].as_u64(),
            _ => None,
        })
    };
    let steps: u64 = answers.iter().filter_map(of_steps).sum();
    let disk = world.disk.lock().unwrap();
    let spent = disk.sessions[session.id()].totals.prompt_tokens as u64;
    assert!(spent > steps, "{turns} turns: {spent} tokens of the session, {steps} of its steps");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_can_not_summarise_does_not_end_the_session() {
    for error in [
        ModelError::Permanent("no".into()),
        ModelError::Refused("no".into()),
        ModelError::Overflow("too long".into()),
        ModelError::Transient { message: "busy".into(), retry_after: None },
    ] {
        let model = Arc::new(SmallWindow { fails_with: Some(error.clone()), ..SmallWindow::default() });
        let world = world(&model);
        let (_process, session) = world.session().await;
        for turn in 1..=40 {
            let text = if turn == 1 { FACT.to_owned() } else { format!("prompt {turn}") };
            let end = say(&session, &text).await;
            assert!(matches!(end, TurnEnd::Finished(_)), "{error}: turn {turn}: {end:?}");
        }
        let sent = model.last_request.lock().unwrap().clone();
        assert!(sent.contains("prompt 40"), "{sent}");
        assert!(*model.largest.lock().unwrap() <= WINDOW);
    }
}
