//! attache as an MCP server, through the binary: the official client, hand-written messages, and another
//! attache.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod chain;
mod official_client;
mod over_http;
mod over_stdio;
mod stage;
