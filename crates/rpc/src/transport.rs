//! What carries messages: a source they come from and a sink they go to. Framing belongs to the transport; the
//! peer sees whole messages only. Pipes use [`json_lines`](crate::json_lines); another transport implements
//! these two traits.

use crate::trace::TraceLane;
use std::borrow::Cow;
use std::io;

pub trait MessageSource: Send + 'static {
    /// Waits for the next message. What arrives is also copied to the trace, if there is one, as it came.
    fn receive(&mut self, trace: Option<&TraceLane>) -> impl Future<Output = Received<'_>> + Send;
}

#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// One JSON text; owned when it is large, so that it can be used up in place.
    Message(Cow<'a, [u8]>),
    /// Something that can't be a message. The reason is sent back.
    Unusable(String),
    /// The other side has hung up, or can't be heard any more.
    End,
}

pub trait MessageSink: Send + 'static {
    /// Writes from the front of `messages`, JSON texts that each end in a newline and have none inside. Gives
    /// how many bytes are done; the rest comes again with the next call.
    fn write(&mut self, messages: &[u8]) -> impl Future<Output = io::Result<usize>> + Send;

    /// Resolves when everything written has left.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Nothing more will be written.
    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}
