//! What a scripted step sounds like as a stream.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use attache_core::chunk::order::OrderChecker;
use attache_core::chunk::{Chunk, FinishReason, Rest, ToolMarks};
use attache_core::ids::{MessageId, SessionId};
use attache_core::part::{Part, Passage, Role};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{Model, ModelError, ModelRequest, StepEvent, Usage};
use attache_models::ScriptModel;
use futures_util::{FutureExt, StreamExt};
use proptest::prelude::*;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

type Event = Result<StepEvent, ModelError>;

fn passage(role: Role, texts: &[&str]) -> Arc<Passage> {
    let part = |text: &&str| Part::Text { text: (*text).to_owned(), state: None, provider_metadata: None };
    Arc::new(Passage::new(MessageId::new("msg_1"), role, texts.iter().map(part).collect()))
}

fn request(passages: Vec<Arc<Passage>>) -> ModelRequest {
    attache_testkit::fakes::request(ModelRef::new("script", "default"), passages)
}

fn model(script: &str) -> ScriptModel {
    ScriptModel::parse("script", script).unwrap()
}

async fn play(model: &ScriptModel, request: ModelRequest) -> Vec<Event> {
    model.stream(request, CancellationToken::new()).collect().await
}

async fn answer(body: &str) -> Vec<Event> {
    play(&model(&format!("on *\n{body}")), request(vec![passage(Role::User, &["hi"])])).await
}

/// One word per event, so that a whole step is one readable line.
fn told(events: &[Event]) -> String {
    let word = |event: &Event| match event {
        Ok(StepEvent::Chunk(chunk)) => match chunk {
            Chunk::TextStart { id, .. } => format!("start({id})"),
            Chunk::TextDelta { delta, .. } => format!("{delta:?}"),
            Chunk::TextEnd { id, .. } => format!("end({id})"),
            Chunk::ReasoningStart { id, .. } => format!("start({id})"),
            Chunk::ReasoningDelta { delta, .. } => format!("think{delta:?}"),
            Chunk::ReasoningEnd { id, .. } => format!("end({id})"),
            Chunk::ToolInputStart { call_id, tool_name, .. } => format!("call({call_id} {tool_name})"),
            Chunk::ToolInputDelta { input_text_delta, .. } => format!("<{input_text_delta}>"),
            Chunk::ToolInputAvailable { call_id, input, .. } => format!("input({call_id} {input})"),
            Chunk::File { url, media_type, .. } => format!("file({media_type} {url})"),
            Chunk::SourceUrl { source_id, url, title, .. } => format!("source({source_id} {url} {title:?})"),
            other => panic!("not a part chunk: {other:?}"),
        },
        Ok(StepEvent::End { reason, .. }) => format!("{reason:?}"),
        Err(error) => format!("!{error:?}"),
    };
    events.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn usage(events: &[Event]) -> Usage {
    match events.last() {
        Some(Ok(StepEvent::End { usage, .. })) => *usage,
        other => panic!("no end: {other:?}"),
    }
}

/// The step inside a run with every call answered, through the checker of the vocabulary; the end comes last
/// and once.
fn assert_ordered(events: &[Event]) {
    let rest = Rest::none;
    let mut run = vec![
        Chunk::Start { message_id: None, message_metadata: None, rest: rest() },
        Chunk::StartStep { rest: rest() },
    ];
    let mut results = Vec::new();
    for (index, event) in events.iter().enumerate() {
        match event.as_ref().unwrap() {
            StepEvent::End { .. } => assert_eq!(index, events.len() - 1),
            StepEvent::Chunk(chunk) => {
                if let Chunk::ToolInputAvailable { call_id, .. } = chunk {
                    let (call_id, error_text) = (call_id.clone(), "x".to_owned());
                    let marks = ToolMarks::default();
                    results.push(Chunk::ToolOutputError { call_id, error_text, marks, rest: rest() });
                }
                run.push(chunk.clone());
            }
        }
    }
    assert!(matches!(events.last(), Some(Ok(StepEvent::End { .. }))));
    run.append(&mut results);
    run.push(Chunk::FinishStep { rest: rest() });
    run.push(Chunk::Finish { finish_reason: None, message_metadata: None, rest: rest() });
    let mut checker = OrderChecker::default();
    for chunk in &run {
        checker.check(chunk).unwrap_or_else(|error| panic!("{error}: {}", told(events)));
    }
    checker.finish().unwrap();
}

#[tokio::test]
async fn consecutive_texts_are_one_part_and_other_parts_close_it() {
    let events = answer(
        "reasoning \"a\"\nreasoning \"b\"\ntext \"1\"\ndelay 0ms\ntext \"2\"\nstream 2 \"x\"\nusage output=1\nfile image/png \"data:,\"\ntext \"3\"\nsource \"https://e.org\" \"t\"",
    )
    .await;
    assert_eq!(
        told(&events),
        "start(reasoning_1_1) think\"a\" think\"b\" end(reasoning_1_1) \
         start(text_1_2) \"1\" \"2\" \"x\" \"x\" end(text_1_2) file(image/png data:,) \
         start(text_1_3) \"3\" end(text_1_3) source(source_1_4 https://e.org Some(\"t\")) Stop"
    );
    assert_ordered(&events);
}

#[tokio::test]
async fn calls_stream_their_arguments_and_end_the_step_with_tool_calls() {
    let events =
        answer("text \"I\"\ncall read {\"path\":\"some/long/path.txt\"}\ncall id=mine bash nope\ncall todo")
            .await;
    assert_eq!(
        told(&events),
        "start(text_1_1) \"I\" end(text_1_1) \
         call(call_1_1 read) <{\"path\":\"some/lo> <ng/path.txt\"}> input(call_1_1 {\"path\":\"some/long/path.txt\"}) \
         call(mine bash) <nope> input(mine \"nope\") call(call_1_3 todo) <{}> input(call_1_3 {}) ToolCalls"
    );
    assert_ordered(&events);
}

#[tokio::test]
async fn streamed_arguments_add_up_and_never_split_a_character() {
    let long = "ä€😀".repeat(3000);
    let events = answer(&format!("call write {{\"content\":\"{long}\"}}")).await;
    let joined: String = events
        .iter()
        .filter_map(|event| match event {
            Ok(StepEvent::Chunk(Chunk::ToolInputDelta { input_text_delta, .. })) => {
                Some(input_text_delta.as_str())
            }
            _ => None,
        })
        .collect();
    assert_eq!(joined, format!("{{\"content\":\"{long}\"}}"));
    assert!(events.len() > 4 && events.len() < 20, "{}", events.len());
}

#[tokio::test]
async fn the_last_user_passage_chooses_the_section_and_the_passages_after_it_the_step() {
    let model = model(
        "on \"first second\"\ntext \"one\"\ncall read {}\n---\ntext \"two\"\nfinish length\non \"first\"*\ntext \"prefix\"",
    );
    let user = passage(Role::User, &["first ", "second"]);
    let step = passage(Role::Assistant, &["whatever"]);
    let other = passage(Role::User, &["other"]);

    let said = |passages: Vec<Arc<Passage>>| {
        let model = &model;
        async move { told(&play(model, request(passages)).await) }
    };
    assert_eq!(
        said(vec![other.clone(), step.clone(), user.clone()]).await,
        "start(text_3_1) \"one\" end(text_3_1) call(call_3_1 read) <{}> input(call_3_1 {}) ToolCalls"
    );
    assert_eq!(said(vec![user.clone(), step.clone()]).await, "start(text_2_1) \"two\" end(text_2_1) Length");
    assert_eq!(
        said(vec![user.clone(), step.clone(), step.clone()]).await,
        "start(text_3_1) \"(end of script)\" end(text_3_1) Stop"
    );
    assert_eq!(
        said(vec![user.clone(), other]).await,
        "start(text_2_1) \"(no `on` of the script matches the prompt \\\"other\\\"; `on *` matches every prompt)\" end(text_2_1) Stop"
    );
    let long = passage(Role::User, &[&"x".repeat(1000)]);
    let told_of_long = said(vec![long]).await;
    assert!(told_of_long.contains("no `on`") && told_of_long.contains("x…") && told_of_long.len() < 300);
    // Stateless: asked again, the same answer.
    assert_eq!(said(vec![user.clone(), step.clone()]).await, "start(text_2_1) \"two\" end(text_2_1) Length");
}

#[tokio::test]
async fn a_section_without_directives_is_an_empty_answer() {
    let events = answer("").await;
    assert_eq!(told(&events), "Stop");
}

#[tokio::test]
async fn usage_is_as_stated_or_counted_the_same_way_every_time() {
    let stated = answer("text \"abc\"\nusage input=100 output=20 cache_read=3").await;
    assert_eq!(usage(&stated), Usage { input: 100, output: 20, cache_read: 3, ..Usage::default() });

    let model = model("on *\nreasoning \"12345678\"\ntext \"12345\"\nstream 3 \"1234\"");
    let short = usage(&play(&model, request(vec![passage(Role::User, &["12345678"])])).await);
    assert_eq!(short, Usage { input: 2, output: 5, reasoning: 2, ..Usage::default() });
    let again = usage(&play(&model, request(vec![passage(Role::User, &["12345678"])])).await);
    assert_eq!(short, again);
    let passages =
        vec![passage(Role::User, &["x"]), passage(Role::Assistant, &["1234"]), passage(Role::User, &["123"])];
    assert_eq!(usage(&play(&model, request(passages)).await).input, 2);
}

#[tokio::test]
async fn errors_come_where_they_stand_and_end_the_stream() {
    let events = answer("text \"half\"\nerror transient \"overloaded\" retry_after=2s").await;
    assert_eq!(
        told(&events[..2]),
        "start(text_1_1) \"half\"",
        "the part stays open, as when a connection breaks"
    );
    let retry_after = Some(Duration::from_secs(2));
    assert_eq!(events[2..], [Err(ModelError::Transient { message: "overloaded".into(), retry_after })]);
    assert_eq!(answer("error permanent \"x\"").await, [Err(ModelError::Permanent("x".into()))]);
    assert_eq!(answer("error auth \"x\"").await, [Err(ModelError::Auth("x".into()))]);
    assert_eq!(answer("error refused \"x\"").await, [Err(ModelError::Refused("x".into()))]);
    assert_eq!(answer("error overflow \"x\"").await, [Err(ModelError::Overflow("x".into()))]);
    assert_eq!(answer("error attachment \"x\"").await, [Err(ModelError::AttachmentRejected("x".into()))]);
}

#[tokio::test]
async fn times_fails_only_the_first_attempts_of_that_step_and_session() {
    let model =
        model("on *\nerror transient \"busy\" times=2\ntext \"ok\"\n---\nerror transient \"again\" times=1");
    let first = || request(vec![passage(Role::User, &["hi"])]);
    let fails = |events: Vec<Event>| matches!(events[..], [Err(_)]);
    assert!(fails(play(&model, first()).await));
    let other = ModelRequest { session_id: SessionId::new("ses_2"), ..first() };
    assert!(fails(play(&model, other).await));
    assert!(fails(play(&model, first()).await));
    assert_eq!(told(&play(&model, first()).await), "start(text_1_1) \"ok\" end(text_1_1) Stop");
    let second = || request(vec![passage(Role::User, &["hi"]), passage(Role::Assistant, &["ok"])]);
    assert!(fails(play(&model, second()).await));
    assert_eq!(told(&play(&model, second()).await), "Stop");
}

#[tokio::test]
async fn a_cut_ends_the_stream_without_an_end() {
    assert_eq!(told(&answer("text \"half\"\ncut").await), "start(text_1_1) \"half\"");
}

#[tokio::test]
async fn panic_panics_in_the_task_that_reads() {
    let model = model("on *\ntext \"a\"\npanic");
    let stream = model.stream(request(vec![]), CancellationToken::new());
    let failed = tokio::spawn(stream.collect::<Vec<_>>()).await.unwrap_err();
    assert!(failed.is_panic());
}

#[tokio::test(start_paused = true)]
async fn delays_take_the_time_they_say_and_nothing_else_does() {
    let start = Instant::now();
    answer("delay 50ms\nstream 3 \"x\" every 10ms\ntext \"y\"\ndelay 2s").await;
    assert_eq!(start.elapsed(), Duration::from_millis(50 + 20 + 2000));
    let start = Instant::now();
    answer("stream 100000 \"x\"").await;
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_delay_at_once() {
    let cancel = CancellationToken::new();
    let stream = model("on *\ntext \"a\"\ndelay 999999999m").stream(request(vec![]), cancel.clone());
    let start = Instant::now();
    let reader = tokio::spawn(stream.collect::<Vec<_>>());
    tokio::time::sleep(Duration::from_millis(30)).await;
    cancel.cancel();
    assert_eq!(told(&reader.await.unwrap()), "start(text_0_1) \"a\"");
    assert_eq!(start.elapsed(), Duration::from_millis(30));
}

#[tokio::test]
async fn cancelling_ends_the_stream_between_two_deltas() {
    let cancel = CancellationToken::new();
    let mut stream = model("on *\nstream 1000000 \"x\"").stream(request(vec![]), cancel.clone());
    for _ in 0..10 {
        assert!(stream.next().await.is_some());
    }
    cancel.cancel();
    assert_eq!(stream.next().await, None);
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_cancelled_request_says_nothing() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(model("on *\ntext \"x\"").stream(request(vec![]), cancel).next().await, None);
}

#[tokio::test]
async fn a_long_stream_gives_way_to_its_neighbours() {
    let stream = model("on *\nstream 100000 \"x\"").stream(request(vec![]), CancellationToken::new());
    let mut reading = tokio::spawn(stream.count());
    let mut turns = 0;
    while (&mut reading).now_or_never().is_none() {
        turns += 1;
        tokio::task::yield_now().await;
    }
    assert!(turns > 100, "the neighbour ran only {turns} times");
}

#[tokio::test]
async fn a_hundred_thousand_deltas_all_arrive_in_order() {
    let events = answer("stream 100000 \"token \"").await;
    assert_eq!(events.len(), 100_000 + 3);
    assert_ordered(&events);
    assert_eq!(usage(&events).output, 150_000);
}

#[test]
fn the_default_model_comes_first_then_the_declared_ones() {
    let model = model("model vision context=8000 images=true\non *");
    let mut stated = model.info("vision");
    stated.context = 9000;
    let extra = model.info("extra");
    let model = model.with_model(stated).with_model(extra);
    let models: Vec<_> = model
        .available()
        .iter()
        .map(|info| {
            (info.model.model_id.clone(), info.name.clone(), info.context, info.max_output, info.images)
        })
        .collect();
    assert_eq!(
        models,
        [
            ("default".into(), "Scripted model".into(), 200_000, 32_000, false),
            ("vision".into(), "vision".into(), 9000, 32_000, true),
            ("extra".into(), "extra".into(), 200_000, 32_000, false),
        ]
    );
}

#[test]
fn finish_overrides_the_reason() {
    let events = answer("call read {}\nfinish stop").now_or_never().unwrap();
    assert!(matches!(events.last(), Some(Ok(StepEvent::End { reason: FinishReason::Stop, .. }))));
}

proptest! {
    #[test]
    fn whatever_a_step_says_it_is_said_in_order(lines in prop::collection::vec(prop_oneof![
        Just("text \"t\""), Just("reasoning \"r\""), Just("stream 0 \"x\""), Just("stream 3 \"s\""),
        Just("call read {}"), Just("call read x"), Just("file a/b \"u\""), Just("source \"u\""), Just("usage input=1"),
        Just("error transient \"e\" times=0"),
    ], 0..12)) {
        let events = answer(&lines.join("\n")).now_or_never().unwrap();
        assert_ordered(&events);
    }
}
