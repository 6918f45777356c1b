//! The tools through their port, as the loop calls them: one behaviour per test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod apply_patch;
mod attacks;
mod background;
mod bash;
mod client_terminal;
mod client_texts;
mod edit;
mod glob;
mod grep;
mod kill;
mod links;
mod mounts;
mod names;
mod prompt;
mod read;
mod ripgrep;
mod sandbox;
mod seen;
mod shell;
mod todo;
mod trees;
mod trial;
mod view_image;
mod web_search;
mod write;
