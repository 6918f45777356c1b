//! Bounds of what is kept and how long is waited, each with its reason.

use std::time::Duration;

/// Spans that wait to be sent: a long turn makes some hundreds. Beyond it the oldest go.
pub(crate) const QUEUED_SPANS: usize = 2_048;

/// The same in bytes: with content a span may hold several texts of 64 KiB, and a dead collector must not cost
/// more memory than a session.
pub(crate) const QUEUED_BYTES: usize = 8 * 1024 * 1024;

/// Spans in one request: what exporters of others send.
pub(crate) const BATCH_SPANS: usize = 512;

/// Bytes in one request, roughly: collectors take 20 MiB, those in front of them often less.
pub(crate) const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// Spans that ended shortly after each other travel together; a person who looks sees them soon all the same.
pub(crate) const BATCH_DELAY: Duration = Duration::from_secs(1);

/// One request. OpenTelemetry's own default.
pub(crate) const REQUEST: Duration = Duration::from_secs(10);

pub(crate) const CONNECT: Duration = Duration::from_secs(5);

/// Tries of one batch: with the pauses between them about 15 s, in which a collector restarts.
pub(crate) const TRIES: u32 = 5;

pub(crate) const RETRY_BASE: Duration = Duration::from_secs(1);

/// A collector that wants to be left alone for longer loses the batch.
pub(crate) const RETRY_MAX: Duration = Duration::from_secs(60);

/// An answer is a few bytes; a page of another server is of no use.
pub(crate) const ANSWER_BYTES: usize = 16 * 1024;
