//! C3: several processes on one database, and one session in two of them.

use std::time::Duration;

use attache_testkit::binary::Home;
use serde_json::json;

use crate::story::{agent_text, leave, nothing_is_lost, started, until, user_messages};

const SCRIPT: &str = r#"
on "slow"
  stream 1000000 "tick " every 2ms
on *
  stream 30 "word "
"#;

#[tokio::test]
async fn eight_processes_share_a_database_without_a_word_about_locks() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let mut agents = Vec::new();
    for _ in 0..8 {
        let agent = home.start();
        agents.push(agent);
    }
    let mut work = Vec::new();
    for agent in agents {
        let workspace = home.workspace();
        work.push(tokio::spawn(async move {
            agent.initialize().await;
            for _ in 0..3 {
                let session = agent.new_session(&workspace).await;
                for _ in 0..5 {
                    let answer = agent.prompt(&session, "hello").await;
                    assert_eq!(answer.expect("no process may fail")["stopReason"], "end_turn");
                }
            }
            agent
        }));
    }
    for agent in work {
        leave(agent.await.unwrap()).await;
    }
    assert_eq!(home.orphans(), []);
    let told =
        home.log() + &std::fs::read_to_string(home.home().join("logs/attache.log")).unwrap_or_default();
    assert!(!told.contains("locked") && !told.contains("busy"), "{told}");
    let counts = attache_testkit::database::row_counts(&home);
    assert_eq!((counts.sessions, counts.messages), (24, 240));
}

#[tokio::test]
async fn a_second_process_follows_a_run_can_not_disturb_it_and_takes_over_after_a_kill() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let mut owner = started(&home).await;
    let session = owner.new_session(&home.workspace()).await;
    let pending = owner.start_prompt(&session, "slow");
    owner.client.wait_for_update(&session, "agent_message_chunk").await;

    let other = started(&home).await;
    let loaded = other.load(&session, &home.workspace()).await;
    assert_eq!(user_messages(&loaded), ["slow"]);
    let at_load = agent_text(&loaded).len();
    until("the run to be followed", Duration::from_secs(10), || {
        agent_text(&other.client.updates(&session)).len() > at_load + 200
    })
    .await;
    let error = other.prompt(&session, "hello").await.expect_err("it runs elsewhere");
    assert!(error.message.contains("elsewhere") || error.message.contains("another process"), "{error:?}");
    assert!(error.code == -32600 || error.code == -32603, "{error:?}");
    for method in ["session/set_mode", "session/delete"] {
        let params = json!({"sessionId": session, "modeId": "plan"});
        let error = other.client.request(method, params).await.expect_err("it runs elsewhere");
        assert!(!error.message.contains("locked"), "{method}: {error:?}");
    }
    // A cancel from the side must not end the owner's turn either.
    other.client.notify("session/cancel", json!({"sessionId": session}));
    let before = agent_text(&owner.client.updates(&session)).len();
    until("the owner to go on", Duration::from_secs(10), || {
        agent_text(&owner.client.updates(&session)).len() > before + 50
    })
    .await;

    owner.kill().await;
    drop(pending);
    owner.client.wait_for_end().await;
    let shown = owner.client.updates(&session);
    owner.client.finish_cut();
    let answer = other.prompt(&session, "hello").await.expect("the owner is dead");
    assert_eq!(answer["stopReason"], "end_turn");
    let told = other.load(&session, &home.workspace()).await;
    nothing_is_lost(&shown, &told).unwrap();
    assert_eq!(user_messages(&told), ["slow", "hello"]);
    leave(other).await;
    assert_eq!(home.orphans(), []);
}

/// Both may use an idle session in turns; each sees what the other did.
#[tokio::test]
async fn two_processes_take_turns_in_an_idle_session() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let (first, second) = (started(&home).await, started(&home).await);
    let session = first.new_session(&home.workspace()).await;
    first.prompt(&session, "one").await.unwrap();
    second.load(&session, &home.workspace()).await;
    for text in ["two", "three", "four", "five"] {
        let agent = if text.starts_with('t') { &second } else { &first };
        let answer = agent.prompt(&session, text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!(answer["stopReason"], "end_turn");
    }
    let story = first.load(&session, &home.workspace()).await;
    assert_eq!(user_messages(&story), ["one", "two", "three", "four", "five"]);
    leave(second).await;
    leave(first).await;
}
