//! C2: SIGKILL inside a compaction, automatic or by command: it is a whole boundary or none, nothing that was
//! shown is lost, no prompt is doubled, and the session goes on.

use std::time::Duration;

use attache_testkit::binary::{Agent, Home};
use attache_testkit::database::connect;
use serde_json::{Value, json};

use crate::story::{nothing_is_lost, started, times_to_kill, user_messages};

/// Kills that must meet a compaction under way, in a test run.
const MEETINGS: u32 = 25;

/// With fewer meetings than one in this many kills, something is wrong with the test.
const KILLS_PER_MEETING: u32 = 8;

const SCRIPT: &str = r###"
model narrow context=20000 max_output=1000
on "fill"
  call read {"path":"a.txt"}
  ---
  text "filled"
  usage input=19500 output=1
on "talk"
  text "talked"
on "<conversation>"*
  stream 25 "## Goal\n" every 1ms
on "Stop the work here"*
  stream 25 "## Goal\n" every 1ms
on *
  text "fine"
"###;

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
    prompts: [&'static str; 2],
    shown: Vec<Value>,
}

/// The states of the session's compactions.
fn states(home: &Home, session: &str) -> Vec<String> {
    let database = connect(home);
    let mut rows = database
        .prepare(
            "SELECT json_extract(data_json, '$.data.status') FROM chat_parts
             WHERE session_id = ?1 AND type = 'data-compaction' ORDER BY created_at",
        )
        .unwrap();
    let states = rows.query_map([session], |row| row.get(0)).unwrap();
    states.map(Result::unwrap).collect()
}

#[tokio::test]
async fn after_kills_inside_of_compactions_each_is_whole_or_none() {
    let seed = std::env::var("TEST_KILL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()));
    let mut random = Random(seed);
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    std::fs::write(home.workspace().join("a.txt"), "some text\n".repeat(200)).unwrap();
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
        meetings += u32::from(states(&home, &killed.session).iter().any(|state| state == "in_progress"));
        left = Some(killed);
    }
    println!("{kills} kills, {meetings} of them inside of a compaction");
}

async fn run_and_kill(home: &Home, agent: &mut Agent, random: &mut Random) -> Left {
    let session = agent.new_session(&home.workspace()).await;
    agent.prompt(&session, "/model script/narrow").await.unwrap();
    let prompts =
        [["fill", "next"], ["fill", "/compact the names"], ["talk", "/compact"]][random.below(3) as usize];
    agent.prompt(&session, prompts[0]).await.unwrap();
    let pending = agent.start_prompt(&session, prompts[1]);
    tokio::time::sleep(Duration::from_micros(random.below(45_000))).await;
    agent.kill().await;
    drop(pending);
    agent.client.wait_for_end().await;
    let shown = agent.client.updates(&session);
    agent.client.finish_cut();
    Left { session, prompts, shown }
}

async fn check(home: &Home, agent: &Agent, left: &Left, at: &str) {
    let at = format!("{at}, {}", left.prompts[1]);
    let loaded = agent.load(&left.session, &home.workspace()).await;
    if let Err(lost) = nothing_is_lost(&left.shown, &loaded) {
        panic!("{at}: {lost}");
    }
    let said = user_messages(&loaded);
    let first = ["/model script/narrow", left.prompts[0]];
    assert!(said == first || said == [first[0], first[1], left.prompts[1]], "{at}: {said:?}");
    let found = states(home, &left.session);
    assert!(!found.iter().any(|state| state == "in_progress"), "{at}: {found:?}");
    let completed = found.iter().filter(|state| *state == "completed").count();
    assert!(completed <= 1, "{at}: doubled: {found:?}");
    let summaries: i64 = connect(home)
        .query_row(
            "SELECT count(*) FROM chat_parts WHERE session_id = ?1 AND type = 'data-compaction'
             AND json_extract(data_json, '$.data.status') = 'completed'
             AND json_extract(data_json, '$.data.summary') LIKE '## Goal%'",
            [&left.session],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(summaries, completed as i64, "{at}: a boundary without its summary");
    let params = json!({ "sessionId": left.session, "prompt": [{ "type": "text", "text": "after" }] });
    let answer = agent.client.request("session/prompt", params).await;
    assert!(answer.is_ok(), "{at}: {answer:?}");
}
