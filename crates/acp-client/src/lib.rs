//! Talks to agents as a client of the Agent Client Protocol: requests out, events in, whatever carries them.
//! Shows nothing, decides nothing, and knows no models, tools or storage.
//!
//! Whoever waits for an answer must go on taking events: with [`limits::UNREAD_BYTES`] of them untaken, nothing
//! more is read from the agent, the answer included. All events that an answer follows are in the queue when it
//! arrives.

mod calls;
mod connection;
mod door;
mod events;
mod extensions;
mod failure;
mod handler;
mod introduction;
pub mod legible;
pub mod limits;
mod process;
mod questions;
mod sessions;
mod words;

pub use calls::{CallReply, ClientCall};
pub use connection::{AgentAbility, AgentClient, Connected, connect};
pub use door::{AgentDoor, CommandDoor, DoorFuture};
pub use events::{AgentEvents, ClientEvent, PromptTicket, SessionNews};
pub use extensions::{CommandCompletion, QueuedPrompt, RewoundPrompt, SessionActivity, SessionState};
pub use failure::{AgentEnd, ClientFailure};
pub use introduction::{Introduction, asked_of_a_person, unattended_capabilities};
pub use process::{AgentProcess, EndFuture};
pub use questions::{ElicitationQuestion, PermissionQuestion};
pub use sessions::{OpenedSession, SessionMatch, SessionStart};
pub use words::{BadCommand, words_of};
