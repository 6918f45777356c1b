//! C5: a database that is corrupt, cut, foreign or newer: set aside and told, or refused; never changed, never
//! deleted.

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
async fn a_damaged_database_of_ours_is_set_aside_and_told() {
    let broken: Vec<(&str, Fault)> = vec![
        ("cut in the middle", |path| {
            truncate(path, std::fs::metadata(path).unwrap().len() / 2 / 4096 * 4096)
        }),
        ("an overwritten root", |path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes[4096..40_960].fill(0xA5);
            std::fs::write(path, bytes).unwrap();
        }),
        ("an overwritten header", |path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes[..100].fill(0);
            std::fs::write(path, bytes).unwrap();
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
        let how = format!("attache sessions list --store {}", moved[0].display());
        assert!(home.log().contains(&how), "{what}: and how to read it: {}", home.log());
        let session = agent.new_session(&home.workspace()).await;
        assert_eq!(agent.prompt(&session, "hello").await.unwrap()["stopReason"], "end_turn", "{what}");
        agent.finish(&home).await;
    }
}

/// Breaks the first page of a table or an index, and gives the bytes of the file.
fn overwrite_root(home: &Home, name: &str) -> Vec<u8> {
    let connection = Connection::open(home.database()).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let root: u32 = connection.query_row(root, [name], |row| row.get(0)).unwrap();
    drop(connection);
    let mut bytes = std::fs::read(home.database()).unwrap();
    bytes[(root as usize - 1) * 4096..root as usize * 4096].fill(0xA5);
    std::fs::write(home.database(), &bytes).unwrap();
    bytes
}

/// A damaged index loses nothing: the sessions are there, and the damaged file is kept.
#[tokio::test]
async fn a_damaged_index_is_repaired_and_told() {
    let (home, session) = used_home().await;
    let bytes = overwrite_root(&home, "chat_parts_session_id");
    let doctor = home.command().arg("doctor").output().await.unwrap();
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let line = told.lines().find(|line| line.contains(" store ")).unwrap();
    assert!(line.contains("sessions.db is damaged: Tree "), "{told}");
    assert_eq!(String::from_utf8_lossy(&doctor.stderr), "", "no log lines");

    let agent = started(&home).await;
    let moved = set_aside(&home);
    assert!(moved.len() == 1 && std::fs::read(&moved[0]).unwrap() == bytes, "{moved:?}");
    assert!(home.log().contains("attache repaired it, and all sessions are there"), "{}", home.log());
    assert!(agent.load(&session, &home.workspace()).await.len() >= 100, "the whole conversation");
    agent.finish(&home).await;
}

/// What a person reads is a sentence, once, and not a line of the log.
#[tokio::test]
async fn a_command_that_meets_damage_says_it_plainly() {
    let (home, _) = used_home().await;
    overwrite_root(&home, "chat_sessions");
    let output = home.command().args(["sessions", "list"]).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = format!(
        "attache: {} is damaged (database disk image is malformed); `attache doctor` says what to do\n",
        home.database().display()
    );
    assert_eq!(told, expected);
}

/// It may be all that somebody has: the agent says so and leaves it alone.
#[tokio::test]
async fn what_is_not_ours_is_refused_and_untouched() {
    let foreign: Vec<(&str, Fault)> = vec![
        ("garbage", |path| std::fs::write(path, "this is no database\n".repeat(1_000)).unwrap()),
        ("zeroes", |path| std::fs::write(path, vec![0; 65_536]).unwrap()),
        ("a cut header", |path| truncate(path, 50)),
        ("a foreign database", |path| {
            std::fs::remove_file(path).unwrap();
            let connection = Connection::open(path).unwrap();
            connection
                .execute_batch("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup');")
                .unwrap();
        }),
    ];
    for (what, replace_it) in foreign {
        let (home, _) = used_home().await;
        replace_it(&home.database());
        let bytes = std::fs::read(home.database()).unwrap();
        for arguments in [&["acp"][..], &["sessions", "list"][..]] {
            let output = home.command().args(arguments).stdin(Stdio::null()).output().await.unwrap();
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(told.contains("is not a session database of attache"), "{what}, {arguments:?}: {told}");
            assert!(std::fs::read(home.database()).unwrap() == bytes, "{what}: the file was changed");
            assert_eq!(set_aside(&home), [] as [PathBuf; 0], "{what}");
        }
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

/// Looking at sessions changes nothing: the next start sets the damaged one aside.
#[tokio::test]
async fn the_sessions_command_leaves_a_damaged_database_where_it_is() {
    let (home, _) = used_home().await;
    let mut bytes = std::fs::read(home.database()).unwrap();
    bytes[..100].fill(0);
    std::fs::write(home.database(), &bytes).unwrap();
    let output = home.command().args(["sessions", "list"]).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("can't be used"), "{told}");
    assert_eq!(set_aside(&home), [] as [PathBuf; 0]);
    assert!(std::fs::read(home.database()).unwrap() == bytes);
}
