//! Runs turns by agents that live elsewhere: their chunks are recorded, their questions judged and asked like
//! those of the loop. Knows nothing of the agent's side of ACP, SQL, or what
//! tools do.

mod acp;
pub mod agent;
mod ai_sdk;
mod backends;
mod convert;
mod error;
mod events;
mod headers;
mod held_words;
mod http;
mod langgraph;
mod limits;
mod python;
mod session_files;
mod turn;
mod unusable;

pub use acp::{AcpAgent, AcpSettings, AgentHold};
pub use ai_sdk::{AiSdkAgent, AiSdkSettings, SentHistory};
pub use backends::{ForeignAgents, ForeignBackends};
pub use error::ForeignError;
pub use headers::{Headers, UnsetVariable, with_variables};
pub use langgraph::{LangGraphAgent, LangGraphSettings};
pub use python::{PythonAgent, PythonSettings, WorkspacePython};
pub use unusable::UnusableAgent;
