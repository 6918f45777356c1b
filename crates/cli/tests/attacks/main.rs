//! Attacks on the whole program: what attache itself must not run, reach, tell or print, whatever it is given.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod hostile_repository;
mod image_links;
mod own_memory;
mod planted_programs;
mod swapped_root;
mod terminals;
