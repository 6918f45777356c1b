//! In-memory stand-ins for the core's ports: a disk that outlives its processes, a clock, clients. No I/O at
//! all.

pub mod backend;
mod batch_check;
pub mod blobs;
pub mod client;
pub mod clock;
pub mod delegate;
pub mod disk;
pub mod hooks;
pub mod model;
pub mod random;
pub mod servers;
pub mod store;
pub mod telemetry;
pub mod tools;

pub use model::request;
