//! Contents by their digest: attachments too large for a row, and former contents of files. Each has owners.

use std::fmt::Debug;

use super::StoreResult;
use crate::ids::SessionId;
use crate::ports::BoxFuture;

/// A session that refers to blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobOwner {
    /// The session.
    pub session: SessionId,
    /// When it last stored a blob that it had not referred to before (milliseconds since 1970).
    pub touched_at: i64,
}

/// Attachments above 1 MiB, and contents of files from before a tool changed them, by digest.
pub trait Blobs: Send + Sync + Debug {
    /// Stores the bytes for a session and returns their SHA-256 (hex). Storing the same bytes twice keeps one
    /// copy.
    fn put(&self, session: &SessionId, bytes: Vec<u8>) -> BoxFuture<'static, StoreResult<String>>;
    /// The whole content; `None` if there is none of that digest.
    fn get(&self, sha256: &str) -> BoxFuture<'static, StoreResult<Option<Vec<u8>>>>;
    /// Lets another session refer to everything that one session refers to. Reads and copies no content.
    fn share(&self, from: &SessionId, with: &SessionId) -> BoxFuture<'static, StoreResult<()>>;
    /// The total bytes of everything that this session refers to.
    fn bytes_of(&self, session: &SessionId) -> BoxFuture<'static, StoreResult<u64>>;
    /// Every session that refers to a blob, and when it last began to refer to a new one.
    fn owners(&self) -> BoxFuture<'static, StoreResult<Vec<BlobOwner>>>;
    /// Removes the blobs that only this session refers to.
    fn delete_session(&self, session: &SessionId) -> BoxFuture<'static, StoreResult<()>>;
}
