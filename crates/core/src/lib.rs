//! Decides what happens next in a session. Time, ids, files, models and clients arrive through `ports`.

pub mod agents;
pub mod calendar;
pub mod choices;
pub mod chunk;
pub mod conversation;
pub mod entry;
pub mod environment;
pub mod estimate;
pub mod events;
pub mod export;
mod fork;
pub mod hub;
pub mod ids;
pub mod journal;
pub mod legible;
pub mod limits;
pub mod part;
pub mod picture;
pub mod ports;
pub mod prompt;
mod rows;
pub mod scope;
pub mod seen;
mod session;
pub mod system_prompt;
pub mod turn;
pub mod watchdog;
