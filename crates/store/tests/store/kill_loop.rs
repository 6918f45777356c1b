//! A process that streams is killed at random moments, hundreds of times; nothing it has said to be stored is
//! lost.

use std::path::Path;
use std::time::Duration;

use attache_core::ports::store::{Change, LogSegment, MessageRow, PartRow, Store};
use attache_store::{Durability, SqliteStore};
use serde_json::{Value, json};

use crate::children;
use crate::fixture::*;

/// What the child does: each commit carries some chunks and the part that says how far they go.
pub(crate) async fn stream(home: &Path, seed: usize) {
    let store = SqliteStore::open(&location(home), Durability::Normal).unwrap().store;
    if store.session(&session_id("a")).await.unwrap().is_none() {
        let changes = vec![
            Change::CreateSession(Box::new(session("a"))),
            Change::InsertMessage(message("a", "m", Some(1))),
        ];
        commit(&store, batch("a", None, changes)).await.unwrap();
    }
    let epoch = acquire(&store, "a").await;
    let mut next = store.session(&session_id("a")).await.unwrap().unwrap().next_index;
    let mut waiting = std::collections::VecDeque::new();
    for round in seed.. {
        let last = next + (round % 5) as u64;
        let part = streamed_part(last, round % 700);
        let changes = vec![Change::PutPart(part), Change::AppendLog(segment(next, last))];
        let (told, acknowledged) = tokio::sync::oneshot::channel();
        store.commit(
            batch("a", Some(epoch), changes),
            Box::new(move |result| {
                result.unwrap();
                println!("stored {last}");
                told.send(()).unwrap();
            }),
        );
        waiting.push_back(acknowledged);
        next = last + 1;
        // Some under way at once, so that groups of one and of several are met.
        if waiting.len() > round % 4 {
            waiting.pop_front().unwrap().await.unwrap();
        }
    }
}

fn streamed_part(last: u64, padding: usize) -> PartRow {
    let mut row = part("a", "m", 0, "");
    row.data_json = json!({"type": "text", "last": last, "text": "x".repeat(padding)}).to_string();
    row
}

/// What a store holds after a crash.
#[derive(Clone)]
struct Found {
    next_index: u64,
    log: Vec<LogSegment>,
    rows: Vec<(MessageRow, Vec<PartRow>)>,
}

async fn look(store: &SqliteStore) -> Option<Found> {
    let record = store.session(&session_id("a")).await.unwrap()?;
    let log = store.read_log(&session_id("a"), 0, usize::MAX).await.unwrap();
    Some(Found { next_index: record.next_index, log, rows: read_all(store, "a", usize::MAX).await })
}

/// The checker: everything acknowledged is there, the log is dense, the rows agree with it.
fn check(acknowledged: Option<u64>, found: Option<&Found>) -> Result<(), String> {
    let Some(found) = found else {
        return acknowledged.map_or(Ok(()), |last| Err(format!("lost: index {last} and its session")));
    };
    let mut next = 0;
    for segment in &found.log {
        if segment.first_index != next {
            return Err(format!("lost: index {next}, the log goes on at {}", segment.first_index));
        }
        for line in segment.chunks.lines() {
            let chunk: Value =
                serde_json::from_str(line).map_err(|error| format!("broken chunk: {error}"))?;
            if chunk["n"] != next {
                return Err(format!("index {next} holds {chunk}"));
            }
            next += 1;
        }
        if segment.last_index + 1 != next {
            return Err(format!("lost: a segment to {} ends at {next}", segment.last_index));
        }
    }
    if acknowledged.is_some_and(|last| last >= next) {
        return Err(format!("lost: index {acknowledged:?} was acknowledged, the log ends before {next}"));
    }
    if found.next_index != next {
        return Err(format!("the session goes on at {}, the log at {next}", found.next_index));
    }
    let [(message, parts)] = found.rows.as_slice() else {
        return Err(format!("{} messages instead of one", found.rows.len()));
    };
    if *message.id.as_str() != *message_id("m").as_str() {
        return Err(format!("message {}", message.id));
    }
    let told = parts.first().map(|part| {
        let data: Value = serde_json::from_str(&part.data_json).unwrap_or_default();
        data["last"].as_u64().unwrap_or(u64::MAX)
    });
    if told != next.checked_sub(1) {
        return Err(format!("the part goes to {told:?}, the log to {next}"));
    }
    Ok(())
}

#[tokio::test]
async fn two_hundred_kills_lose_nothing_that_was_acknowledged() {
    let mut acknowledged_in_all = 0;
    for home_number in 0..11 {
        let home = Home::new();
        let mut acknowledged = None;
        for kill in 0..20 {
            let seed = home_number * 1_000 + kill * 37;
            let mut child = children::start("stream", home.directory.path(), seed);
            // Every fifth is killed blindly, which meets the opening, the migration and the taking of the
            // lease.
            if kill % 5 != 0
                && let Some(first) = child.line("stored")
            {
                acknowledged = acknowledged.max(Some(first.parse::<u64>().unwrap()));
            }
            std::thread::sleep(Duration::from_micros((seed as u64 * 7_919) % 9_000));
            for line in child.kill().lines() {
                // A line that was cut by the kill was not said.
                let complete = line.split_once("stored ").map(|(_, index)| index);
                acknowledged = acknowledged.max(complete.and_then(|index| index.parse().ok()));
            }
            let store = home.open();
            check(acknowledged, look(&store).await.as_ref())
                .unwrap_or_else(|lost| panic!("kill {kill}: {lost}"));
        }
        let intact: String = home.raw().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(intact, "ok");
        acknowledged_in_all += acknowledged.unwrap_or(0);
    }
    assert!(acknowledged_in_all > 2_000, "only {acknowledged_in_all} chunks were streamed at all");
}

/// The checker must be able to fail: each fault is put into a good store and must be told.
#[tokio::test]
async fn the_checker_sees_every_fault_that_is_put_in_on_purpose() {
    let faults = [
        ("DELETE FROM run_chunks WHERE first_index = 4", "lost: index 4"),
        ("DELETE FROM run_chunks WHERE first_index = 0", "lost: index 0"),
        ("DELETE FROM run_chunks WHERE first_index = 8", "lost: index Some(9) was acknowledged"),
        ("DELETE FROM run_chunks", "lost: index Some(9)"),
        ("UPDATE run_chunks SET chunks = replace(chunks, '5', '6')", "index 5 holds"),
        ("UPDATE run_chunks SET chunks = '{\"n\":4}' WHERE first_index = 4", "lost: a segment to 5"),
        ("UPDATE run_chunks SET chunks = '{' WHERE first_index = 4", "broken chunk"),
        ("UPDATE chat_parts SET data_json = '{\"last\": 7}'", "the part goes to Some(7)"),
        ("DELETE FROM chat_parts", "the part goes to None"),
        ("DELETE FROM chat_messages", "0 messages instead of one"),
        ("DELETE FROM chat_sessions", "lost: index 9 and its session"),
        ("SELECT 1", ""),
    ];
    for (fault, told) in faults {
        let home = Home::new();
        let store = home.open();
        let epoch = create(&store, "a").await;
        fenced(&store, "a", epoch, vec![Change::InsertMessage(message("a", "m", Some(1)))]).await.unwrap();
        for first in [0, 2, 4, 6, 8] {
            let changes = vec![
                Change::PutPart(streamed_part(first + 1, 3)),
                Change::AppendLog(segment(first, first + 1)),
            ];
            fenced(&store, "a", epoch, changes).await.unwrap();
        }
        let raw = home.raw();
        raw.execute_batch("PRAGMA foreign_keys = ON").unwrap();
        raw.execute_batch(fault).unwrap();
        let verdict = check(Some(9), look(&store).await.as_ref());
        match told {
            "" => verdict.unwrap(),
            told => assert!(verdict.as_ref().is_err_and(|lost| lost.contains(told)), "{fault}: {verdict:?}"),
        }
    }
}
