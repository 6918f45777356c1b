//! Rows P8–P12 at the binary: many prompts, cancellation, silent and lying clients, stalled readers, sudden
//! ends.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod cancel;
mod cancel_below;
mod endings;
mod hooks;
mod init;
mod interrupts;
mod permission;
mod queue;
mod requests;
mod resume;
mod rewinds;
mod stage;
mod stalled_reader;
mod title;
mod trace;
