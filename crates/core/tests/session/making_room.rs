//! Room in a small window: old results become stubs first, then a note takes the place of the beginning. A
//! session with tools goes on for as long as one likes, and what it was told at the start is still known.

use std::sync::{Arc, Mutex};

use attache_core::chunk::{Chunk, FinishReason, Rest, ToolMarks};
use attache_core::compactor::Compactor;
use attache_core::estimate;
use attache_core::hub::{NewSession, SessionHandle};
use attache_core::ids::CallId;
use attache_core::part::{Part, Passage, Role};
use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxStream, Model, ModelError, ModelRequest, StepEvent, Usage};
use attache_core::turn::TurnEnd;
use attache_testkit::fakes::store::MemoryStore;
use futures_util::StreamExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::*;

pub(crate) const FACT: &str = "FACT: the port is 4711";

/// Works through a turn call by call, then says a word. As a writer of notes it keeps the facts it is shown.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) context: u64,
    pub(crate) calls: usize,
    pub(crate) result_bytes: usize,
    pub(crate) answer_bytes: usize,
    pub(crate) max_output: u64,
    /// What summarising comes to, instead of a note.
    pub(crate) fails_with: Option<ModelError>,
    /// In one step.
    pub(crate) calls_at_once: usize,
    /// Calls a tool where a note is asked for.
    pub(crate) calls_instead: bool,
    /// Writes a note until it is cancelled.
    pub(crate) is_slow: bool,
    /// A second model, with this window.
    pub(crate) small: Option<u64>,
    /// How much its models can think.
    pub(crate) levels: Vec<ThoughtLevel>,
    pub(crate) made_calls: Mutex<u32>,
}

impl Worker {
    pub(crate) fn new(context: u64, calls: usize, result_bytes: usize) -> Self {
        Self {
            context,
            calls,
            result_bytes,
            answer_bytes: 200,
            max_output: 1_000,
            fails_with: None,
            calls_at_once: 1,
            calls_instead: false,
            is_slow: false,
            small: None,
            levels: Vec::new(),
            made_calls: Mutex::default(),
        }
    }

    fn next(&self, request: &ModelRequest) -> Result<Vec<Chunk>, ModelError> {
        if is_note_request(request) && !self.calls_instead {
            if let Some(error) = &self.fails_with {
                return Err(error.clone());
            }
            let text = shown_text(request);
            let fact = if text.contains(FACT) { FACT } else { "none" };
            return Ok(text_chunks(&format!("## Goal\nwork\n## Facts from the user\n{fact}")));
        }
        let answered = request.passages.iter().rev().take_while(|passage| passage.role == Role::Assistant);
        if answered.count() >= self.calls && !is_note_request(request) {
            return Ok(text_chunks(&"done ".repeat(self.answer_bytes / 5)));
        }
        let mut made = self.made_calls.lock().unwrap();
        let call = |_| {
            *made += 1;
            let input = json!({ "path": format!("file_{made}.rs"), "bytes": self.result_bytes });
            let (call_id, tool_name) = (CallId::new(format!("call_{made}")), "look".into());
            let (marks, rest) = (ToolMarks::default(), Rest::none());
            Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest }
        };
        Ok((0..self.calls_at_once).map(call).collect())
    }
}

fn text_chunks(text: &str) -> Vec<Chunk> {
    let id = "t".into();
    vec![Chunk::TextStart { id, rest: Rest::none() }, Chunk::text_delta(&"t".into(), text)]
}

pub(crate) fn is_note_request(request: &ModelRequest) -> bool {
    request.passages.last().is_some_and(|last| text_of(&last.parts).ends_with("Write the note now."))
}

pub(crate) fn shown_text(request: &ModelRequest) -> String {
    request.passages.iter().map(|passage| text_of(&passage.parts) + "\n").collect()
}

impl Model for Worker {
    fn available(&self) -> Arc<[ModelInfo]> {
        let info = |name: &str, context| ModelInfo {
            context,
            max_output: self.max_output,
            thought_levels: self.levels.clone(),
            ..ModelInfo::undescribed(ModelRef::new("script", name))
        };
        let small = self.small.map(|context| info("small", context));
        [info("default", self.context)].into_iter().chain(small).collect()
    }

    fn stream(
        &self,
        request: ModelRequest,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let size = estimate::request_tokens(&request);
        let window = request.info.context;
        assert!(size <= window, "a request of {size} tokens to a window of {window}");
        if self.is_slow && is_note_request(&request) {
            let said = futures_util::stream::iter(text_chunks("the beginning")).map(StepEvent::Chunk).map(Ok);
            return said.chain(futures_util::stream::pending()).boxed();
        }
        let chunks = match self.next(&request) {
            Ok(chunks) => chunks,
            Err(error) => return futures_util::stream::iter([Err(error)]).boxed(),
        };
        let output = chunks.iter().map(|chunk| match chunk {
            Chunk::TextDelta { delta, .. } => delta.len() as u64,
            Chunk::ToolInputAvailable { input, .. } => estimate::json_bytes(input),
            _ => 0,
        });
        let usage = Usage { input: size, output: estimate::tokens(output.sum()), ..Usage::default() };
        let end = StepEvent::End { reason: FinishReason::Stop, usage };
        let said: Vec<_> = chunks.into_iter().map(StepEvent::Chunk).chain([end]).map(Ok).collect();
        futures_util::stream::iter(said).boxed()
    }
}

pub(crate) fn world(model: Worker) -> World {
    let small_model = model.small.map(|_| ModelRef::new("script", "small"));
    let world = World::with_model(Arc::new(model));
    let blobs = Arc::new(MemoryStore::open(world.disk.clone(), 1_000, 1_000));
    let compactor = Compactor { model: world.model.clone(), blobs, small_model };
    world.with_compaction(Arc::new(compactor))
}

pub(crate) fn is_finished(end: &TurnEnd) -> bool {
    *end == TurnEnd::Finished(FinishReason::Stop)
}

/// Those for notes, and those of the turns.
pub(crate) fn requests(world: &World) -> (Vec<ModelRequest>, Vec<ModelRequest>) {
    world.model.requests().into_iter().partition(is_note_request)
}

fn results(passages: &[Arc<Passage>]) -> Vec<String> {
    let tools = passages.iter().flat_map(|passage| passage.parts.iter().filter_map(Part::tool));
    tools.map(|tool| tool.output.as_ref().unwrap().as_str().unwrap().to_owned()).collect()
}

fn is_stub(result: &str) -> bool {
    result.starts_with("(removed to make room: the result of look file_")
}

/// The compaction parts of a session, in order.
pub(crate) fn marks(world: &World, session: &SessionHandle) -> Vec<serde_json::Value> {
    let parts = world.answers(session.id()).concat().into_iter();
    let marks = parts.filter_map(|part| match part {
        Part::Data { name, data, .. } if name == "compaction" => Some(data),
        _ => None,
    });
    marks.collect()
}

#[tokio::test(start_paused = true)]
async fn old_results_become_stubs_and_no_model_is_asked_if_that_is_enough() {
    let world = world(Worker::new(20_000, 2, 8_000));
    let (process, session) = world.session().await;
    for turn in 1..=6 {
        assert!(is_finished(&say(&session, &format!("prompt {turn}")).await), "turn {turn}");
    }
    let (notes, sent) = requests(&world);
    assert!(notes.is_empty(), "no model is asked");
    let marks = marks(&world, &session);
    assert!(marks.iter().all(|mark| mark["status"] == "completed" && mark["auto"] == true), "{marks:?}");
    let last = sent.last().unwrap();
    let shown = results(&last.passages);
    let stubbed = shown.iter().filter(|result| is_stub(result)).count();
    let told: u64 = marks.iter().filter_map(|mark| mark["stubs"]["results"].as_u64()).sum();
    assert_eq!((told, shown.len() - stubbed), (stubbed as u64, 4), "one turn stays: two are large");
    assert!(shown[..stubbed].iter().all(|result| is_stub(result)), "the oldest ones: {shown:?}");
    assert_eq!(
        shown[0],
        "(removed to make room: the result of look file_1.rs, 8009 bytes. If you need it, call it again, unless that \
         would repeat something with an effect.)"
    );
    // What people see and load has everything.
    let kept = results(&[Arc::new(Passage::new(
        attache_core::ids::MessageId::new("x"),
        Role::Assistant,
        world.answers(session.id()).concat(),
    ))]);
    assert!(kept.iter().all(|result| result.len() > 8_000), "no row is rewritten");

    // The same to the byte after a restart, and in a fork.
    let id = session.id().clone();
    process.kill();
    let process = world.process();
    let session = process.hub.open(&id).await.unwrap();
    say(&session, "prompt 7").await;
    let (_, sent) = requests(&world);
    let again = &sent[sent.len() - 3].passages;
    assert!(again[..last.passages.len()] == last.passages[..], "the same to the byte");
    let fork =
        process.hub.fork(&id, NewSession { root: "/w".into(), place: Default::default() }).await.unwrap();
    say(&fork, "prompt 8").await;
    let (_, forked) = requests(&world);
    let forked = &forked[forked.len() - 3].passages;
    assert!(results(forked)[..stubbed] == shown[..stubbed], "the fork has the same stubs");
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn requests_only_grow_between_two_compactions() {
    let world = world(Worker::new(12_000, 3, 3_000));
    let (mut process, mut session) = world.session().await;
    let id = session.id().clone();
    for turn in 1..=40 {
        assert!(is_finished(&say(&session, &format!("prompt {turn}")).await), "turn {turn}");
        if turn % 7 == 0 {
            process.kill();
            process = world.process();
            session = process.hub.open(&id).await.unwrap();
        }
    }
    let (notes, sent) = requests(&world);
    let breaks = sent.windows(2).filter(|pair| {
        let (before, after) = (&pair[0].passages, &pair[1].passages);
        after.len() < before.len() || after[..before.len()] != before[..]
    });
    let completed = marks(&world, &session);
    let completed = completed.iter().filter(|mark| mark["status"] == "completed").count();
    let breaks = breaks.count();
    assert!(breaks <= completed, "{breaks} times another beginning, {completed} compactions");
    assert!(breaks > 3 && breaks * 5 < sent.len(), "{breaks} of {}, {} notes", sent.len(), notes.len());
}

#[tokio::test(start_paused = true)]
async fn the_turn_under_way_gives_way_too_but_not_what_its_last_step_gave() {
    let world = world(Worker::new(16_000, 18, 6_000)).with_max_steps(50);
    let (_process, session) = world.session().await;
    assert!(is_finished(&say(&session, "one long turn").await));
    let (_, sent) = requests(&world);
    for request in &sent {
        let shown = results(&request.passages);
        assert!(shown.last().is_none_or(|last| !is_stub(last)), "{shown:?}");
    }
    let last = shown_text(sent.last().unwrap());
    assert!(last.contains("one long turn"), "the prompt is still there: {last}");
    world.check_rest(session.id());
}

/// Several results of one step that do not fit together: a summary of what the model has not seen is worth
/// nothing, so some are left out, and it is told.
#[tokio::test(start_paused = true)]
async fn of_results_that_do_not_fit_together_the_model_sees_some() {
    let world = world(Worker { calls_at_once: 6, ..Worker::new(24_000, 1, 23_000) });
    let (_process, session) = world.session().await;
    assert!(is_finished(&say(&session, FACT).await));
    let (notes, sent) = requests(&world);
    assert!(notes.is_empty(), "nothing is summarised");
    let shown = results(&sent.last().unwrap().passages);
    let left_out: Vec<bool> = shown.iter().map(|result| result.starts_with("(left out: ")).collect();
    assert_eq!(left_out, [false, true, true, true, true, true], "what fits is there");
    assert!(shown[0].len() > 23_000);
    world.check_rest(session.id());
}

/// What the same turns would cost if the oldest turns were dropped to fit: nothing is known of them then.
fn dropping_the_oldest(turns: &[u64], requests_per_turn: u64, fixed: u64, limit: u64) -> u64 {
    let mut sum = 0;
    for (number, turn) in turns.iter().enumerate() {
        for step in 1..=requests_per_turn {
            let own = turn * step / requests_per_turn;
            let mut sent = fixed + own;
            for before in turns[..number].iter().rev() {
                if sent + before > limit {
                    break;
                }
                sent += before;
            }
            sum += sent;
        }
    }
    sum
}

#[tokio::test(start_paused = true)]
async fn three_hundred_turns_with_tools_in_a_small_window_and_a_fact_of_the_third_is_known() {
    const WINDOW: u64 = 8_192;
    let world = world(Worker::new(WINDOW, 2, 1_600));
    let (mut process, mut session) = world.session().await;
    let id = session.id().clone();
    for turn in 1..=300 {
        let text = if turn == 3 { FACT.to_owned() } else { format!("prompt {turn}") };
        let end = say(&session, &text).await;
        assert!(is_finished(&end), "turn {turn}: {end:?}");
        if turn > 3 {
            let (_, sent) = requests(&world);
            assert!(shown_text(sent.last().unwrap()).contains(FACT), "turn {turn} has forgotten it");
        }
        if turn % 100 == 0 {
            process.kill();
            process = world.process();
            session = process.hub.open(&id).await.unwrap();
        }
    }
    let (notes, sent) = requests(&world);
    let tokens = |requests: &[ModelRequest]| requests.iter().map(estimate::request_tokens).sum::<u64>();
    let fixed = estimate::request_tokens(&sent[0]);
    let turn = (2 * (1_600 + 60) + 200 + 10) / 4;
    let dropped = dropping_the_oldest(&[turn; 300], 3, fixed, WINDOW - 1_000);
    let spent = tokens(&sent) + tokens(&notes);
    println!(
        "300 turns, {} requests, {} notes: {spent} input tokens ({} of them for notes); dropping the oldest: {dropped}",
        sent.len(),
        notes.len(),
        tokens(&notes)
    );
    assert_eq!(sent.len(), 900);
    assert!(notes.len() <= 60, "{} notes", notes.len());
    assert!(spent < dropped, "{spent} beside {dropped}");
    assert_eq!(world.prompts(&id).len(), 300, "nothing is deleted");
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_does_not_fit_by_itself_says_so_and_the_session_goes_on() {
    let world = world(Worker::new(8_192, 1, 100));
    let (_process, session) = world.session().await;
    say(&session, FACT).await;
    let end = say(&session, &"word ".repeat(12_000)).await;
    let TurnEnd::Failed { message, .. } = end else { panic!("{end:?}") };
    assert!(message.contains("the prompt alone is about 15"), "{message}");
    assert!(message.contains("send less of it, or name files instead of including them"), "{message}");
    assert!(is_finished(&say(&session, "short").await));
    let (_, sent) = requests(&world);
    assert!(shown_text(sent.last().unwrap()).contains(FACT));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn what_was_told_of_the_environment_is_told_again_after_a_summary() {
    let world = world(Worker { small: Some(50_000), ..Worker::new(60_000, 0, 0) });
    let (process, session) = world.session().await;
    say(&session, "one").await;
    session.set_model(ModelRef::new("script", "small")).await.unwrap();
    let is_told = || {
        let (_, sent) = requests(&world);
        let news =
            sent.last().unwrap().passages.iter().flat_map(|passage| &passage.parts).filter_map(|part| {
                match part {
                    Part::Data { name, data, .. } if name == "environment" => data["text"].as_str(),
                    _ => None,
                }
            });
        news.filter(|news| news.contains("Model: script/small")).count()
    };
    say(&session, "two").await;
    assert_eq!(is_told(), 1);
    assert!(is_finished(&say(&session, "/compact").await));
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    say(&session, "three").await;
    assert_eq!(is_told(), 1, "the message that told it is no longer sent");
    say(&session, "four").await;
    assert_eq!(is_told(), 1, "and it is told once");
}
