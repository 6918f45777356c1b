//! Stores the contents of one session's files: within limits, and apart from its attachments, so that they can
//! be deleted earlier.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::ids::SessionId;
use crate::limits::{SNAPSHOT_FILE_BYTES, SNAPSHOT_SESSION_BYTES};
use crate::ports::store::{Blobs, StoreResult};

/// Appended to a session's id, to make the blob owner of its files' contents.
const SUFFIX: &str = ".snapshots";

/// The owner of a session's contents in the blob store.
pub fn owner(session: &SessionId) -> SessionId {
    SessionId::new(format!("{session}{SUFFIX}"))
}

/// The session that belongs to such a blob owner, if it is one.
pub(crate) fn session_of(owner: &SessionId) -> Option<SessionId> {
    owner.as_str().strip_suffix(SUFFIX).map(SessionId::new)
}

/// Keeps contents of files for one session.
#[derive(Debug)]
pub struct SnapshotShelf {
    blobs: Arc<dyn Blobs>,
    owner: SessionId,
    /// Bytes stored so far; `None` until they were counted. Why a lock: calls of one step store contents at the
    /// same time.
    used: Mutex<Option<u64>>,
}

impl SnapshotShelf {
    /// A shelf in this blob store.
    pub fn new(blobs: Arc<dyn Blobs>, session: &SessionId) -> Self {
        Self { blobs, owner: owner(session), used: Mutex::default() }
    }

    /// Stores a content if there is room; `Err` says why not.
    pub async fn keep(&self, content: Vec<u8>) -> Result<String, String> {
        let size = content.len();
        if size > SNAPSHOT_FILE_BYTES {
            let mebibytes = SNAPSHOT_FILE_BYTES >> 20;
            return Err(format!("it had {size} bytes; up to {mebibytes} MiB of a file are kept"));
        }
        let mut used = self.used.lock().await;
        let known = match *used {
            Some(known) => known,
            None => self.blobs.bytes_of(&self.owner).await.map_err(|error| error.to_string())?,
        };
        let after = known.saturating_add(size as u64);
        if after > SNAPSHOT_SESSION_BYTES {
            *used = Some(known);
            let mebibytes = SNAPSHOT_SESSION_BYTES >> 20;
            return Err(format!("{mebibytes} MiB of earlier contents are kept for this session already"));
        }
        // Counted before it is stored, and twice if it is there already: never is more stored than counted.
        *used = Some(after);
        drop(used);
        self.blobs.put(&self.owner, content).await.map_err(|error| error.to_string())
    }

    /// Stores the content of a file that is about to be moved, even if there is no room: it exists nowhere
    /// else.
    pub async fn keep_moved(&self, content: Vec<u8>) -> StoreResult<String> {
        self.blobs.put(&self.owner, content).await
    }

    /// A stored content; `None` if it is gone.
    pub async fn content(&self, digest: &str) -> StoreResult<Option<Vec<u8>>> {
        self.blobs.get(digest).await
    }
}
