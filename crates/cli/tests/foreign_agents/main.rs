//! Agents that live elsewhere, behind the whole binary: real servers and libraries of others, started here.

mod ai_sdk;
mod approvals;
mod bad_input;
mod kills;
mod langgraph;
mod peer;
mod pydantic_ai;
mod python;
