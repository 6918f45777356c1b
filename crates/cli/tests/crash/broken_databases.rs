//! C5: a database that is corrupt, cut, foreign or newer: set aside and told, or refused; never changed, never deleted.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use attache_testkit::binary::Home;
use rusqlite::Connection;

use crate::story::started;

const SCRIPT: &str = "on *\n  text \"fine\"\n";

/// Breaks the file at this path.
type Fault = fn(&Path);

fn set_aside(home: &Home) -> Vec<PathBuf> {
    std::fs::read_dir(home.home())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("sessions.db.damaged-"))
        .filter(|path| !path.to_str().unwrap().ends_with("-wal") && !path.to_str().unwrap().ends_with("-shm"))
        .collect()
}

/// A home with a database that has been used.
async fn used_home() -> (Home, String) {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let agent = started(&home).await;
    let session = agent.new_session(&home.workspace()).await;
    for _ in 0..50 {
        agent.prompt(&session, &"a longer prompt ".repeat(50)).await.unwrap();
    }
    agent.finish(&home).await;
    connect_and_fold(&home.database());
    (home, session)
}

fn connect_and_fold(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

#[tokio::test]
async fn what_is_no_database_of_ours_is_set_aside_and_told() {
    let broken: Vec<(&str, Fault)> = vec![
        ("garbage", |path| std::fs::write(path, "this is no database\n".repeat(1_000)).unwrap()),
        ("zeroes", |path| std::fs::write(path, vec![0; 65_536]).unwrap()),
        ("a cut header", |path| truncate(path, 50)),
        ("cut in the middle", |path| {
            truncate(path, std::fs::metadata(path).unwrap().len() / 2 / 4096 * 4096)
        }),
        ("an overwritten root", |path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes[4096..40_960].fill(0xA5);
            std::fs::write(path, bytes).unwrap();
        }),
        ("a foreign database", |path| {
            std::fs::remove_file(path).unwrap();
            let connection = Connection::open(path).unwrap();
            connection
                .execute_batch("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup');")
                .unwrap();
        }),
    ];
    for (what, break_it) in broken {
        let (home, _) = used_home().await;
        break_it(&home.database());
        let bytes = std::fs::read(home.database()).unwrap();
        let agent = started(&home).await;
        let moved = set_aside(&home);
        assert_eq!(moved.len(), 1, "{what}: {moved:?}\n{}", home.log());
        assert!(std::fs::read(&moved[0]).unwrap() == bytes, "{what}: the file was changed");
        assert!(home.log().contains(moved[0].to_str().unwrap()), "{what}: the user is told: {}", home.log());
        let session = agent.new_session(&home.workspace()).await;
        assert_eq!(agent.prompt(&session, "hello").await.unwrap()["stopReason"], "end_turn", "{what}");
        agent.finish(&home).await;
    }
}

fn truncate(path: &Path, bytes: u64) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

#[tokio::test]
async fn a_newer_database_is_refused_and_untouched() {
    let (home, session) = used_home().await;
    {
        let connection = Connection::open(home.database()).unwrap();
        connection.execute_batch("PRAGMA user_version = 999").unwrap();
    }
    connect_and_fold(&home.database());
    let bytes = std::fs::read(home.database()).unwrap();
    for arguments in [&["acp"][..], &["sessions", "list"][..], &["sessions", "show", &session][..]] {
        let output = home.command().args(arguments).stdin(Stdio::null()).output().await.unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(told.contains("newer") && told.contains("999"), "{arguments:?}: {told}");
        assert!(std::fs::read(home.database()).unwrap() == bytes, "{arguments:?}: the file was changed");
        assert_eq!(set_aside(&home), [] as [PathBuf; 0]);
    }
}

/// Looking at sessions is no reason to lose a database either.
#[tokio::test]
async fn the_sessions_command_sets_a_damaged_database_aside_as_well() {
    let (home, _) = used_home().await;
    std::fs::write(home.database(), "nonsense".repeat(100)).unwrap();
    let output = home.command().args(["sessions", "list"]).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(set_aside(&home).len(), 1, "{told}");
    assert!(told.contains("damaged"), "{told}");
}
