//! Spans as a collector gets them: read by OpenTelemetry's own message types, and from collectors that do not
//! work at all.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod endings;
mod receiver;
mod served;
mod traces;
