//! The agent behind an address, through the binary: messages over WebSocket and HTTP, who may come in, cut
//! connections, and the end.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]
#![allow(clippy::duplicate_mod, reason = "the rows of a pipe are played over each way")]

mod access;
mod bridged;
mod chats;
mod clients;
mod cuts;
mod deployment;
mod ending;
mod frames;
mod heads;
mod killed;
mod leaving;
mod logins;
mod official_client;
mod operation;
mod page;
mod plain_http;
mod protocol;
mod purity;
mod python_clients;
mod refusals;
mod rows_over_http;
mod rows_over_websocket;
mod served_stage;
mod server;
mod sessions_api;
mod shared;
mod sizes;
mod sockets;
mod stalls;
mod stdio_to_ws;
mod streams;
mod triggers;
mod turns_over_http;
mod turns_over_websocket;
mod use_chat;
mod workspaces;
