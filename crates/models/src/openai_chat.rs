//! The dialect OpenAI Chat Completions: requests out, events in.

pub(crate) mod decode;
pub(crate) mod encode;
