//! Talks to agents as a client of the Agent Client Protocol, and to nothing else: it knows no models, tools or
//! storage.
//!
//! [`one_shot`] is one prompt and its answer, for scripts. [`screen`] is what a person sees and types. The
//! connection is `attache_acp_client`'s.

pub mod limits;
pub mod one_shot;
pub mod screen;
