//! What files held: kept within bounds of size and age, and never for longer than anybody can go back to it.

use std::sync::Arc;

use attache_core::ids::SessionId;
use attache_core::ports::store::{BlobOwner, StoreResult};
use attache_core::ports::{Blobs, BoxFuture};
use attache_core::snapshot::{self, SnapshotShelf};
use attache_testkit::fakes::store::MemoryStore;

use crate::world::*;

/// Says that one session has this much already.
#[derive(Debug)]
struct Holding(u64);

impl Blobs for Holding {
    fn put(&self, _: &SessionId, bytes: Vec<u8>) -> BoxFuture<'static, StoreResult<String>> {
        Box::pin(std::future::ready(Ok(format!("{} bytes", bytes.len()))))
    }

    fn get(&self, _: &str) -> BoxFuture<'static, StoreResult<Option<Vec<u8>>>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn share(&self, _: &SessionId, _: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn bytes_of(&self, _: &SessionId) -> BoxFuture<'static, StoreResult<u64>> {
        Box::pin(std::future::ready(Ok(self.0)))
    }

    fn owners(&self) -> BoxFuture<'static, StoreResult<Vec<BlobOwner>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn delete_session(&self, _: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_keeps_256_mebibytes_and_says_when_they_are_full() {
    let most = 256 * 1024 * 1024;
    let shelf = SnapshotShelf::new(Arc::new(Holding(most - 10)), &SessionId::new("ses_1"));
    assert!(shelf.keep(vec![0; 4]).await.is_ok());
    let refused = shelf.keep(vec![0; 7]).await.unwrap_err();
    assert!(refused.contains("256 MiB of earlier contents"), "{refused}");
    assert!(shelf.keep(vec![0; 6]).await.is_ok(), "what was refused takes no room");
    // What a rewind is about to move away is nowhere else.
    assert!(shelf.keep_moved(vec![0; 100]).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn contents_of_files_go_with_their_age_and_attachments_stay() {
    let world = World::new("on *\n text \"fine\"");
    let (process, open) = world.session().await;
    let closed = process.create().await;
    let blobs = MemoryStore::open(world.disk.clone(), 1_000, 1_000);
    for session in [open.id(), closed.id()] {
        blobs.put(&snapshot::owner(session), session.as_str().as_bytes().to_vec()).await.unwrap();
    }
    blobs.put(closed.id(), b"attachment".to_vec()).await.unwrap();
    closed.close().await.unwrap();
    // In memory a content has no time: all of them are old.
    process.hub.remove_old_snapshots().await.unwrap();
    let owners: Vec<SessionId> =
        blobs.owners().await.unwrap().into_iter().map(|owner| owner.session).collect();
    assert_eq!(owners, [snapshot::owner(open.id()), closed.id().clone()]);
}
