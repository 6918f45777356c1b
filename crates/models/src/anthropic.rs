//! The dialect Anthropic Messages: requests out, events in.

pub(crate) mod decode;
pub(crate) mod encode;
mod names;
mod prefix;
mod thinking;
