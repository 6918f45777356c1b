//! The tools: one file each, with its input as its schema. Code that several tools share lies beside this
//! folder.

pub(crate) mod apply_patch;
pub(crate) mod bash;
pub(crate) mod bash_background;
pub(crate) mod edit;
pub(crate) mod glob;
pub(crate) mod grep;
pub(crate) mod plan_exit;
pub(crate) mod question;
pub(crate) mod read;
pub(crate) mod skill;
pub(crate) mod todo;
pub(crate) mod view_image;
pub(crate) mod web_fetch;
pub(crate) mod web_search;
pub(crate) mod write;
