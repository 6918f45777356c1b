//! Moves JSON-RPC 2.0 messages over a transport: in order, capped, bounded. Knows neither agents nor ACP
//! methods.
//!
//! One reader task takes messages from the transport and hands them to a [`Handler`], which is not async and so
//! cannot make it wait; one writer task takes everything that waits in the outgoing queue and writes it in
//! large pieces.

mod connection;
mod encode;
mod envelope;
mod error;
pub mod framing;
mod id;
mod json_lines;
pub mod limits;
mod outgoing;
mod peer;
mod pending;
mod pipe;
mod reader;
mod responder;
mod stdio;
mod trace;
mod transport;
mod writer;

pub use connection::{Connection, Drained};
pub use encode::encode_notification;
pub use envelope::{EnvelopeMessage, EnvelopeRefusal, read_message};
pub use error::{ConnectionClosed, ErrorObject, RequestError, SendError, code};
pub use id::RequestId;
pub use json_lines::{JsonLineSink, JsonLineSource, json_lines};
pub use peer::{Handler, IncomingRequest, Notification, Options, Peer, UnusableLines};
pub use pipe::{PipeReader, PipeWriter, duplex, pipe};
pub use responder::Responder;
pub use stdio::stdio;
pub use trace::{Trace, TraceLane};
pub use transport::{MessageSink, MessageSource, Received};
