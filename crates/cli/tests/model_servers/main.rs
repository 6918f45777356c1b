//! Model servers of others, through the binary: whole conversations with tools, and the ways a
//! server fails.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod conversation;
mod failures;
mod server;
