//! Several processes on one database: takeover from a killed owner, and eight at once without a lock in the
//! way.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use attache_core::ports::store::{Change, Epoch, LeaseGrant, Leases, Owner, Store};
use attache_store::{Durability, SqliteStore};

use crate::children;
use crate::fixture::*;

const ROUNDS: u64 = 60;

/// Takes the lease of "a", leaves a grandchild running, and waits to be killed.
pub(crate) async fn own_and_wait(home: &Path) {
    let store = SqliteStore::open(&location(home), Durability::Normal).unwrap().store;
    let epoch = acquire(&store, "a").await;
    fenced(&store, "a", epoch, vec![Change::AppendLog(segment(0, 3))]).await.unwrap();
    // Outlives its parent: it must not keep the lock.
    let mut grandchild = Command::new("sleep").arg("20").stdout(std::process::Stdio::null()).spawn().unwrap();
    println!("owns {}", grandchild.id());
    grandchild.wait().unwrap();
}

#[tokio::test]
async fn the_lease_of_a_killed_process_is_taken_over_and_its_state_is_known_to_have_moved() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    fenced(&store, "a", epoch, vec![Change::ReleaseLease]).await.unwrap();

    let mut child = children::start("own", home.directory.path(), 0);
    let grandchild = child.line("owns").unwrap();
    assert_eq!(store.acquire(&session_id("a"), Some(epoch)).await.unwrap(), LeaseGrant::Elsewhere);
    assert_eq!(store.session(&session_id("a")).await.unwrap().unwrap().owner, Owner::Other);
    child.child.kill().unwrap();
    child.child.wait().unwrap();
    assert!(
        Path::new(&format!("/proc/{grandchild}")).exists(),
        "the grandchild must still run for this to mean much"
    );
    expect_dead(&store).await;
    let taken = store.acquire(&session_id("a"), Some(epoch)).await.unwrap();
    assert_eq!(taken, LeaseGrant::Granted { epoch: Epoch(epoch.0 + 2), moved: true });
    assert_eq!(store.session(&session_id("a")).await.unwrap().unwrap().next_index, 4);
    fenced(&store, "a", Epoch(epoch.0 + 2), vec![Change::AppendLog(segment(4, 4))]).await.unwrap();
    assert!(Command::new("kill").arg(&grandchild).status().unwrap().success());
    assert_eq!(
        std::fs::read_dir(home.location().locks).unwrap().count(),
        1,
        "the dead one's lock file is gone"
    );
}

/// The kernel lets a program that started another one go on a moment before it closes the files in the new one:
/// until then the grandchild has the lock as well.
async fn expect_dead(store: &SqliteStore) {
    let since = Instant::now();
    loop {
        let owner = store.session(&session_id("a")).await.unwrap().unwrap().owner;
        if owner == Owner::Dead {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(5), "still {owner:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Works on a session of its own and takes turns with the others on "shared"; opens and closes the store in
/// between.
pub(crate) async fn share(home: &Path, number: usize) {
    let own = format!("own{number}");
    let mut appended = 0;
    let mut next = 0;
    for round in 0..ROUNDS {
        let store = SqliteStore::open(&location(home), Durability::Normal).unwrap().store;
        if round == 0 {
            let changes = vec![
                Change::CreateSession(Box::new(session(&own))),
                Change::InsertMessage(message(&own, &own, Some(1))),
            ];
            commit(&store, batch(&own, None, changes)).await.unwrap();
        }
        let epoch = acquire(&store, &own).await;
        for _ in 0..5 {
            let changes = vec![
                Change::AppendLog(segment(next, next)),
                Change::PutPart(part(&own, &own, 0, &next.to_string())),
            ];
            fenced(&store, &own, epoch, changes).await.unwrap();
            next += 1;
        }
        appended += write_shared(&store).await;
        store.list_sessions(Default::default()).await.unwrap();
        let record = store.session(&session_id(&own)).await.unwrap().unwrap();
        assert_eq!((record.next_index, record.owner), (next, Owner::Us));
        fenced(&store, &own, epoch, vec![Change::ReleaseLease]).await.unwrap();
    }
    println!("appended {appended}");
}

async fn write_shared(store: &SqliteStore) -> u64 {
    let LeaseGrant::Granted { epoch, .. } = store.acquire(&session_id("shared"), None).await.unwrap() else {
        return 0;
    };
    let next = store.session(&session_id("shared")).await.unwrap().unwrap().next_index;
    fenced(store, "shared", epoch, vec![Change::AppendLog(segment(next, next))]).await.unwrap();
    fenced(store, "shared", epoch, vec![Change::ReleaseLease]).await.unwrap();
    1
}

#[tokio::test]
async fn eight_processes_share_one_database_without_being_told_of_locks() {
    let home = Home::new();
    {
        let store = home.open();
        let epoch = create(&store, "shared").await;
        fenced(&store, "shared", epoch, vec![Change::ReleaseLease]).await.unwrap();
    }
    let begin = Instant::now();
    let running: Vec<_> =
        (0..8).map(|number| children::start("share", home.directory.path(), number)).collect();
    let mut appended = 0;
    for child in running {
        let output = child.finish();
        let (_, count) = output.split_once("appended ").unwrap();
        appended += count.split_whitespace().next().unwrap().parse::<u64>().unwrap();
    }
    let store = home.open();
    let shared = store.session(&session_id("shared")).await.unwrap().unwrap();
    assert_eq!((shared.next_index, shared.owner), (appended, Owner::Nobody));
    assert!(appended > 8, "the shared session was written {appended} times only");
    for number in 0..8 {
        let log = store.read_log(&session_id(&format!("own{number}")), 0, usize::MAX).await.unwrap();
        assert_eq!(log.len() as u64, ROUNDS * 5);
    }
    let intact: String = home.raw().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(intact, "ok");
    assert!(begin.elapsed() < Duration::from_secs(60), "took {:?}", begin.elapsed());
}
