//! C1: SIGKILL at random moments of a stream; the next process must know all that the client had been shown.

use std::time::Duration;

use attache_testkit::binary::{Agent, Home};
use attache_testkit::database::connect;
use serde_json::{Value, json};

use crate::story::{agent_text, nothing_is_lost, started, user_messages};

/// Kills that must meet a stream; `TEST_SOAK` multiplies them. Where in the stream a kill falls is chance, so
/// a machine that is busy with other things may need more kills for as many.
const MEETINGS: u32 = 100;

/// With fewer meetings than one in this many kills, something is wrong with the test.
const KILLS_PER_MEETING: u32 = 5;

const SCRIPT: &str = r#"
on "paced"
  reasoning "let me think"
  stream 100000 "paced token " every 1ms
on "steps"
  text "first "
  call todo {"todos":[{"content":"one","status":"in_progress"},{"content":"two","status":"pending"}]}
  ---
  stream 40 "between " every 1ms
  call read {"path":"a.txt"}
  ---
  stream 100000 "last " every 1ms
on "flood"
  stream 100000000 "flood flood flood "
on *
  text "fine"
"#;

/// Small and repeatable; a failure names its seed, which `TEST_KILL_SEED` takes.
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
    message_id: String,
    prompt: &'static str,
    shown: Vec<Value>,
}

fn prompt_params(left: &Left) -> Value {
    json!({"sessionId": left.session, "prompt": [{"type": "text", "text": left.prompt}],
        "_meta": {"attache/messageId": left.message_id}})
}

#[tokio::test]
async fn after_a_hundred_kills_nothing_that_was_shown_is_lost_and_no_prompt_is_doubled() {
    let seed = std::env::var("TEST_KILL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()));
    let mut random = Random(seed);
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    std::fs::write(home.workspace().join("a.txt"), "some text\n").unwrap();
    let soak: u32 = std::env::var("TEST_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let wanted = MEETINGS * soak;
    let (mut kills, mut meetings) = (0, 0);
    let mut left: Option<Left> = None;
    // Each process looks at what the one before left, and is killed in its turn.
    loop {
        let mut agent = started(&home).await;
        if let Some(left) = left.take() {
            check(&home, &agent, &left, seed, kills).await;
            meetings += u32::from(!left.shown.is_empty());
        }
        if meetings >= wanted {
            agent.finish(&home).await;
            break;
        }
        let most = wanted * KILLS_PER_MEETING;
        assert!(kills < most, "seed {seed}: only {meetings} of {kills} kills met a stream");
        left = Some(run_and_kill(&home, &mut agent, &mut random, kills).await);
        kills += 1;
    }
    println!("{kills} kills, {meetings} of them met a stream");
}

async fn run_and_kill(home: &Home, agent: &mut Agent, random: &mut Random, kill: u32) -> Left {
    let session = agent.new_session(&home.workspace()).await;
    let prompt = ["paced", "steps", "flood", "paced"][random.below(4) as usize];
    let mut left = Left { session, message_id: format!("msg_kill_{kill}"), prompt, shown: Vec::new() };
    let pending = agent.client.start("session/prompt", prompt_params(&left));
    tokio::time::sleep(Duration::from_micros(random.below(40_000))).await;
    agent.kill().await;
    assert!(pending.answer_or_end().await.is_none(), "none of these prompts ends by itself");
    agent.client.wait_for_end().await;
    left.shown = agent.client.updates(&left.session);
    agent.client.finish_cut();
    left
}

async fn check(home: &Home, agent: &Agent, left: &Left, seed: u64, kill: u32) {
    let at = format!("seed {seed}, kill {kill}, {}", left.prompt);
    let loaded = agent.load(&left.session, &home.workspace()).await;
    if let Err(lost) = nothing_is_lost(&left.shown, &loaded) {
        panic!("{at}: {lost}");
    }
    let prompts = user_messages(&loaded);
    let said_something = left.shown.iter().any(|update| update.get("messageId").is_some());
    assert!(prompts.len() <= 1, "{at}: the prompt is doubled");
    assert!(!said_something || prompts == [left.prompt], "{at}: the prompt is lost");
    // A client that never got its answer sends the prompt again under the same id: it is stored once.
    if prompts.len() == 1 && kill.is_multiple_of(4) {
        let answer = agent.client.request("session/prompt", prompt_params(left)).await;
        assert!(answer.is_ok(), "{at}: {answer:?}");
        let again = agent.load(&left.session, &home.workspace()).await;
        assert_eq!(user_messages(&again), [left.prompt], "{at}: doubled by sending it again");
    }
}

/// The checker of this file, on a fault put in on purpose.
#[tokio::test]
async fn a_chunk_taken_out_of_the_database_is_noticed() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let mut agent = started(&home).await;
    let session = agent.new_session(&home.workspace()).await;
    let pending = agent.start_prompt(&session, "paced");
    crate::story::until("some text", Duration::from_secs(20), || {
        agent_text(&agent.client.updates(&session)).len() > 200 * "paced token ".len()
    })
    .await;
    agent.kill().await;
    drop(pending);
    agent.client.wait_for_end().await;
    let shown = agent.client.updates(&session);
    agent.client.finish_cut();
    let copy = home.home().join("copy.db");
    connect(&home).execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    let whole = started(&home).await;
    assert_eq!(nothing_is_lost(&shown, &whole.load(&session, &home.workspace()).await), Ok(()));
    whole.finish(&home).await;

    for suffix in ["-wal", "-shm"] {
        drop(std::fs::remove_file(home.home().join(format!("sessions.db{suffix}"))));
    }
    std::fs::rename(&copy, home.database()).unwrap();
    let last: i64 = connect(&home)
        .query_row("SELECT max(last_index) FROM run_chunks WHERE session_id = ?1", [&session], |row| {
            row.get(0)
        })
        .unwrap();
    // The last chunks that were committed, and what may have been folded from them.
    let database = connect(&home);
    let removed = database
        .execute("DELETE FROM run_chunks WHERE session_id = ?1 AND last_index > ?2", (&session, last - 150))
        .unwrap();
    assert!(removed > 0);
    database
        .execute(
            "DELETE FROM chat_parts WHERE session_id = ?1 AND type = 'text'
        AND message_id IN (SELECT id FROM chat_messages WHERE role = 'assistant')",
            [&session],
        )
        .unwrap();
    drop(database);
    let robbed = started(&home).await;
    let loaded = robbed.load(&session, &home.workspace()).await;
    let verdict = nothing_is_lost(&shown, &loaded);
    assert!(
        verdict.is_err(),
        "the loss went unnoticed: {} of {}",
        agent_text(&loaded).len(),
        agent_text(&shown).len()
    );
    robbed.finish(&home).await;
}
