//! A store of attachments for conversations without any.

use attache_core::ids::SessionId;
use attache_core::ports::store::{BlobOwner, StoreResult};
use attache_core::ports::{Blobs, BoxFuture};

#[derive(Debug)]
pub(crate) struct NoBlobs;

impl Blobs for NoBlobs {
    fn put(&self, _: &SessionId, _: Vec<u8>) -> BoxFuture<'static, StoreResult<String>> {
        Box::pin(async { Ok(String::new()) })
    }

    fn get(&self, _: &str) -> BoxFuture<'static, StoreResult<Option<Vec<u8>>>> {
        Box::pin(async { Ok(None) })
    }

    fn share(&self, _from: &SessionId, _with: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        Box::pin(async { Ok(()) })
    }

    fn bytes_of(&self, _session: &SessionId) -> BoxFuture<'static, StoreResult<u64>> {
        Box::pin(async { Ok(0) })
    }

    fn owners(&self) -> BoxFuture<'static, StoreResult<Vec<BlobOwner>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn delete_session(&self, _: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        Box::pin(async { Ok(()) })
    }
}
