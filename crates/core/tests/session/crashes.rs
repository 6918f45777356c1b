//! SIGKILL at the worst moments, and what the next process makes of it.

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::events::RunState;
use attache_core::export::Format;
use attache_core::ids::{MessageId, SessionId};
use attache_core::part::{Part, ToolState};
use attache_core::ports::client::Answer;
use attache_core::turn::TurnEnd;

use crate::world::*;

const SCRIPT: &str = "on \"talk\"\n usage input=7 output=1\n stream 1000 \"word \" every 10ms\n\
    on \"hang\"\n call id=h hang {\"path\":\"a\"}\n\
    on \"slow\"\n usage input=7 output=1\n call id=l look {\"path\":\"a\"}\n ---\n usage input=3 output=1\n \
    call id=t touch {\"path\":\"a\"}\n ---\n usage input=2 output=1\n text \"done\"\non *\n delay 10ms\n text \"fine\"";

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

/// Starts a turn, waits until it has come far enough, and kills the process.
async fn killed(world: &World, text: &str, far_enough: impl Fn(&World) -> bool) -> SessionId {
    let (process, session) = world.session().await;
    let _ticket = session.prompt(prompt(text));
    until_stored(world, |_| true).await;
    while !far_enough(world) {
        pause(1).await;
    }
    pause(30).await;
    let id = session.id().clone();
    process.kill();
    id
}

#[tokio::test(start_paused = true)]
async fn in_a_stream_all_that_was_shown_is_kept() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let attachment = session.attach(None, attache_core::hub::AttachFrom::Now).await.unwrap();
    let (shown, _reader) = read(attachment);
    let _ticket = session.prompt(prompt("talk"));
    pause(500).await;
    let id = session.id().clone();
    process.kill();
    let is_text = |(_, _, chunk): &&(u64, MessageId, Chunk)| matches!(chunk, Chunk::TextDelta { delta, .. } if delta.contains("word"));
    let seen = shown.lock().unwrap().iter().filter(is_text).count();
    assert!(seen > 20);
    let next = world.process();
    let session = next.hub.open(&id).await.unwrap();
    world.check_rest(&id);
    let text = text_of(&world.answers(&id)[0]);
    assert!(text.matches("word").count() >= seen, "{text}");
    assert_eq!(world.prompts(&id), ["talk"]);
    assert_eq!(say(&session, "next").await, finished());
    world.check_rest(&id);
}

/// Who only reads sees what the client was shown, and leaves it to the next owner.
#[tokio::test(start_paused = true)]
async fn in_a_stream_an_export_has_all_that_was_shown_and_changes_nothing() {
    let world = World::new(SCRIPT);
    let id = killed(&world, "talk", |_| true).await;
    let next = world.process();
    let before = format!("{:?}", world.disk.lock().unwrap());
    for format in [Format::Jsonl, Format::Json, Format::Markdown, Format::Csv] {
        let text = next.hub.export(&id, format).await.unwrap();
        assert!(text.contains("word word"), "{format:?}: {text}");
        assert_eq!(text, next.hub.export(&id, format).await.unwrap());
    }
    assert!(format!("{:?}", world.disk.lock().unwrap()) == before, "who reads changes nothing");
}

/// It looks like a finished one otherwise, to the user and to the model.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cut_says_so() {
    let world = World::new(SCRIPT);
    let id = killed(&world, "talk", |_| true).await;
    let session = world.process().hub.open(&id).await.unwrap();
    let last = world.answers(&id)[0].last().cloned();
    assert!(
        matches!(&last, Some(Part::Data { name, data, .. }) if name == "notice"
        && data["title"] == "attache ended in the middle of this answer"),
        "{last:?}"
    );
    for (text, told) in [("next", 1), ("and on", 1)] {
        assert_eq!(say(&session, text).await, finished());
        let passages = format!("{:?}", world.model.requests().last().unwrap().passages);
        assert_eq!(passages.matches("Your last answer was cut off").count(), told, "{text}: {passages}");
    }
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn in_a_tool_the_call_is_closed_and_never_run_again() {
    let world = World::new(SCRIPT);
    let id = killed(&world, "hang", |world| world.runs.of("h") == 1).await;
    let session = world.process().hub.open(&id).await.unwrap();
    let tool = &tools_of(&world.answers(&id)[0])[0];
    assert_eq!(tool.state, ToolState::OutputError);
    assert_eq!(
        tool.error_text.as_deref(),
        Some("aborted by host restart: attache ended while this ran; it may have had effects")
    );
    assert_eq!(say(&session, "next").await, finished());
    assert_eq!(world.runs.of("h"), 1);
    world.check_rest(&id);
}

fn asks(world: &World) -> bool {
    let disk = world.disk.lock().unwrap();
    disk.parts.values().any(|part| part.tool_state == Some("approval-requested"))
}

#[tokio::test(start_paused = true)]
async fn with_an_open_question_it_is_asked_again_and_the_turn_goes_on() {
    let world = World::new(SCRIPT);
    let id = killed(&world, "slow", asks).await;
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(session.status().await.unwrap().state, RunState::WaitingOnApproval);
    let client = answering(&[Answer::AllowOnce]);
    let _participant = join(&session, client.clone()).await;
    until(&session, |state| *state == RunState::Idle).await;
    assert_eq!(client.asked().len(), 1);
    assert_eq!(world.runs.of("t"), 1);
    assert_eq!(world.runs.of("l"), 1);
    assert_eq!(text_of(&world.answers(&id)[0]), "done");
    world.check_rest(&id);
    let disk = world.disk.lock().unwrap();
    assert_eq!(
        disk.conversation(&id)[1].metadata.as_map()["usage"]["input"],
        12,
        "usage before the crash counts too"
    );
    assert_eq!(disk.sessions[&id].totals.prompt_tokens, 12);
}

#[tokio::test(start_paused = true)]
async fn with_an_open_question_twice_and_then_rejected() {
    let world = World::new(SCRIPT);
    let id = killed(&world, "slow", asks).await;
    let process = world.process();
    process.hub.open(&id).await.unwrap();
    pause(50).await;
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    let _participant = join(&session, answering(&[Answer::RejectOnce])).await;
    until(&session, |state| *state == RunState::Idle).await;
    assert_eq!(world.runs.of("t"), 0);
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn the_history_of_a_continued_turn_is_what_it_was() {
    let interrupted = World::new(SCRIPT);
    let id = killed(&interrupted, "slow", asks).await;
    let session = interrupted.process().hub.open(&id).await.unwrap();
    let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
    until(&session, |state| *state == RunState::Idle).await;
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
    assert_eq!(say(&session, "slow").await, finished());
    let request = |world: &World| {
        let request = world.model.requests().pop().unwrap();
        let parts = request.passages.iter().map(|passage| passage.parts.clone());
        // Approval ids are made anew in every world.
        format!("{:?}", parts.collect::<Vec<_>>())
            .split("apr_")
            .map(|text| text.get(26..).unwrap_or(text).to_owned())
            .collect::<Vec<_>>()[1..]
            .to_vec()
    };
    assert_eq!(request(&interrupted), request(&world));
}

#[tokio::test(start_paused = true)]
async fn a_queue_drains_when_the_session_is_opened() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let _live = session.prompt(prompt("a"));
    let _queued = session.prompt(prompt_with_id("b", "msg_b"));
    let _last = session.prompt(prompt_with_id("c", "msg_c"));
    until_stored(&world, |disk| disk.messages.contains_key(&MessageId::new("msg_c"))).await;
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    until(&session, |state| *state == RunState::Idle).await;
    assert_eq!(world.prompts(&id), ["a", "b", "c"]);
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn shutting_down_keeps_question_and_queue_for_the_next_owner() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let _asked = session.prompt(prompt("slow"));
    until(&session, |state| *state == RunState::WaitingOnApproval).await;
    process.hub.shutdown().await;
    let id = session.id().clone();
    assert_eq!(world.disk.lock().unwrap().leases[&id].owner, None);
    let session = world.process().hub.open(&id).await.unwrap();
    let _participant = join(&session, answering(&[Answer::AllowOnce])).await;
    until(&session, |state| *state == RunState::Idle).await;
    assert_eq!(world.runs.of("t"), 1);
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn shutting_down_in_a_stream_closes_it_and_keeps_the_queue() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let _live = session.prompt(prompt("talk"));
    let _queued = session.prompt(prompt("b"));
    pause(200).await;
    process.hub.shutdown().await;
    let id = session.id().clone();
    world.check_rest(&id);
    let session = world.process().hub.open(&id).await.unwrap();
    until(&session, |state| *state == RunState::Idle).await;
    assert_eq!(world.prompts(&id), ["talk", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_could_not_be_settled_is_settled_by_the_next_look() {
    for nth in 0..3 {
        let world = World::new(SCRIPT);
        let id = killed(&world, "hang", |world| world.runs.of("h") == 1).await;
        let process = world.process();
        process.store.fail_commit(nth);
        drop(process.hub.open(&id).await);
        process.store.fail_commit(u64::MAX);
        let session = process.hub.open(&id).await.unwrap();
        session.attach(None, attache_core::hub::AttachFrom::Beginning).await.unwrap();
        world.check_rest(&id);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_opened_while_the_host_ends() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let _live = session.prompt(prompt("talk"));
    pause(50).await;
    let (_, opened) = tokio::join!(process.hub.shutdown(), process.hub.open(session.id()));
    drop(opened);
    assert!(process.hub.open(session.id()).await.is_err());
    world.check_rest(session.id());
}
