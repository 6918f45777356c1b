//! What every store must do, of the one in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use attache_core::ports::store::Blobs;

use super::MemoryStore;
use crate::fakes::disk::Disk;
use crate::store_suite::Storage;

struct Memory {
    disk: Arc<Mutex<Disk>>,
    processes: AtomicU64,
}

impl Storage for Memory {
    type Process = MemoryStore;

    fn create() -> Self {
        Self { disk: Arc::default(), processes: AtomicU64::new(0) }
    }

    fn open(&self) -> MemoryStore {
        let process = self.processes.fetch_add(1, Ordering::SeqCst);
        MemoryStore::open(self.disk.clone(), process, process)
    }

    fn kill(process: MemoryStore) {
        process.kill();
    }

    fn blobs(&self) -> impl Blobs {
        self.open()
    }
}

crate::store_suite!(Memory);
