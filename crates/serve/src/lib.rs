//! Serves the agent to clients elsewhere: ACP over WebSocket and over streamable HTTP, behind the same
//! `connect` as a pipe, chats of the AI SDK, and a page with what it reads. Knows no tool and no file; who may
//! come in is checked by `attache_http`. Times and webhooks begin turns, too.
//!
//! A connection (`acp::connection`) outlives what carries it: its client may be cut off and come back. What
//! it has for its client is in its `outbox`, which every carrier reads.

mod acp;
mod admission;
mod bodies;
mod chat;
pub mod client;
mod handshake;
pub mod limits;
mod metrics;
mod outbox;
mod page;
mod server;
mod sessions_api;
mod triggers;
mod workspaces;

pub use acp::ACP_PATH;
pub use admission::{CallerLimits, ServeLimits};
pub use chat::CHAT_PATH;
pub use metrics::{PromptWay, ServerMetrics};
pub use page::STATIC_PATHS;
pub use server::{AgentServer, EVENT_PATHS, HOOKS_PATH, OPEN_PATHS, ServeSettings};
pub use triggers::{
    Cron, CronError, HookKey, PromptTemplate, ScheduleEntry, Trigger, TriggerHost, Triggers, Webhook,
};
pub use workspaces::WorkspaceHost;
