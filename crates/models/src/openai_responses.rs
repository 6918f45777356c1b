//! The dialect OpenAI Responses: requests out, events in.

pub(crate) mod decode;
pub(crate) mod encode;
