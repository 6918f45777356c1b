//! A damaged database that was set aside is told to whoever opens the next session, also to a client without
//! notices.

use attache_testkit::binary::Home;

use crate::story::started;

#[tokio::test]
async fn the_first_session_after_it_has_a_line_of_thought() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), "on *\n  text \"fine\"\n");
    let agent = started(&home).await;
    let session = agent.new_session(&home.workspace()).await;
    for _ in 0..20 {
        agent.prompt(&session, &"a longer prompt ".repeat(50)).await.unwrap();
    }
    agent.finish(&home).await;
    let connection = rusqlite::Connection::open(home.database()).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut bytes = std::fs::read(home.database()).unwrap();
    bytes[4096..40_960].fill(0xA5);
    std::fs::write(home.database(), bytes).unwrap();
    let agent = started(&home).await;
    let session = agent.new_session(&home.workspace()).await;
    let thought = agent.client.wait_for_update(&session, "agent_thought_chunk").await.to_string();
    assert!(thought.contains("was damaged") && thought.contains("sessions.db.damaged-"), "{thought}");
    let again = agent.new_session(&home.workspace()).await;
    agent.prompt(&again, "hello").await.unwrap();
    let told_again = agent.client.updates(&again).iter().any(|update| update.to_string().contains("damaged"));
    assert!(!told_again, "once is enough");
    agent.finish(&home).await;
}
