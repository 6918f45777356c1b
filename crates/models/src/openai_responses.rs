//! The dialect OpenAI Responses: requests out, events in. Nothing is stored on the server's side, so history goes back whole.

pub(crate) mod decode;
mod efforts;
pub(crate) mod encode;
mod wire;
