//! C2: SIGKILL inside a background task: its result or its failure is told exactly once, nothing is doubled,
//! and both sessions go on.

use std::time::Duration;

use attache_testkit::binary::{Agent, Home};
use attache_testkit::database::connect;
use serde_json::{Value, json};

use crate::story::{nothing_is_lost, started, times_to_kill, until, user_messages};

/// Kills that must meet a task under way, in a test run.
const MEETINGS: u32 = 25;

/// With fewer meetings than one in this many kills, something is wrong with the test.
const KILLS_PER_MEETING: u32 = 8;

const SCRIPT: &str = r#"
on "go"
  call task {"subagent_type":"explore","prompt":"look around","background":true}
  ---
  text "begun"
on "look around"
  call read {"path":"a.txt"}
  ---
  stream 25 "seen " every 1ms
on *
  text "fine"
"#;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// What was left behind by a killed process.
struct Left {
    session: String,
    shown: Vec<Value>,
}

/// The children of a session's tasks.
fn children(home: &Home, session: &str) -> Vec<String> {
    let database = connect(home);
    let sql = "SELECT id FROM chat_sessions WHERE parent_id = ?1 AND json_extract(metadata_json, '$.task') IS NOT NULL";
    let mut rows = database.prepare(sql).unwrap();
    rows.query_map([session], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// How often the session was told of a task's end, and how many results it is owed.
fn told_and_owed(home: &Home, session: &str) -> (i64, i64) {
    connect(home)
        .query_row(
            "SELECT (SELECT count(*) FROM chat_messages WHERE session_id = ?1
                     AND json_extract(metadata_json, '$.task_result') IS NOT NULL),
                    (SELECT coalesce(json_array_length(metadata_json, '$.background_tasks'), 0)
                     FROM chat_sessions WHERE id = ?1)",
            [session],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap()
}

#[tokio::test]
async fn after_kills_inside_of_background_tasks_each_is_told_once() {
    let seed = std::env::var("TEST_KILL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()));
    let mut random = Random(seed);
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    std::fs::write(home.workspace().join("a.txt"), "some text\n").unwrap();
    let wanted = times_to_kill(MEETINGS);
    let (mut kills, mut meetings, mut left) = (0, 0, None);
    loop {
        let mut agent = started(&home).await;
        if let Some(left) = left.take() {
            check(&home, &agent, &left, &format!("seed {seed}, kill {kills}")).await;
        }
        if meetings >= wanted {
            agent.finish(&home).await;
            break;
        }
        assert!(kills < wanted * KILLS_PER_MEETING, "seed {seed}: only {meetings} of {kills} kills met one");
        let killed = run_and_kill(&home, &mut agent, &mut random).await;
        kills += 1;
        meetings += u32::from(told_and_owed(&home, &killed.session) == (0, 1));
        left = Some(killed);
    }
    println!("{kills} kills, {meetings} of them inside of a background task");
}

async fn run_and_kill(home: &Home, agent: &mut Agent, random: &mut Random) -> Left {
    let session = agent.new_session(&home.workspace()).await;
    let pending = agent.start_prompt(&session, "go");
    tokio::time::sleep(Duration::from_micros(random.below(60_000))).await;
    agent.kill().await;
    drop(pending);
    agent.client.wait_for_end().await;
    let shown = agent.client.updates(&session);
    agent.client.finish_cut();
    Left { session, shown }
}

async fn check(home: &Home, agent: &Agent, left: &Left, at: &str) {
    let before = told_and_owed(home, &left.session);
    let loaded = agent.load(&left.session, &home.workspace()).await;
    if let Err(lost) = nothing_is_lost(&left.shown, &loaded) {
        panic!("{at}: {lost}");
    }
    let said = user_messages(&loaded);
    assert!(said.is_empty() || said == ["go"], "{at}: {said:?}");
    until("nothing is owed", Duration::from_secs(10), || told_and_owed(home, &left.session).1 == 0).await;
    let (told, _) = told_and_owed(home, &left.session);
    assert_eq!(told, before.0 + before.1, "{at}: told {told} times, {before:?} before");
    assert!(told <= 1, "{at}: doubled");
    let children = children(home, &left.session);
    assert!(children.len() <= 1, "{at}: {children:?}");
    let params = json!({ "sessionId": left.session, "prompt": [{ "type": "text", "text": "after" }] });
    let answer = agent.client.request("session/prompt", params).await;
    assert!(answer.is_ok(), "{at}: {answer:?}");
    // What the child had said is whole, and it goes on, too.
    for child in children {
        let said = agent.load(&child, &home.workspace()).await;
        assert!(user_messages(&said).len() <= 1, "{at}: {said:?}");
        let params = json!({ "sessionId": child, "prompt": [{ "type": "text", "text": "after" }] });
        let answer = agent.client.request("session/prompt", params).await;
        assert!(answer.is_ok(), "{at}: {answer:?}");
    }
}
