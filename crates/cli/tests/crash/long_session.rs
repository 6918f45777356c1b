//! C7: a session of hundreds of thousands of parts loads as a stream: whole, in order, with bounded memory.
//!
//! Read by hand and not by the testing client, which keeps every message: here the reader must not be the slow
//! one. Every hundredth line is held to the schema.

use std::process::Stdio;

use attache_testkit::binary::Home;
use attache_testkit::database::connect;
use attache_testkit::processes::peak_resident_bytes;
use attache_testkit::schema::Validator;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use crate::story::started;

const MESSAGES: i64 = 1_000;
const PARTS_PER_MESSAGE: i64 = 1_000;
const MIB: u64 = 1024 * 1024;

/// One session whose answers were made directly in the database: a million turns would take an hour.
async fn home_with_a_long_session() -> (Home, String) {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), "on *\n  text \"fine\"\n");
    let agent = started(&home).await;
    let session = agent.new_session(&home.workspace()).await;
    agent.finish(&home).await;
    let mut database = connect(&home);
    database.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144").unwrap();
    let transaction = database.transaction().unwrap();
    transaction
        .execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
             INSERT INTO chat_messages (id, session_id, seq, role, created_at, updated_at)
             SELECT printf('msg_%08d', i), ?1, i, iif(i % 2 = 1, 'user', 'assistant'), i, i FROM n",
            (&session, MESSAGES),
        )
        .unwrap();
    transaction
        .execute(
            "WITH RECURSIVE m(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM m WHERE i < ?2),
                            p(j) AS (SELECT 0 UNION ALL SELECT j + 1 FROM p WHERE j < ?3 - 1)
             INSERT INTO chat_parts (id, message_id, session_id, \"index\", type, data_json, created_at, updated_at)
             SELECT printf('prt_%08d_%04d', i, j), printf('msg_%08d', i), ?1, j, 'text',
                    printf('{\"type\":\"text\",\"text\":\"%d/%d \"}', i, j), i, i FROM m, p",
            (&session, MESSAGES, PARTS_PER_MESSAGE),
        )
        .unwrap();
    transaction.commit().unwrap();
    (home, session)
}

#[tokio::test]
async fn a_million_parts_are_loaded_in_order_within_bounded_memory() {
    let (home, session) = home_with_a_long_session().await;
    let mut child = home
        .command()
        .arg("acp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::with_capacity(1024 * 1024, stdout);
    let mut line = String::new();
    let initialize =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    stdin.write_all(format!("{initialize}\n").as_bytes()).await.unwrap();
    lines.read_line(&mut line).await.unwrap();
    let idle = peak_resident_bytes(child.id().unwrap()).unwrap();
    let load = json!({"jsonrpc": "2.0", "id": 2, "method": "session/load",
        "params": {"sessionId": session, "cwd": home.workspace(), "mcpServers": []}});
    stdin.write_all(format!("{load}\n").as_bytes()).await.unwrap();
    let (mut next, mut seen) = ((1, 0), 0_u64);
    loop {
        line.clear();
        assert!(lines.read_line(&mut line).await.unwrap() > 0, "it ended before its answer");
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 2 {
            assert!(message["result"].is_object(), "{message}");
            break;
        }
        seen += 1;
        if seen.is_multiple_of(100) {
            Validator::shared().notification("session/update", &message["params"]).unwrap();
        }
        follow(&mut next, &message["params"]["update"]);
    }
    assert_eq!(next, (MESSAGES + 1, 0), "everything was told");
    let grown = peak_resident_bytes(child.id().unwrap()).unwrap() - idle;
    assert!(grown <= 16 * MIB, "{} MiB above idle", grown / MIB);
    a_withdrawn_load_stops(&mut stdin, &mut lines, load).await;
    drop(stdin);
    assert!(child.wait().await.unwrap().success());
}

/// The client may change its mind: the replay ends early, and says so.
async fn a_withdrawn_load_stops(stdin: &mut ChildStdin, lines: &mut BufReader<ChildStdout>, mut load: Value) {
    load["id"] = json!(3);
    stdin.write_all(format!("{load}\n").as_bytes()).await.unwrap();
    let mut line = String::new();
    lines.read_line(&mut line).await.unwrap();
    let withdraw = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 3}});
    stdin.write_all(format!("{withdraw}\n").as_bytes()).await.unwrap();
    let mut seen = 0;
    loop {
        line.clear();
        lines.read_line(&mut line).await.unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 3 {
            assert_eq!(message["error"]["code"], -32800, "{message}");
            break;
        }
        seen += 1;
    }
    assert!(seen < MESSAGES * PARTS_PER_MESSAGE / 2, "{seen} updates came all the same");
}

/// Each piece of text must be the next one; one update may carry several.
fn follow(next: &mut (i64, i64), update: &Value) {
    let kind = update["sessionUpdate"].as_str().unwrap_or_default();
    if !matches!(kind, "user_message_chunk" | "agent_message_chunk") {
        return;
    }
    let text = update["content"]["text"].as_str().unwrap();
    for piece in text.split_terminator(' ') {
        assert_eq!(piece, format!("{}/{}", next.0, next.1), "in {kind}");
        assert_eq!(kind == "user_message_chunk", next.0 % 2 == 1);
        next.1 += 1;
        if next.1 == PARTS_PER_MESSAGE {
            *next = (next.0 + 1, 0);
        }
    }
}
