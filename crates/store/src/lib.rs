//! Keeps rows, the run log and attachments, and gives them back in order. Knows nothing of what chunks mean.
#![warn(missing_docs)]

mod apply;
mod blobs;
mod connection;
mod conversation;
mod diagnose;
mod examine;
mod failure;
mod foreign_journal;
mod json_paths;
mod lease;
mod limits;
mod migrations;
mod open;
mod outline;
mod process_lock;
mod query;
mod read_only;
mod readers;
mod reads;
mod repair;
mod rows;
mod search;
mod search_index;
mod search_words;
mod store;
mod usage;
mod writer;
mod writer_queue;

pub use blobs::FileBlobs;
pub use connection::Durability;
pub use diagnose::{Diagnosis, diagnose};
pub use open::{OldSessions, OpenError, OpenedStore, SetAside, StoreLocation};
pub use read_only::{ReadOnlyStore, SearchIndex};
pub use store::SqliteStore;
