//! A real file system that is full, and one that is read-only: a tmpfs of 2 MiB.

use std::fs;
use std::path::Path;
use std::process::Command;

use attache_core::ports::store::{Blobs, Change, Store, StoreError};
use attache_store::{Durability, FileBlobs, OpenError, SqliteStore};

use crate::fixture::*;

struct Mounted {
    directory: tempfile::TempDir,
}

impl Mounted {
    /// `None` only when the user has said that mounting is not possible here.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m,mode=0700", "attache-test"])
            .arg(directory.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { directory }),
            _ if std::env::var_os("TEST_NO_TMPFS").is_some() => None,
            other => panic!("a tmpfs can't be mounted ({other:?}); set TEST_NO_TMPFS=1 to do without"),
        }
    }
    fn path(&self) -> &Path {
        self.directory.path()
    }
    fn remount(&self, mode: &str) {
        let remounted =
            Command::new("mount").args(["-o", &format!("remount,{mode}")]).arg(self.path()).status();
        assert!(remounted.unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a failed test may still have files open.
        let unmounted = Command::new("umount").arg("-l").arg(self.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays mounted", self.path().display());
    }
}

/// Takes all room that is left.
fn fill(path: &Path) {
    use std::io::Write;
    let mut file = fs::File::create(path).unwrap();
    let mut size = 64 * 1024;
    while size > 0 {
        match file.write(&vec![1; size]) {
            Ok(0) | Err(_) => size /= 2,
            Ok(_) => {}
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_survived_without_a_restart() {
    let Some(mounted) = Mounted::new() else { return };
    let store = SqliteStore::open(&location(mounted.path()), Durability::Normal).unwrap().store;
    let blobs = FileBlobs::new(location(mounted.path()).blobs);
    let epoch = create(&store, "a").await;
    fenced(&store, "a", epoch, vec![Change::InsertMessage(message("a", "m", Some(1)))]).await.unwrap();
    let mut stored = 0;
    for _ in 0..2 {
        fill(&mounted.path().join("filler"));
        let refused = loop {
            // Room inside the database's own files lasts for a while.
            let changes = vec![
                Change::AppendLog(segment(stored, stored)),
                Change::PutPart(part("a", "m", stored as i64, &"x".repeat(20_000))),
            ];
            match fenced(&store, "a", epoch, changes).await {
                Ok(()) => stored += 1,
                Err(error) => break error,
            }
        };
        assert!(
            matches!(&refused, StoreError::Unavailable(message) if message.contains("disk full")),
            "{refused}"
        );
        let refused = blobs.put(&session_id("a"), vec![0; 100_000]).await.unwrap_err();
        assert!(refused.to_string().contains("disk full"), "{refused}");
        assert_eq!(store.session(&session_id("a")).await.unwrap().unwrap().next_index, stored);

        fs::remove_file(mounted.path().join("filler")).unwrap();
        fenced(&store, "a", epoch, vec![Change::AppendLog(segment(stored, stored))]).await.unwrap();
        stored += 1;
    }
    let log = store.read_log(&session_id("a"), 0, usize::MAX).await.unwrap();
    assert_eq!(log.len() as u64, stored);
    drop(store);
    let raw = rusqlite::Connection::open(location(mounted.path()).database).unwrap();
    let intact: String = raw.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(intact, "ok");
}

#[tokio::test]
async fn no_room_for_a_first_start_is_told_and_leaves_nothing_in_the_way() {
    let Some(mounted) = Mounted::new() else { return };
    fill(&mounted.path().join("filler"));
    let error = SqliteStore::open(&location(mounted.path()), Durability::Normal).unwrap_err();
    assert!(matches!(&error, OpenError::Unusable { .. }), "{error}");
    fs::remove_file(mounted.path().join("filler")).unwrap();
    let opened = SqliteStore::open(&location(mounted.path()), Durability::Normal).unwrap();
    assert_eq!(opened.set_aside, None);
    create(&opened.store, "a").await;
}

#[tokio::test]
async fn a_read_only_disk_is_told_and_nothing_is_set_aside() {
    let Some(mounted) = Mounted::new() else { return };
    let store = SqliteStore::open(&location(mounted.path()), Durability::Normal).unwrap().store;
    create(&store, "a").await;
    drop(store);
    let before = fs::read(location(mounted.path()).database).unwrap();
    mounted.remount("ro");
    let error = SqliteStore::open(&location(mounted.path()), Durability::Normal).unwrap_err().to_string();
    assert!(error.to_lowercase().contains("read-only"), "{error}");
    mounted.remount("rw");
    assert_eq!(fs::read(location(mounted.path()).database).unwrap(), before);
    let opened = SqliteStore::open(&location(mounted.path()), Durability::Normal).unwrap();
    assert!(opened.store.session(&session_id("a")).await.unwrap().is_some());
}
