//! Watches the wire for the tests: schema, order and count of every message. Never part of the product.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

pub mod binary;
pub mod checker;
pub mod client;
pub mod database;
pub mod desktop;
pub mod fakes;
pub mod http_server;
pub mod limits;
pub mod processes;
pub mod prompts;
pub mod provider_rules;
pub mod pseudo_terminal;
pub mod replay;
pub mod schema;
pub mod snake_case;
pub mod store_suite;
pub mod terminals;
pub mod tmux;
