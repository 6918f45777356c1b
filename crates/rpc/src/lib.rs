//! Moves JSON-RPC 2.0 messages over a pipe: in order, capped, bounded. Knows neither agents nor ACP methods.
//!
//! One reader task frames lines and hands messages to a [`Handler`], which is not async and so cannot make it
//! wait; one writer task takes everything that waits in the outgoing queue and writes it in large pieces.

mod connection;
mod encode;
mod envelope;
mod error;
pub mod framing;
mod id;
pub mod limits;
mod outgoing;
mod peer;
mod pending;
mod pipe;
mod reader;
mod responder;
mod stdio;
mod trace;
mod writer;

pub use connection::{Connection, Drained};
pub use encode::encode_notification;
pub use error::{Closed, ErrorObject, RequestError, SendError, code};
pub use id::RequestId;
pub use peer::{Handler, Notification, Options, Peer, Request};
pub use pipe::{PipeReader, PipeWriter, duplex, pipe};
pub use responder::Responder;
pub use stdio::stdio;
pub use trace::Trace;
