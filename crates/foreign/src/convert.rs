//! What a prompt is to agents of other frameworks: the same parts in their words, byte for byte as documented
//! in docs/foreign.md. Opens and fetches nothing.

pub(crate) mod acp_blocks;
pub(crate) mod langchain;
pub(crate) mod piece;
pub(crate) mod ui_message;
