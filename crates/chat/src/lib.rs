//! Talks to agents as a client of the Agent Client Protocol, and to nothing else: it knows no models, tools or
//! storage.
//!
//! [`client`] is the connection: requests out, events in, whatever carries them. [`one_shot`] is one prompt for
//! a script.

pub mod client;
pub mod legible;
pub mod limits;
pub mod one_shot;
