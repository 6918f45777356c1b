//! Agents that live elsewhere, behind the whole binary: real servers and libraries of others, started here.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod acp;
mod ai_sdk;
mod approvals;
mod bad_input;
mod intruders;
mod kills;
mod langgraph;
// It comes as a program for this kind of machine alone.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod goose;
mod peer;
mod processes;
mod projects;
mod pydantic_ai;
mod python;
