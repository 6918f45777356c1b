//! Models for tests: one that remembers what it was asked, one whose every word a seed decides.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_core::chunk::{Chunk, FinishReason, Rest, StreamId, ToolMarks};
use attache_core::ids::{CallId, SessionId};
use attache_core::part::{Passage, Role};
use attache_core::ports::model::{ModelAround, ModelInfo};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxFuture, BoxStream, Model, ModelError, ModelRequest, StepEvent, Usage};
use futures_util::{StreamExt, stream};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::blobs::MemoryBlobs;
use super::random::Random;

/// Passes everything on and keeps the requests.
#[derive(Debug)]
pub struct Remembering {
    inner: Arc<dyn Model>,
    requests: Mutex<Vec<ModelRequest>>,
}

impl Remembering {
    pub fn new(inner: Arc<dyn Model>) -> Arc<Self> {
        Arc::new(Self { inner, requests: Mutex::default() })
    }

    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl ModelAround for Remembering {
    fn inner(&self) -> &Arc<dyn Model> {
        &self.inner
    }

    fn stream_through(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        self.requests.lock().unwrap().push(request.clone());
        self.inner.stream(request, cancel)
    }
}

/// A model that can be used only with a key, and that looks for the key only when it is told to.
#[derive(Debug)]
pub struct Keyed {
    inner: Arc<dyn Model>,
    state: Arc<KeyedState>,
}

#[derive(Debug, Default)]
struct KeyedState {
    stored: AtomicBool,
    found: AtomicBool,
}

impl Keyed {
    /// Without a key.
    pub fn new(inner: Arc<dyn Model>) -> Arc<Self> {
        Arc::new(Self { inner, state: Arc::default() })
    }

    pub fn store_key(&self) {
        self.state.stored.store(true, Ordering::SeqCst);
    }

    pub fn remove_key(&self) {
        self.state.stored.store(false, Ordering::SeqCst);
    }

    pub fn has_key(&self) -> bool {
        self.state.stored.load(Ordering::SeqCst)
    }

    fn found(&self) -> bool {
        self.state.found.load(Ordering::SeqCst)
    }
}

impl Model for Keyed {
    fn available(&self) -> Arc<[ModelInfo]> {
        if self.found() { self.inner.available() } else { Arc::new([]) }
    }

    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        self.inner.describe(model).filter(|_| self.found())
    }

    fn small(&self, beside: &ModelRef) -> Option<ModelRef> {
        self.inner.small(beside).filter(|_| self.found())
    }

    fn look_again(&self) -> BoxFuture<'static, ()> {
        let state = self.state.clone();
        Box::pin(async move {
            state.found.store(state.stored.load(Ordering::SeqCst), Ordering::SeqCst);
        })
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        if self.found() {
            return self.inner.stream(request, cancel);
        }
        stream::iter([Err(ModelError::Auth("there is no key".into()))]).boxed()
    }
}

/// Says what its seed decides: text, reasoning, calls of the tool family, pauses, errors, cuts, broken order.
#[derive(Debug)]
pub struct SeededModel {
    random: Mutex<Random>,
}

/// Steps after which a turn is told to end, so that most end by themselves.
const STEPS_WITH_CALLS: u64 = 3;

impl SeededModel {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self { random: Mutex::new(Random::new(seed)) })
    }
}

impl Model for SeededModel {
    fn available(&self) -> Arc<[ModelInfo]> {
        let model = ModelInfo::undescribed(ModelRef::new("seeded", "model"));
        Arc::new([ModelInfo { context: 100_000, max_output: 4_000, images: true, ..model }])
    }

    fn stream(
        &self,
        request: ModelRequest,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let mut random = Random::new(self.random.lock().unwrap().number());
        let steps =
            request.passages.iter().rev().take_while(|passage| passage.role == Role::Assistant).count();
        let mut said = Vec::new();
        let end = compose(&mut random, &mut said, steps as u64);
        said.push(end);
        let pauses: Vec<_> = said.iter().map(|_| pause(&mut random)).collect();
        let events = said.into_iter().zip(pauses);
        let spoken = stream::iter(events).then(|(event, pause)| async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            event
        });
        // A cut is a stream that ends without an end.
        spoken.take_while(|event| std::future::ready(event.is_some())).map(|event| event.unwrap()).boxed()
    }
}

type Said = Option<Result<StepEvent, ModelError>>;

fn pause(random: &mut Random) -> Duration {
    match random.below(8) {
        0..=4 => Duration::ZERO,
        5 | 6 => Duration::from_millis(random.below(4)),
        _ => Duration::from_millis(random.below(40)),
    }
}

/// Fills `said` and gives how it ends.
fn compose(random: &mut Random, said: &mut Vec<Said>, steps: u64) -> Said {
    if random.one_in(12) {
        return Some(Err(error(random)));
    }
    let mut called = false;
    for part in 0..random.below(4) {
        match random.below(4) {
            0 => reasoning(random, said, part),
            1 | 2 => text(random, said, part),
            _ if steps < STEPS_WITH_CALLS => {
                call(random, said);
                called = true;
            }
            _ => text(random, said, part),
        }
    }
    match random.below(14) {
        0 => return None,
        1 => return Some(Err(error(random))),
        // The end of the last part gets lost: the loop closes it.
        2 => drop(said.pop()),
        _ => {}
    }
    let reason = if called { FinishReason::ToolCalls } else { FinishReason::Stop };
    let usage = Usage { input: 1 + random.below(9), output: 1 + random.below(9), ..Usage::default() };
    Some(Ok(StepEvent::End { reason, usage }))
}

fn error(random: &mut Random) -> ModelError {
    match random.below(6) {
        0 | 1 => ModelError::Transient {
            message: "overloaded".into(),
            retry_after: random.one_in(2).then(|| Duration::from_millis(random.below(50))),
        },
        2 => ModelError::Permanent("no".into()),
        3 => ModelError::Overflow("too long".into()),
        4 => ModelError::AttachmentRejected("not this image".into()),
        _ => ModelError::Refused("not this".into()),
    }
}

fn say(said: &mut Vec<Said>, chunk: Chunk) {
    said.push(Some(Ok(StepEvent::Chunk(chunk))));
}

fn text(random: &mut Random, said: &mut Vec<Said>, part: u64) {
    let id: StreamId = format!("t{part}").into();
    say(said, Chunk::TextStart { id: id.clone(), rest: Rest::none() });
    for word in 0..random.below(6) {
        say(said, Chunk::text_delta(&id, format!("word{word} ")));
    }
    say(said, Chunk::TextEnd { id, rest: Rest::none() });
}

fn reasoning(random: &mut Random, said: &mut Vec<Said>, part: u64) {
    let id: StreamId = format!("r{part}").into();
    say(said, Chunk::ReasoningStart { id: id.clone(), rest: Rest::none() });
    for _ in 0..random.below(4) {
        say(said, Chunk::reasoning_delta(&id, "hm "));
    }
    say(said, Chunk::ReasoningEnd { id, rest: Rest::none() });
}

fn call(random: &mut Random, said: &mut Vec<Said>) {
    let call_id = CallId::new(format!("call_{:016x}", random.number()));
    let tool_name = random.pick(&["look", "look", "touch", "touch", "hang", "boom", "unknown"]).to_string();
    let input = match random.below(8) {
        0 => json!({ "wrong": true }),
        _ => json!({ "path": format!("file{}", random.below(5)), "ms": random.below(30) }),
    };
    say(
        said,
        Chunk::ToolInputStart {
            call_id: call_id.clone(),
            tool_name: tool_name.clone(),
            input_encoding: None,
            marks: ToolMarks::default(),
            rest: Rest::none(),
        },
    );
    let arguments = input.to_string();
    let (front, back) = arguments.split_at(arguments.len() / 2);
    for piece in [front, back] {
        let input_text_delta = piece.to_string();
        say(said, Chunk::ToolInputDelta { call_id: call_id.clone(), input_text_delta, rest: Rest::none() });
    }
    let marks = ToolMarks::default();
    say(said, Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest: Rest::none() });
}

/// A request with nothing in it but a conversation; tests change what they care about.
pub fn request(model: ModelRef, passages: Vec<Arc<Passage>>) -> ModelRequest {
    ModelRequest {
        session_id: SessionId::new("ses_1"),
        info: Arc::new(ModelInfo::undescribed(model)),
        thought: None,
        system: "".into(),
        passages: passages.into(),
        runtime_context: Arc::new([]),
        tools: Arc::new([]),
        blobs: Arc::new(MemoryBlobs::default()),
        parent_span: None,
    }
}
