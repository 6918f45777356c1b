//! MCP servers through the binary: good ones, broken ones, hostile ones, and those of other people.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod browser;
mod commands;
mod fetched;
mod hostile;
mod oauth;
mod offers;
mod over_http;
mod peers;
mod processes;
mod projects;
mod results;
mod stage;
mod stateless;
