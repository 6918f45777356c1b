//! The core through its hub: turns, calls, questions, the queue, storage faults, crashes, several processes.
//! Everything outside is a fake, time is paused, so that each test takes milliseconds and always comes out the
//! same.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod agents;
mod approvals;
mod archives;
mod attachments;
mod backends;
mod broken_models;
mod calls;
mod cancel;
mod choices;
mod compact_command;
mod compactor;
mod context_window;
mod crashes;
mod environment;
mod faults;
mod forks;
mod history;
mod hooks;
mod knowledge;
mod left_alone;
mod making_room;
mod media;
mod notices;
mod permissions;
mod pictures;
mod processes;
mod queue;
mod queue_property;
mod readers;
mod retries;
mod rewinds;
mod runtime_context;
mod scratch;
mod servers;
mod slash_commands;
mod snapshots;
mod tasks;
mod telemetry;
mod titles;
mod told_ends;
mod turns;
mod usage;
mod world;
