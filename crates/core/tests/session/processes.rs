//! Several processes on one disk: one writes, others follow, and take over when it dies.

use attache_core::chunk::FinishReason;
use attache_core::events::{RunState, Runs, SessionStatus};
use attache_core::hub::{AttachFrom, Hub, HubError};
use attache_core::turn::TurnEnd;

use crate::world::*;

const SCRIPT: &str = "on \"talk\"\n stream 50 \"word \" every 10ms\non *\n text \"fine\"";

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

#[tokio::test(start_paused = true)]
async fn a_second_process_follows_and_may_not_prompt() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let id = session.id().clone();
    let ticket = session.prompt(prompt("talk"));
    pause(100).await;
    let second = world.process();
    let elsewhere = second.hub.open(&id).await.unwrap();
    let (shown, _reader) = read(elsewhere.attach(None, AttachFrom::Beginning).await.unwrap());
    let status = |hub: &Hub| {
        let hub = hub.clone();
        let id = id.clone();
        async move { hub.find(&id).await.unwrap().status().await.unwrap() }
    };
    let told = status(&second.hub).await;
    assert_eq!((told.state, told.runs), (RunState::Busy, Runs::Elsewhere), "the follower is told");
    let refused = answer(elsewhere.prompt(prompt("me too"))).await;
    assert_eq!(refused, Err(HubError::RunningElsewhere(id.clone())));
    let outcome = answer(ticket).await.unwrap();
    pause(200).await;
    let indexes: Vec<u64> = shown.lock().unwrap().iter().map(|(index, ..)| *index).collect();
    assert_eq!(indexes, (0..outcome.after_index).collect::<Vec<_>>());
    assert_eq!(status(&second.hub).await, SessionStatus::idle());
    assert_eq!(say(&elsewhere, "now").await, finished());
    assert_eq!(say(&session, "and now").await, finished());
    assert_eq!(world.prompts(&id), ["talk", "now", "and now"]);
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn a_follower_takes_over_when_the_owner_dies() {
    let world = World::new(SCRIPT);
    let (process, session) = world.session().await;
    let id = session.id().clone();
    let _ticket = session.prompt(prompt("talk"));
    pause(100).await;
    let second = world.process();
    let elsewhere = second.hub.open(&id).await.unwrap();
    let (shown, _reader) = read(elsewhere.attach(None, AttachFrom::Beginning).await.unwrap());
    process.kill();
    pause(500).await;
    world.check_rest(&id);
    let last = shown.lock().unwrap().last().cloned().unwrap();
    assert!(last.2.is_terminal(), "{last:?}");
    assert_eq!(say(&elsewhere, "now").await, finished());
    world.check_rest(&id);
}

/// The other process goes on writing under the lease it held when we looked.
#[tokio::test(start_paused = true)]
async fn what_was_read_while_another_process_wrote_is_read_again() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let id = session.id().clone();
    for delay in 0..12 {
        let ticket = session.prompt(prompt("talk"));
        pause(delay).await;
        let second = world.process();
        let elsewhere = second.hub.open(&id).await.unwrap();
        answer(ticket).await.unwrap();
        assert_eq!(say(&elsewhere, "now").await, finished(), "opened after {delay} ms");
    }
    let request = world.model.requests().pop().unwrap();
    assert_eq!(request.passages.len(), 4 * 12 - 1);
    world.check_rest(&id);
}

/// The reader has unread entries of our own when the other process writes.
#[tokio::test(start_paused = true)]
async fn a_reader_gets_our_entries_and_then_theirs() {
    let world = World::new(SCRIPT);
    let (_process, session) = world.session().await;
    let id = session.id().clone();
    let mut attachment = session.attach(None, AttachFrom::Now).await.unwrap();
    say(&session, "mine").await;
    let second = world.process();
    let elsewhere = second.hub.open(&id).await.unwrap();
    let ticket = elsewhere.prompt(prompt("talk"));
    pause(100).await;
    let _look = session.attach(None, AttachFrom::LiveRun).await.unwrap();
    let outcome = answer(ticket).await.unwrap();
    pause(500).await;
    let mut next = 0;
    while next < outcome.after_index {
        let segment = tokio::time::timeout(LONG, attachment.live.next()).await.expect("stuck").unwrap();
        assert_eq!(segment.first_index, next);
        next = segment.end_index();
    }
}
