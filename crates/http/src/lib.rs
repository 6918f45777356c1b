//! Serves HTTP: bounded connections with time-outs, and no request comes in without the token. Knows no
//! protocol above it.

mod access;
mod body;
mod events;
pub mod limits;
mod listener;
mod token;

pub use access::{AccessCheck, behind, refusal};
pub use body::{BodyError, read_body};
pub use events::event_body;
pub use listener::{HttpListener, loopback_names};
pub use token::{BearerToken, random_name};
