//! Contents by their digest: what is too large for a row, and what files held. Each has its owners.

use std::fmt::Debug;

use super::StoreResult;
use crate::ids::SessionId;
use crate::ports::BoxFuture;

/// A session that refers to blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobOwner {
    /// Whose they are.
    pub session: SessionId,
    /// When it last put one that it had not referred to before (milliseconds since 1970).
    pub touched_at: i64,
}

/// Attachments above 1 MiB, and what files held before a tool changed them, by content.
pub trait Blobs: Send + Sync + Debug {
    /// Stores the bytes for a session and gives their SHA-256 (hex). Storing the same bytes twice keeps one
    /// copy.
    fn put(&self, session: &SessionId, bytes: Vec<u8>) -> BoxFuture<'static, StoreResult<String>>;
    /// The whole attachment; `None`: there is none of that name.
    fn get(&self, sha256: &str) -> BoxFuture<'static, StoreResult<Option<Vec<u8>>>>;
    /// Everything that one session refers to, another refers to as well. No content is read or copied.
    fn share(&self, from: &SessionId, with: &SessionId) -> BoxFuture<'static, StoreResult<()>>;
    /// Bytes of everything that this session refers to.
    fn bytes_of(&self, session: &SessionId) -> BoxFuture<'static, StoreResult<u64>>;
    /// Every session that refers to something, and when it last did so for the first time.
    fn owners(&self) -> BoxFuture<'static, StoreResult<Vec<BlobOwner>>>;
    /// Removes the blobs that only this session refers to.
    fn delete_session(&self, session: &SessionId) -> BoxFuture<'static, StoreResult<()>>;
}
