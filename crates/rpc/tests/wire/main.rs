//! The peer against a raw byte client on the in-memory pipe.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

mod client;
mod flow;
mod lines;
mod protocol;
mod requests;
mod traffic;
