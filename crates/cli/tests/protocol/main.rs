//! Rows P1–P7 and P13 at the binary: whatever a client sends, one clear error comes back and the next request
//! is served.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod failed_starts;
mod garbage;
mod handshake;
mod ids;
mod long_lines;
mod methods;
mod params;
mod purity;
mod stage;
mod unknown_sessions;
