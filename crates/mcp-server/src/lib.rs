//! attache as an MCP server: other agents ask it, and look into its sessions. Knows neither ACP nor providers;
//! what it does is the hub's, as for any other client.

mod arguments;
mod ask;
mod conversation;
mod denials;
mod forms;
mod http;
pub mod limits;
mod outcome;
mod parked;
mod person;
mod revision;
mod services;
mod session_read;
mod sessions_search;
mod stateless;
mod stop_reason;
mod tool_list;

pub use conversation::{converse, options};
pub use http::{MCP_PATH, mcp_router};
pub use services::{McpHost, McpServices};
