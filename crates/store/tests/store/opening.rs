//! Opening whatever is found: fresh, older, newer, foreign, truncated, overwritten; with the right modes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use attache_core::ports::store::{Change, Store, StoreError};
use attache_store::{
    Diagnosis, Durability, OldSessions, OpenError, OpenedStore, ReadOnlyStore, SqliteStore, diagnose,
};

use crate::fixture::*;

async fn home_with_a_session() -> Home {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let mut changes = vec![Change::InsertMessage(message("a", "m", Some(1)))];
    changes.extend((0..50).map(|index| Change::PutPart(part("a", "m", index, &"x".repeat(500)))));
    fenced(&store, "a", epoch, changes).await.unwrap();
    home
}

fn open(home: &Home) -> Result<OpenedStore, OpenError> {
    SqliteStore::open(&home.location(), Durability::Normal)
}

/// Opens, expects the old bytes set aside and a fresh store in their place.
async fn expect_set_aside(home: &Home, old: &[u8]) {
    let opened = open(home).unwrap();
    let aside = opened.set_aside.expect("told where it went");
    assert_eq!(aside.sessions, OldSessions::LeftBehind);
    assert_eq!(fs::read(&aside.path).unwrap(), old, "kept byte for byte");
    assert_eq!(opened.store.session(&session_id("a")).await.unwrap(), None);
    create(&opened.store, "new").await;
    drop(opened.store);
    let again = open(home).unwrap();
    assert_eq!(again.set_aside, None);
    assert!(again.store.session(&session_id("new")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_second_start_finds_what_the_first_stored() {
    let home = home_with_a_session().await;
    let opened = open(&home).unwrap();
    assert_eq!(opened.set_aside, None);
    assert_eq!(read_all(&opened.store, "a", usize::MAX).await[0].1.len(), 50);
}

#[tokio::test]
async fn everything_is_for_its_owner_only() {
    let home = Home::new();
    let mut location = home.location();
    location.database = home.directory.path().join("deep/er/sessions.db");
    let store = SqliteStore::open(&location, Durability::Full).unwrap().store;
    create(&store, "a").await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let parent = location.database.parent().unwrap();
    for directory in [parent, parent.parent().unwrap(), &location.locks] {
        assert_eq!(mode(directory), 0o700, "{}", directory.display());
    }
    let files = [parent, &location.locks].map(|directory| fs::read_dir(directory).unwrap());
    let files: Vec<_> = files.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 5, "database, log, index, queue and lock: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn a_newer_database_is_refused_and_not_touched() {
    let home = home_with_a_session().await;
    home.raw().execute_batch("PRAGMA user_version = 99").unwrap();
    let before = fs::read(home.location().database).unwrap();
    let error = open(&home).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("newer version (schema 99"), "{error}");
    assert_eq!(fs::read(home.location().database).unwrap(), before);
}

/// The newer version was killed: its number is in the write-ahead log only.
#[tokio::test]
async fn a_newer_database_known_from_its_log_only_is_not_touched_either() {
    let home = home_with_a_session().await;
    let newer = home.raw();
    newer.execute_batch("PRAGMA user_version = 99").unwrap();
    let database = home.location().database;
    let wal = database.with_extension("db-wal");
    let before = (fs::read(&database).unwrap(), fs::read(&wal).unwrap());
    assert_eq!(before.0[60..64], [0, 0, 0, 2], "the database file itself is still old");
    // Copied away while the other connection is open, as if it had been killed there.
    let killed = Home::new();
    fs::write(killed.location().database, &before.0).unwrap();
    fs::write(killed.location().database.with_extension("db-wal"), &before.1).unwrap();
    let error = open(&killed).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    let after = killed.location().database;
    assert_eq!(fs::read(&after).unwrap(), before.0);
    assert_eq!(fs::read(after.with_extension("db-wal")).unwrap(), before.1);
}

/// Nothing shows that attache made it: it may be all that somebody has.
#[tokio::test]
async fn what_is_not_ours_is_refused_and_nothing_is_touched() {
    let other = Home::new();
    other.raw().execute_batch("CREATE TABLE notes (x); INSERT INTO notes VALUES (1);").unwrap();
    let notes = fs::read(other.location().database).unwrap();
    other.raw().execute_batch("PRAGMA application_id = 7; PRAGMA user_version = 3;").unwrap();
    let marked = fs::read(other.location().database).unwrap();
    let mut broken = notes.clone();
    broken[4096..].fill(0xa5);
    let truncated = notes[..5000].to_vec();
    let ours_without_a_sign = b"SQLite format 3\0 and no more".to_vec();
    for content in [b"hello".to_vec(), vec![0; 4096], notes, marked, broken, truncated, ours_without_a_sign] {
        let home = Home::new();
        fs::write(home.location().database, &content).unwrap();
        let error = open(&home).unwrap_err();
        assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
        assert!(error.to_string().contains("attache did not change it"), "{error}");
        assert!(matches!(ReadOnlyStore::open(&home.location()).unwrap_err(), OpenError::Foreign { .. }));
        assert!(matches!(diagnose(&home.location().database), Diagnosis::Foreign(_)));
        assert_eq!(files_below(home.directory.path()), [(home.location().database, content)]);
    }
}

/// A journal beside another program's database is the other half of it.
#[tokio::test]
async fn another_program_s_log_is_not_played_into_its_database() {
    let other = Home::new();
    let writer = other.raw();
    writer
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE notes (x); INSERT INTO notes VALUES (1);")
        .unwrap();
    let database = other.location().database;
    let home = Home::new();
    let (copy, log) = (home.location().database, home.directory.path().join("sessions.db-wal"));
    fs::copy(&database, &copy).unwrap();
    fs::copy(other.directory.path().join("sessions.db-wal"), &log).unwrap();
    let before = (fs::read(&copy).unwrap(), fs::read(&log).unwrap());
    let error = open(&home).unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert_eq!((fs::read(&copy).unwrap(), fs::read(&log).unwrap()), before);
}

fn files_below(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(&path).unwrap_or_default())).collect()
}

#[tokio::test]
async fn who_only_looks_makes_nothing() {
    let home = Home::new();
    assert!(ReadOnlyStore::open(&home.location()).unwrap().is_none());
    assert_eq!(files_below(home.directory.path()), []);

    let home = home_with_a_session().await;
    let before = files_below(home.directory.path());
    let store = ReadOnlyStore::open(&home.location()).unwrap().unwrap();
    assert!(store.session(&session_id("a")).await.unwrap().is_some());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    store.commit(batch("a", None, vec![Change::DeleteSession]), Box::new(|done| sender.send(done).unwrap()));
    assert!(matches!(receiver.await.unwrap(), Err(StoreError::Unavailable(_))));
    drop(store);
    assert_eq!(files_below(home.directory.path()), before);
}

#[tokio::test]
async fn a_truncated_database_is_set_aside() {
    let whole = fs::read(home_with_a_session().await.location().database).unwrap();
    for keep in [100, 4096, 4096 + 17, whole.len() / 2, whole.len() - 4096] {
        let home = Home::new();
        fs::write(home.location().database, &whole[..keep]).unwrap();
        expect_set_aside(&home, &whole[..keep]).await;
    }
}

/// Whatever page is overwritten: all of the sessions are there, or none and the file is kept for its owner.
#[tokio::test]
async fn an_overwritten_database_is_repaired_whole_or_set_aside() {
    let home = home_with_a_session().await;
    let (whole, before) = (fs::read(home.location().database).unwrap(), everything(&home.raw()));
    let roots: Vec<i64> = {
        let raw = home.raw();
        let mut statement = raw.prepare("SELECT rootpage FROM sqlite_schema WHERE type = 'index'").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut saved = Vec::new();
    for page in 1..whole.len() / 4096 {
        let mut damaged = whole.clone();
        damaged[page * 4096..page * 4096 + 600].fill(0xa5);
        let home = Home::new();
        fs::write(home.location().database, &damaged).unwrap();
        let opened = open(&home).unwrap();
        let aside = opened.set_aside.expect("told where it went");
        assert_eq!(fs::read(&aside.path).unwrap(), damaged, "kept byte for byte");
        match aside.sessions {
            OldSessions::Saved => {
                assert_eq!(everything(&home.raw()), before, "page {page}");
                saved.push(page as i64 + 1);
                create(&opened.store, "new").await;
            }
            OldSessions::LeftBehind => {
                assert_eq!(opened.store.session(&session_id("a")).await.unwrap(), None, "page {page}");
            }
        }
        drop(opened.store);
        assert_eq!(open(&home).unwrap().set_aside, None, "page {page}");
        for (path, _) in files_below(home.directory.path()) {
            let name = path.to_string_lossy().into_owned();
            assert!(!name.ends_with(".repair") && !name.ends_with("-suspect"), "left behind: {name}");
        }
        let mode = fs::metadata(home.location().database).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "page {page}");
    }
    for root in roots {
        assert!(saved.contains(&root), "an index at page {root} loses no session: {saved:?}");
    }
}

/// All rows of all tables, as text.
fn everything(raw: &rusqlite::Connection) -> Vec<String> {
    let tables = ["chat_sessions", "chat_messages", "chat_parts", "system_prompts", "run_chunks", "leases"];
    let mut rows = Vec::new();
    for table in tables {
        let mut statement = raw.prepare(&format!("SELECT * FROM {table} NOT INDEXED ORDER BY 1, 2")).unwrap();
        let columns = statement.column_count();
        let mut found = statement.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let values: Vec<_> = (0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect();
            rows.push(values.join(" "));
        }
    }
    rows
}

/// What a killed process had not folded into the file yet is saved as well.
#[tokio::test]
async fn a_repair_reads_the_write_ahead_log() {
    let home = home_with_a_session().await;
    home.raw().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let writer = home.raw();
    writer.execute_batch("UPDATE chat_sessions SET agent = 'late'").unwrap();
    let root: i64 = writer
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'chat_parts_session_id'", [], |row| {
            row.get(0)
        })
        .unwrap();
    let database = home.location().database;
    let killed = Home::new();
    let mut damaged = fs::read(&database).unwrap();
    damaged[(root as usize - 1) * 4096..][..600].fill(0xa5);
    fs::write(killed.location().database, &damaged).unwrap();
    fs::copy(database.with_extension("db-wal"), killed.location().database.with_extension("db-wal")).unwrap();
    let opened = open(&killed).unwrap();
    assert_eq!(opened.set_aside.unwrap().sessions, OldSessions::Saved);
    let record = opened.store.session(&session_id("a")).await.unwrap().unwrap();
    assert_eq!(record.row.agent.to_string(), "late");
}

/// A start does not look at every page of a large file, unless somebody did and found damage.
#[tokio::test]
async fn what_a_diagnosis_found_the_next_start_finds_too() {
    let home = large_home().await;
    let mut damaged = fs::read(home.location().database).unwrap();
    let length = damaged.len();
    damaged[length / 4..length * 3 / 4].fill(0xa5);
    fs::write(home.location().database, &damaged).unwrap();
    assert_eq!(open(&home).unwrap().set_aside, None, "too large to be looked at completely");
    assert!(matches!(diagnose(&home.location().database), Diagnosis::Damaged(_)));
    expect_set_aside(&home, &damaged).await;
}

async fn large_home() -> Home {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let mut changes = vec![Change::InsertMessage(message("a", "m", Some(1)))];
    changes.extend((0..2_000).map(|index| Change::PutPart(part("a", "m", index, &"x".repeat(500)))));
    fenced(&store, "a", epoch, changes).await.unwrap();
    home
}

/// Too large to be checked at every start: the damage is met in use, told, and found at the next start.
#[tokio::test]
async fn damage_deep_in_a_large_database_is_told_and_set_aside_at_the_next_start() {
    let home = large_home().await;
    let mut damaged = fs::read(home.location().database).unwrap();
    let length = damaged.len();
    damaged[length / 4..length * 3 / 4].fill(0xa5);
    fs::write(home.location().database, &damaged).unwrap();

    let opened = open(&home).unwrap();
    assert_eq!(opened.set_aside, None);
    let met = opened.store.message(&message_id("m")).await;
    assert!(matches!(met, Err(StoreError::Damaged { .. })), "{met:?}");
    drop(opened.store);
    let mark = home.location().database.with_extension("db-suspect");
    assert_eq!(fs::metadata(&mark).unwrap().permissions().mode() & 0o777, 0o600);
    expect_set_aside(&home, &damaged).await;
}

#[tokio::test]
async fn several_who_find_the_same_damaged_file_set_it_aside_once() {
    let mut damaged = fs::read(home_with_a_session().await.location().database).unwrap();
    damaged[4096..].fill(0xa5);
    let home = Home::new();
    fs::write(home.location().database, &damaged).unwrap();
    let location = home.location();
    let threads: Vec<_> = (0..6)
        .map(|_| {
            let location = location.clone();
            std::thread::spawn(move || SqliteStore::open(&location, Durability::Normal).unwrap())
        })
        .collect();
    let opened: Vec<OpenedStore> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(opened.iter().filter(|opened| opened.set_aside.is_some()).count(), 1);
    create(&opened[0].store, "a").await;
    assert!(opened[5].store.session(&session_id("a")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_place_that_can_not_be_used_is_named() {
    let home = Home::new();
    let mut location = home.location();
    fs::write(home.directory.path().join("file"), "").unwrap();
    location.database = home.directory.path().join("file/sessions.db");
    let error = SqliteStore::open(&location, Durability::Normal).unwrap_err().to_string();
    assert!(error.contains("file") && error.contains("can't be used"), "{error}");
}

/// The schema is a public interface: people inspect it with the `sqlite3` tool.
#[tokio::test]
async fn tables_columns_and_indexes_are_those_of_the_contract() {
    let home = Home::new();
    drop(home.open());
    let raw = home.raw();
    let lines = |sql: &str| -> Vec<String> {
        let mut statement = raw.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let tables = lines(
        "SELECT t.name || ': ' || (SELECT group_concat(name, ' ') FROM pragma_table_xinfo(t.name)) \
         FROM sqlite_schema t WHERE type = 'table' AND name NOT GLOB 'search_text_*' ORDER BY t.rowid",
    );
    assert_eq!(
        tables,
        [
            "chat_sessions: id agent workspace_root model_json parent_id parent_message_id permissions_json \
             metadata_json prompt_tokens completion_tokens reasoning_tokens cache_read cache_write total_tokens \
             cost_usd created_at updated_at archived_at",
            "chat_messages: id session_id seq role metadata_json created_at updated_at",
            "chat_parts: id message_id session_id index type data_json tool_call_id tool_state created_at \
             updated_at",
            "system_prompts: digest body",
            "run_chunks: session_id first_index last_index message_id role chunks",
            "leases: session_id owner epoch run_message_id run_user_message_id run_first_index run_first_seq",
            "search_documents: id part_id session_id",
            "search_text: body search_text rank",
            "search_removed: id",
            "search_backlog: session_id after_rowid",
        ]
    );
    let indexes = lines(
        "SELECT i.tbl_name || ': ' || (SELECT group_concat(name, ' ') FROM pragma_index_info(i.name)) \
         FROM sqlite_schema i WHERE type = 'index' AND sql IS NOT NULL ORDER BY i.rowid",
    );
    assert_eq!(
        indexes,
        [
            "chat_sessions: agent updated_at",
            "chat_sessions: workspace_root updated_at",
            "chat_sessions: parent_id",
            "chat_sessions: archived_at",
            "chat_messages: session_id created_at",
            "chat_messages: session_id seq",
            "chat_parts: message_id index",
            "chat_parts: session_id",
            "chat_parts: tool_call_id",
            "search_documents: session_id",
        ]
    );
    let mode: String = raw.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[tokio::test]
async fn a_diagnosis_tells_how_a_database_is_and_changes_nothing() {
    let home = home_with_a_session().await;
    let path = home.location().database;
    assert_eq!(diagnose(&home.directory.path().join("none.db")), Diagnosis::Absent);
    let Diagnosis::Sound { bytes, schema } = diagnose(&path) else { panic!("{:?}", diagnose(&path)) };
    assert!(bytes > 20_000 && schema > 0, "{bytes} {schema}");
    // While a store is open on it, too.
    let store = home.open();
    assert!(matches!(diagnose(&path), Diagnosis::Sound { .. }));
    drop(store);
    home.raw().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let sound = fs::read(&path).unwrap();
    // The body of a page in the middle, which an ordinary start of a large file would not look at.
    let mut damaged = sound.clone();
    for page in damaged.chunks_mut(4096).skip(3) {
        page[..64].fill(0xff);
    }
    fs::write(&path, &damaged).unwrap();
    let Diagnosis::Damaged(reason) = diagnose(&path) else { panic!("{:?}", diagnose(&path)) };
    // The schema itself takes several pages.
    let is_told = reason.starts_with("Tree ") || reason.contains("malformed");
    assert!(is_told && !reason.contains('\n'), "{reason}");
    assert_eq!(fs::read(&path).unwrap(), damaged, "left as it is");
    fs::write(&path, &sound).unwrap();
    home.raw().execute_batch("PRAGMA user_version = 9999").unwrap();
    assert!(matches!(diagnose(&path), Diagnosis::Newer { found: 9999, .. }), "{:?}", diagnose(&path));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(diagnose(&path), Diagnosis::Unusable(_)), "{:?}", diagnose(&path));
}

/// What a command could leave beside a database that lies in its root: a journal that, played back, puts other
/// pages in the place of ours.
fn plant_journal(home: &Home) -> std::path::PathBuf {
    let database = home.location().database;
    let planted = home.directory.path().join("planted.db");
    fs::copy(&database, &planted).unwrap();
    let mut connection = rusqlite::Connection::open(&planted).unwrap();
    connection.pragma_update(None, "journal_mode", "DELETE").unwrap();
    connection.pragma_update(None, "cache_size", 1).unwrap();
    connection.pragma_update(None, "cache_spill", 1).unwrap();
    // The journal holds what was there before a transaction: the other pages.
    connection.execute("DELETE FROM chat_parts", []).unwrap();
    let journal = fs::canonicalize(home.directory.path()).unwrap().join("planted.db-journal");
    let transaction = connection.transaction().unwrap();
    let many = "DELETE FROM chat_messages; CREATE TABLE filler (x); INSERT INTO filler \
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) \
                SELECT hex(randomblob(200)) FROM n;";
    transaction.execute_batch(many).unwrap();
    let hot = fs::read(&journal).unwrap();
    assert!(hot.len() > 512, "{} bytes", hot.len());
    drop(transaction);
    let beside = database.with_file_name("sessions.db-journal");
    fs::write(&beside, hot).unwrap();
    beside
}

#[tokio::test]
async fn a_rollback_journal_beside_the_database_is_set_aside_and_not_played_back() {
    let home = home_with_a_session().await;
    // All of it is in the file: nothing but the file counts for what is planted.
    drop(open(&home).unwrap());
    let journal = plant_journal(&home);
    let hot = fs::read(&journal).unwrap();
    let refused = ReadOnlyStore::open(&home.location()).unwrap_err().to_string();
    assert!(refused.contains("sessions.db-journal is not attache's"), "{refused}");
    assert!(matches!(diagnose(&home.location().database), Diagnosis::Unusable(_)));
    let opened = open(&home).unwrap();
    let aside = opened.foreign_journal.expect("told where it went");
    assert_eq!(fs::read(&aside).unwrap(), hot, "kept as it was");
    assert_eq!((opened.set_aside, journal.exists()), (None, false));
    assert_eq!(read_all(&opened.store, "a", usize::MAX).await[0].1.len(), 50);
    drop(opened.store);
    // Whatever else has the name stops nobody, and no other thing is lost for it.
    fs::create_dir(&journal).unwrap();
    let again = open(&home).unwrap().foreign_journal.unwrap();
    assert!(again.is_dir() && again != aside && aside.exists());
    fs::write(&journal, "").unwrap();
    assert_eq!(open(&home).unwrap().foreign_journal, None, "an empty one is none");
}
