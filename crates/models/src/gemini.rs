//! The dialect Gemini generateContent: requests out, events in.

pub(crate) mod decode;
pub(crate) mod encode;
