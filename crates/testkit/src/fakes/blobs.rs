//! Attachments kept in memory.

use std::collections::HashMap;
use std::sync::Mutex;

use attache_core::ids::SessionId;
use attache_core::ports::store::StoreResult;
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

    fn delete_session(&self, _session: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        Box::pin(async { Ok(()) })
    }
}
