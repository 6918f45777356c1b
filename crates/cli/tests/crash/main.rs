//! Rows C1–C7 at the binary: killed, crowded, full, broken and huge, and what the next process finds.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod broken_databases;
mod full_disks;
mod kill_loop;
mod killed_calls;
mod killed_compactions;
mod killed_rewinds;
mod killed_tasks;
mod long_session;
mod many_processes;
mod panics;
mod story;
mod tmpfs;
mod told_damage;
