//! The n-th operation on the disk fails, for every n until a run meets no fault: nothing acknowledged is lost,
//! errors are clear, and the store goes on without a restart.

use attache_core::ports::store::{Change, LeaseGrant, Leases, Store, StoreError, StoreResult};
use attache_store::{Durability, OpenError, SqliteStore};

use crate::fixture::*;
use crate::shim::{Disk, Fault};

const SEGMENTS: u64 = 6;

/// What a client knows to be stored, and what it has been told.
#[derive(Default)]
struct Client {
    errors: Vec<String>,
    /// One past the last acknowledged index.
    acknowledged: u64,
}

impl Client {
    /// Tries again after an error, healing the disk first: the same call must succeed then.
    async fn insist<T, F: Future<Output = StoreResult<T>>>(
        &mut self,
        disk: &Disk,
        call: impl Fn() -> F,
    ) -> T {
        for _ in 0..3 {
            match call().await {
                Ok(value) => return value,
                Err(StoreError::Unavailable(message)) => {
                    self.errors.push(message);
                    disk.heal();
                }
                // It was told to have failed, but had reached the log: asked again it is found there.
                Err(StoreError::Conflict(message)) if !self.errors.is_empty() => {
                    panic!("an earlier failure had been stored all the same: {message}")
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        panic!("the store did not recover: {:?} after {:?}", self.errors, disk.failed());
    }

    fn open(&mut self, disk: &Disk, home: &Home, durability: Durability) -> SqliteStore {
        for _ in 0..2 {
            match SqliteStore::open_with_vfs(&home.location(), durability, &disk.name) {
                Ok(opened) => {
                    assert_eq!(opened.set_aside, None, "an I/O error is no reason to set a database aside");
                    return opened.store;
                }
                Err(OpenError::Unusable { reason, .. }) => {
                    self.errors.push(reason);
                    disk.heal();
                }
                Err(error @ (OpenError::Newer { .. } | OpenError::Foreign { .. })) => panic!("{error}"),
            }
        }
        panic!("the store could not be opened: {:?} after {:?}", self.errors, disk.failed());
    }

    /// Open, create, write, read, close, open again, go on.
    async fn work(&mut self, disk: &Disk, home: &Home, durability: Durability) {
        for opening in 0..2 {
            let store = self.open(disk, home, durability);
            if opening == 0 {
                let create =
                    || commit(&store, batch("a", None, vec![Change::CreateSession(Box::new(session("a")))]));
                self.insist(disk, create).await;
            }
            let granted = self.insist(disk, || store.acquire(&session_id("a"), None)).await;
            let LeaseGrant::Granted { epoch, .. } = granted else { panic!("{granted:?}") };
            if opening == 0 {
                let insert =
                    || fenced(&store, "a", epoch, vec![Change::InsertMessage(message("a", "m", Some(1)))]);
                self.insist(disk, insert).await;
            }
            for number in 0..SEGMENTS / 2 {
                let first = self.acknowledged;
                let mut text = part("a", "m", 0, &"x".repeat(3_000 * number as usize));
                text.updated_at = first as i64;
                let changes = vec![Change::PutPart(text), Change::AppendLog(segment(first, first))];
                self.insist(disk, || fenced(&store, "a", epoch, changes.clone())).await;
                self.acknowledged = first + 1;
                let record = self.insist(disk, || store.session(&session_id("a"))).await.unwrap();
                assert_eq!(record.next_index, self.acknowledged);
            }
            let log = self.insist(disk, || store.read_log(&session_id("a"), 0, usize::MAX)).await;
            assert_eq!(log.len() as u64, self.acknowledged);
            drop(store);
        }
    }
}

/// Gives back whether the fault was met at all.
async fn run_with_fault(disk: &Disk, fault: Fault, durability: Durability, n: u64) -> bool {
    let home = Home::in_memory();
    disk.arm(fault, n);
    let mut client = Client::default();
    client.work(disk, &home, durability).await;
    disk.heal();
    let failed = disk.failed();
    for message in &client.errors {
        let clear = ["disk full", "I/O error", "can't be opened"].iter().any(|words| message.contains(words));
        assert!(clear, "{fault:?} at {n} ({failed:?}): {message:?}");
    }
    let store = home.open();
    let log = store.read_log(&session_id("a"), 0, usize::MAX).await.unwrap();
    let expected: Vec<_> = (0..client.acknowledged).map(|index| segment(index, index)).collect();
    assert_eq!(log, expected, "{fault:?} at {n} ({failed:?})");
    let (_, parts) = store.message(&message_id("m")).await.unwrap().unwrap();
    assert_eq!(parts[0].updated_at, client.acknowledged as i64 - 1);
    drop(store);
    let intact: String = home.raw().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(intact, "ok", "{fault:?} at {n} ({failed:?})");
    !failed.is_empty()
}

async fn every_operation_once(name: &str, fault: Fault, durability: Durability) {
    let disk = Disk::register(name);
    let mut n = 1;
    while run_with_fault(&disk, fault, durability, n).await {
        n += 1;
        assert!(n < 5_000, "the runs don't get shorter");
    }
    assert!(n > 50, "only {n} operations were met: the layer is not in use");
    eprintln!("{name}: {} operations failed in turn", n - 1);
}

#[tokio::test]
async fn each_single_io_error_is_survived() {
    every_operation_once("once", Fault::IoErrorOnce, Durability::Normal).await;
}

#[tokio::test]
async fn each_single_io_error_is_survived_with_full_durability() {
    every_operation_once("once-full", Fault::IoErrorOnce, Durability::Full).await;
}

#[tokio::test]
async fn a_disk_that_fails_from_any_moment_on_is_survived_once_it_is_healed() {
    every_operation_once("broken", Fault::IoErrorFromThere, Durability::Normal).await;
}

#[tokio::test]
async fn a_disk_that_is_full_from_any_moment_on_is_survived_once_there_is_room() {
    every_operation_once("full", Fault::FullFromThere, Durability::Normal).await;
}
