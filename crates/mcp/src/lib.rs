//! Speaks to MCP servers for sessions: starts or reaches them, lists their tools, calls them. Trusts none of
//! them: sizes, times, names and schemas are checked here. Decides no permission.

mod bounded;
mod client;
mod elicitation;
mod expand;
mod handler;
mod hidden_files;
mod http;
mod launch;
pub mod limits;
mod listing;
mod names;
pub mod oauth;
mod pool;
mod program;
mod prompts;
mod resources;
mod result;
mod sampling;
mod schema;
mod server;
mod session;
mod sse;
mod subscriptions;
mod tool;
mod workspace_code;

pub use pool::{HostServers, McpSettings, Variables};
