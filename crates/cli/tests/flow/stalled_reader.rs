//! P11: a client that stops reading costs itself only: the run goes on, is stored, and arrives whole later.

use std::time::Duration;

use attache_testkit::database::connect;

use crate::stage::{Stage, until};

const MIB: u64 = 1024 * 1024;
const BLOCKS: usize = 100;
const DELTAS_PER_BLOCK: usize = 100;
const DELTA_BYTES: usize = 10_000;

/// Each block has words of its own, so that a lost, doubled or moved piece shows.
fn delta(block: usize) -> String {
    format!("<{block:04}>").chars().cycle().take(DELTA_BYTES).collect()
}

fn script() -> String {
    let mut script = "on \"pour\"\n".to_owned();
    for block in 0..BLOCKS {
        script.push_str(&format!("  stream {DELTAS_PER_BLOCK} {:?}\n", delta(block)));
    }
    script.push_str("on *\n  text \"fine\"\n");
    script
}

#[tokio::test]
async fn a_hundred_megabytes_wait_in_the_store_while_nobody_reads() {
    let stage = Stage::new(&script()).await;
    stage.agent.prompt(&stage.session, "hello").await.unwrap();
    let idle = stage.agent.resident_bytes();
    let mark = stage.agent.client.mark();
    stage.agent.client.stop_reading();
    let pending = stage.agent.start_prompt(&stage.session, "pour");
    let database = connect(&stage.home);
    let runs = || -> i64 {
        database
            .query_row("SELECT count(*) FROM leases WHERE run_message_id IS NOT NULL", [], |row| row.get(0))
            .unwrap()
    };
    until("the run to start", Duration::from_secs(20), || runs() == 1).await;
    until("the run to end by itself", Duration::from_secs(90), || runs() == 0).await;
    let grown = stage.agent.peak_resident_bytes().saturating_sub(idle);
    assert!(grown <= 16 * MIB, "{} MiB above idle", grown / MIB);
    let stored: i64 = database
        .query_row(
            "SELECT sum(length(json_extract(data_json, '$.text'))) FROM chat_parts
             WHERE session_id = ?1 AND type = 'text'",
            [&stage.session],
            |row| row.get(0),
        )
        .unwrap();
    let poured = (BLOCKS * DELTAS_PER_BLOCK * DELTA_BYTES) as i64;
    assert!((poured..poured + 100).contains(&stored), "{stored} bytes are stored of {poured}");

    stage.agent.client.read_again();
    let answer = pending.answer_within(Duration::from_secs(120)).await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    let mut text = String::with_capacity(poured as usize);
    for update in stage.agent.client.updates_since(mark, &stage.session) {
        if update["sessionUpdate"] == "agent_message_chunk" {
            text.push_str(update["content"]["text"].as_str().unwrap());
        }
    }
    assert_eq!(text.len() as i64, poured);
    for (block, piece) in text.as_bytes().chunks(DELTAS_PER_BLOCK * DELTA_BYTES).enumerate() {
        let expected = delta(block).repeat(DELTAS_PER_BLOCK);
        assert!(piece == expected.as_bytes(), "block {block} differs");
    }
    let grown = stage.agent.peak_resident_bytes().saturating_sub(idle);
    assert!(grown <= 16 * MIB, "{} MiB above idle after it was read", grown / MIB);
    stage.finish().await;
}

/// A stalled reader of one session must not keep it from being cancelled, nor other sessions from running.
#[tokio::test]
async fn while_nobody_reads_cancel_and_other_sessions_go_on() {
    let stage =
        Stage::new("on \"flood\"\n  stream 1000000000 \"tick tick tick \"\non *\n  text \"fine\"\n").await;
    let other = stage.agent.new_session(&stage.home.workspace()).await;
    stage.agent.client.stop_reading();
    let flood = stage.agent.start_prompt(&stage.session, "flood");
    let quiet = stage.agent.start_prompt(&other, "hello");
    let database = connect(&stage.home);
    let answered = |session: &str| -> bool {
        let sql = "SELECT count(*) FROM leases JOIN chat_messages USING (session_id)
                   WHERE session_id = ?1 AND run_message_id IS NULL AND role = 'assistant'";
        database.query_row(sql, [session], |row| row.get::<_, i64>(0)).unwrap() > 0
    };
    until("the other session's turn", Duration::from_secs(20), || answered(&other)).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    stage.cancel();
    until("the flood to end", Duration::from_secs(5), || answered(&stage.session)).await;
    stage.agent.client.read_again();
    assert_eq!(quiet.answer().await.unwrap()["stopReason"], "end_turn");
    let answer = flood.answer_within(Duration::from_secs(60)).await.unwrap();
    assert_eq!(answer["stopReason"], "cancelled");
    stage.finish().await;
}

/// A client that keeps asking and never reads must not fill our memory with answers: we stop reading it
/// instead.
#[tokio::test]
async fn a_client_that_asks_and_never_reads_fills_its_own_pipe_only() {
    const ASKED: usize = 30_000;
    let stage = Stage::new("on *\n  text \"fine\"\n").await;
    stage.agent.prompt(&stage.session, "hello").await.unwrap();
    let idle = stage.agent.resident_bytes();
    stage.agent.client.stop_reading();
    let filler = "x".repeat(150);
    let asked: Vec<_> = (0..ASKED)
        .map(|number| {
            let params = serde_json::json!({"sessionId": format!("{filler}{number}")});
            stage.agent.client.start("session/close", params)
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let grown = stage.agent.peak_resident_bytes().saturating_sub(idle);
    assert!(grown <= 16 * MIB, "{} MiB above idle", grown / MIB);
    stage.agent.client.read_again();
    for request in asked {
        let error =
            request.answer_within(Duration::from_secs(60)).await.expect_err("there is no such session");
        assert!(error.code == -32002 || error.message.contains("1024"), "{error:?}");
    }
    let grown = stage.agent.peak_resident_bytes().saturating_sub(idle);
    assert!(grown <= 16 * MIB, "{} MiB above idle", grown / MIB);
    stage.finish().await;
}
