//! Cancel at every moment: one answer each, `Aborted` only for the live turn, the next turn unharmed.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use attache_core::chunk::{Chunk, FinishReason, Rest};
use attache_core::events::RunState;
use attache_core::part::ToolState;
use attache_core::ports::client::Answer;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::{BoxStream, Model, ModelError, ModelRequest, StepEvent};
use attache_core::turn::TurnEnd;
use attache_testkit::fakes::model::SeededModel;
use futures_util::StreamExt;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::world::*;

const SCRIPT: &str = "on \"slow\"\n delay 5s\n text \"late\"\non \"talk\"\n stream 1000 \"word \" every 10ms\n\
                      on \"hang\"\n call id=h hang {\"path\":\"a\"}\non \"ask\"\n call id=t touch {\"path\":\"a\"}\n\
                      on \"retry\"\n error transient \"busy\"\non *\n text \"fine\"";

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

#[tokio::test(start_paused = true)]
async fn before_the_first_token() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("slow"));
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert_eq!(say(&session, "next").await, finished());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn in_the_stream_keeps_the_text() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("talk"));
    pause(200).await;
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert!(text_of(&world.answers(session.id())[0]).starts_with("word word "));
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn in_a_tool_closes_the_call() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("hang"));
    until_stored(&world, |_| world.runs.of("h") == 1).await;
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert_eq!(tools_of(&world.answers(session.id())[0])[0].state, ToolState::OutputError);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn in_a_question_denies_the_call() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("ask"));
    until(&session, |state| *state == RunState::WaitingOnApproval).await;
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert_eq!(tools_of(&world.answers(session.id())[0])[0].state, ToolState::OutputDenied);
    assert_eq!(say(&session, "next").await, finished());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn in_the_pause_between_two_tries() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("retry"));
    pause(100).await;
    let started = tokio::time::Instant::now();
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert!(started.elapsed().as_millis() <= 100);
    world.check_rest(session.id());
}

/// As when the client owes the tool the text of a file: live, behind a question, and behind a call that changes
/// something.
#[tokio::test(start_paused = true)]
async fn while_a_call_is_being_understood() {
    let hangs = " call id=p hang_in_plan {\"path\":\"a\"}\n";
    for before in ["", " call touch {\"path\":\"a\"}\n"] {
        let world = World::new(&format!("on *\n{before}{hangs} ---\n text \"on\""));
        let (_process, session) = world.session().await;
        let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
        let ticket = session.prompt(prompt("go"));
        pause(2_000).await;
        let started = tokio::time::Instant::now();
        session.cancel();
        assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
        assert!(started.elapsed().as_millis() <= 500, "{:?}", started.elapsed());
        assert_eq!(world.runs.of("p"), 0);
        world.check_rest(session.id());
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_call_that_only_reads_and_does_not_listen() {
    let world = World::new("on *\n call id=d deaf {\"path\":\"a\"}");
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("go"));
    until_stored(&world, |_| world.runs.of("d") == 1).await;
    let started = tokio::time::Instant::now();
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert!(started.elapsed().as_millis() <= 500, "{:?}", started.elapsed());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn after_the_end_and_twice() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "one").await, finished());
    session.cancel();
    session.cancel();
    assert_eq!(say(&session, "two").await, finished());
    let ticket = session.prompt(prompt("talk"));
    pause(50).await;
    session.cancel();
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert_eq!(say(&session, "three").await, finished());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn with_the_next_prompt_right_behind() {
    for prompted in ["slow", "talk", "hang", "ask", "retry"] {
        let world = World::new(SCRIPT);
        let (_process, session) = world.session().await;
        for wait in [0, 1, 3, 7, 20] {
            let first = session.prompt(prompt(prompted));
            pause(wait).await;
            session.cancel();
            let second = session.prompt(prompt("next"));
            assert_eq!(end_of(first).await, TurnEnd::Aborted, "{prompted} after {wait} ms");
            assert_eq!(end_of(second).await, finished(), "{prompted} after {wait} ms");
        }
        world.check_rest(session.id());
    }
}

#[tokio::test(start_paused = true)]
async fn of_one_prompt_only() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let live = session.prompt(prompt_with_id("talk", "msg_live"));
    let waiting = session.prompt(prompt_with_id("one", "msg_waiting"));
    let last = session.prompt(prompt_with_id("two", "msg_last"));
    pause(20).await;
    session.cancel_prompt(attache_core::ids::MessageId::new("msg_waiting"));
    assert_eq!(end_of(waiting).await, TurnEnd::Aborted);
    session.cancel_prompt(attache_core::ids::MessageId::new("msg_unknown"));
    session.cancel_prompt(attache_core::ids::MessageId::new("msg_live"));
    assert_eq!(end_of(live).await, TurnEnd::Aborted);
    assert_eq!(end_of(last).await, finished());
    assert_eq!(world.prompts(session.id()), ["talk", "two"]);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn closing_answers_everybody_and_leaves_nothing() {
    for prompted in ["slow", "talk", "hang", "ask"] {
        let world = World::new(SCRIPT);
        let (process, session) = world.session().await;
        let live = session.prompt(prompt(prompted));
        let waiting = (prompted != "ask").then(|| session.prompt(prompt("one")));
        pause(20).await;
        session.close().await.unwrap();
        assert_eq!(end_of(live).await, TurnEnd::Aborted, "{prompted}");
        if let Some(waiting) = waiting {
            assert_eq!(end_of(waiting).await, TurnEnd::Aborted, "{prompted}");
        }
        world.check_rest(session.id());
        assert!(session.status().await.is_err());
        let session = process.hub.open(session.id()).await.unwrap();
        assert_eq!(say(&session, "next").await, finished());
        world.check_rest(session.id());
    }
}

/// Is looked at after the turn has seen no cancel, and ends because of one that comes right then.
#[derive(Debug)]
struct EndsOnCancel {
    looked_at: Arc<Semaphore>,
}

impl Model for EndsOnCancel {
    fn available(&self) -> Arc<[ModelInfo]> {
        SeededModel::new(0).available()
    }

    fn stream(
        &self,
        _request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let looked_at = self.looked_at.clone();
        let start = Chunk::TextStart { id: "a".into(), rest: Rest::none() };
        let said = [start, Chunk::text_delta(&"a".into(), "said")].map(StepEvent::Chunk).map(Ok);
        let rest = futures_util::stream::poll_fn(move |_| {
            looked_at.add_permits(1);
            while !cancel.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Poll::Ready(None)
        });
        futures_util::stream::iter(said).chain(rest).boxed()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn between_two_looks_it_is_a_cancel_and_no_fault_of_the_model() {
    let looked_at = Arc::new(Semaphore::new(0));
    let world = World::with_model(Arc::new(EndsOnCancel { looked_at: looked_at.clone() }));
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("go"));
    looked_at.acquire().await.unwrap().forget();
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    world.check_rest(session.id());
}
