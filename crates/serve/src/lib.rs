//! Serves the agent to clients elsewhere: ACP over WebSocket and over streamable HTTP, behind the same
//! `connect` as a pipe, chats of the AI SDK, and a page with what it reads. Knows no tool and no file; who may
//! come in is checked by `attache_http`.
//!
//! A connection (`acp::connection`) outlives what carries it: its client may be cut off and come back. What
//! it has for its client stands in its `outbox`, which every carrier reads.

mod acp;
mod bodies;
mod chat;
pub mod client;
mod handshake;
pub mod limits;
mod outbox;
mod page;
mod server;
mod sessions_api;
mod workspaces;

pub use acp::ACP_PATH;
pub use chat::CHAT_PATH;
pub use server::{AgentServer, OPEN_PATHS, ServeSettings};
pub use workspaces::WorkspaceHost;
