//! The chat in a real terminal: the binary and the scripted model, driven by keys, read from the screen.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod agents;
mod around;
mod documented;
mod lines;
mod matrix;
mod own_things;
mod questions;
mod screens;
mod sessions;
mod stage;
mod talk;
mod terminal;
