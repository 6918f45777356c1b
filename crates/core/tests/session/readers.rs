//! Readers: attached in the middle, slow, far behind. Every entry once, in order, and the run never waits for
//! them.

use attache_core::chunk::FinishReason;
use attache_core::hub::AttachFrom;
use attache_core::limits::READER_QUEUE_BYTES;
use attache_core::part::Role;
use attache_core::turn::TurnEnd;

use crate::world::*;

fn finished() -> TurnEnd {
    TurnEnd::Finished(FinishReason::Stop)
}

#[tokio::test(start_paused = true)]
async fn attached_in_the_middle_rows_come_first_then_the_log() {
    let world = World::new("on \"talk\"\n stream 50 \"word \" every 10ms\non *\n text \"fine\"");
    let (_process, session) = world.session().await;
    say(&session, "before").await;
    let ticket = session.prompt(prompt("talk"));
    pause(200).await;
    let mut attachment = session.attach(None, AttachFrom::Beginning).await.unwrap();
    let mut replay = attachment.replay.take().unwrap();
    let mut replayed = Vec::new();
    while let Some(segment) = replay.next().await.unwrap() {
        replayed.push((segment.role, segment.message_id.clone()));
    }
    let roles: Vec<_> = replayed.iter().map(|(role, _)| *role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::System]);
    let head = attachment.head;
    let (shown, _reader) = read(attachment);
    let outcome = answer(ticket).await.unwrap();
    pause(10).await;
    let shown = shown.lock().unwrap();
    let first = shown[0].0;
    assert!(head > first && head < outcome.after_index);
    let indexes: Vec<u64> = shown.iter().map(|(index, ..)| *index).collect();
    assert_eq!(indexes, (first..outcome.after_index).collect::<Vec<_>>());
    assert!(shown.iter().all(|(_, message, _)| !replayed.iter().any(|(_, seen)| seen == message)));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_overflows_reads_the_log_in_order() {
    let piece = "x".repeat(8 * 1024);
    let world = World::new(&format!("on *\n stream 400 \"{piece}\""));
    let (_process, session) = world.session().await;
    let mut attachment = session.attach(None, AttachFrom::Now).await.unwrap();
    let outcome = answer(session.prompt(prompt("go"))).await.unwrap();
    assert_eq!(outcome.end, finished());
    let mut bytes = 0;
    let mut next = 0;
    while next < outcome.after_index {
        let segment = attachment.live.next().await.unwrap();
        assert_eq!(segment.first_index, next);
        next = segment.end_index();
        bytes += segment.bytes;
    }
    assert!(bytes > 2 * READER_QUEUE_BYTES);
}

#[tokio::test(start_paused = true)]
async fn the_log_is_not_trimmed_under_a_reader() {
    let piece = "x".repeat(8 * 1024);
    let world = World::new(&format!("on *\n stream 200 \"{piece}\""));
    let (_process, session) = world.session().await;
    let mut attachment = session.attach(None, AttachFrom::Now).await.unwrap();
    for _ in 0..4 {
        assert_eq!(say(&session, "go").await, finished());
    }
    assert_eq!(world.disk.lock().unwrap().segments(session.id()).next().unwrap().first_index, 0);
    let last = answer(session.prompt(prompt("go"))).await.unwrap().after_index;
    let mut next = 0;
    while next < last {
        let segment = attachment.live.next().await.unwrap();
        assert_eq!(segment.first_index, next);
        next = segment.end_index();
    }
    say(&session, "go").await;
    let first = world.disk.lock().unwrap().segments(session.id()).next().unwrap().first_index;
    assert!(first > 0, "what everybody has read is trimmed");
}

#[tokio::test(start_paused = true)]
async fn without_readers_only_the_last_run_stays_in_the_log() {
    let world = World::new("on *\n text \"fine\"");
    let (_process, session) = world.session().await;
    let before = answer(session.prompt(prompt("one"))).await.unwrap().after_index;
    say(&session, "two").await;
    let first = world.disk.lock().unwrap().segments(session.id()).next().unwrap().first_index;
    assert_eq!(first, before);
}
