//! The ports: everything the core needs from outside, as small object-safe traits of plain data. Nothing here
//! acts.

use std::fmt::Debug;

pub use futures_util::future::BoxFuture;
pub use futures_util::stream::BoxStream;

use crate::calendar::{self, TimeZone, Zoned};

pub mod backend;
pub mod client;
pub mod compaction;
pub mod delegate;
pub mod figures;
pub mod foreign;
pub mod hooks;
pub mod mcp;
pub mod model;
pub mod pictures;
pub mod projects;
pub mod scratch;
pub mod search;
pub mod side_model;
pub mod snapshots;
pub mod store;
pub mod surroundings;
pub mod telemetry;
pub mod tool;

pub use backend::{Backend, BackendTurn};
pub use client::{Answer, Ask, Client};
pub use compaction::Compaction;
pub use delegate::Delegate;
pub use figures::SessionFigures;
pub use hooks::HookRunner;
pub use mcp::{SessionServers, ToolServers};
pub use model::{Model, ModelError, ModelRequest, StepEvent, Usage};
pub use pictures::{FittedPicture, Pictures};
pub use projects::Projects;
pub use scratch::Scratch;
pub use search::{SearchQuery, SessionHit, SessionSearch};
pub use side_model::SideModel;
pub use snapshots::{FileMover, SnapshotSink};
pub use store::{Batch, Blobs, Change, Leases, Store, StoreError};
pub use surroundings::{FoundKnowledge, Surroundings, WorkspaceLook};
pub use telemetry::Telemetry;
pub use tool::{Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};

/// Wall-clock time, for times that are stored or shown. To wait, the core uses tokio.
pub trait Clock: Send + Sync + Debug {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// The user's time zone.
    fn zone(&self) -> TimeZone;

    /// The current time in the user's zone.
    fn now(&self) -> Zoned {
        calendar::local(self.now_ms(), self.zone())
    }
}
