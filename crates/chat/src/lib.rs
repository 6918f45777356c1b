//! Talks to agents as a client of the Agent Client Protocol, and to nothing else: it knows no models, tools or
//! storage.
//!
//! [`client`] is the connection: requests out, events in, whatever carries them. [`one_shot`] is one prompt and
//! its answer, for scripts. [`screen`] is what a person sees and types.

pub mod client;
pub mod legible;
pub mod limits;
pub mod one_shot;
pub mod screen;
