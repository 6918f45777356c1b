//! Attachments kept in memory.

use std::collections::HashMap;
use std::sync::Mutex;

use attache_core::ids::SessionId;
use attache_core::ports::store::{BlobOwner, StoreResult};
use attache_core::ports::{Blobs, BoxFuture};
use attache_core::prompt::digest;

#[derive(Debug, Default)]
pub struct MemoryBlobs {
    kept: Mutex<HashMap<String, Vec<u8>>>,
}

impl Blobs for MemoryBlobs {
    fn put(&self, _session: &SessionId, bytes: Vec<u8>) -> BoxFuture<'static, StoreResult<String>> {
        let name = digest(&bytes);
        self.kept.lock().unwrap().insert(name.clone(), bytes);
        Box::pin(async move { Ok(name) })
    }

    fn get(&self, sha256: &str) -> BoxFuture<'static, StoreResult<Option<Vec<u8>>>> {
        let found = self.kept.lock().unwrap().get(sha256).cloned();
        Box::pin(async move { Ok(found) })
    }

    fn share(&self, _from: &SessionId, _with: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        Box::pin(async { Ok(()) })
    }

    fn bytes_of(&self, _session: &SessionId) -> BoxFuture<'static, StoreResult<u64>> {
        let bytes = self.kept.lock().unwrap().values().map(|bytes| bytes.len() as u64).sum();
        Box::pin(async move { Ok(bytes) })
    }

    fn owners(&self) -> BoxFuture<'static, StoreResult<Vec<BlobOwner>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn delete_session(&self, _session: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        Box::pin(async { Ok(()) })
    }
}
