//! The tools through their port, as the loop calls them: one behaviour per test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod apply_patch;
mod attacks;
mod background;
mod bash;
mod caches;
mod client_terminal;
mod client_texts;
#[path = "../../shell/tests/corpus.rs"]
mod corpus_lines;
mod edit;
mod git_status;
mod glob;
mod grep;
mod guarded;
mod hooks;
mod instructions;
mod kill;
mod led_to;
mod links;
mod mounts;
mod names;
mod prompt;
mod read;
mod ripgrep;
mod sandbox;
mod seen;
mod shell;
mod skills;
mod snapshots;
mod todo;
mod trees;
mod trial;
mod view_image;
mod web_search;
mod write;
