//! Connections over a pipe in memory, against the real hub with a scripted model. Every line is checked on the
//! way.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail loudly"
)]

mod delegates;
mod handshake;
mod logins;
mod permissions;
mod prompts;
mod sessions;
mod transport;
mod warnings;
mod world;
