//! The other side: an editor's lines bridged to a server elsewhere, over connections that may be cut at any
//! byte.
//!
//! `link` moves messages: each arrives once, in order, as long as the server still knows the connection.
//! `bridge` knows as much of ACP as it takes to begin anew on a server that does not.

mod address;
mod bridge;
mod connector;
mod link;
mod memory;

pub use address::{AddressError, ServerAddress};
pub use bridge::bridge;
pub use connector::{ConnectFailure, ReachedServer, ServerConnector};
