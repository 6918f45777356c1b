//! Starts processes, owns their process trees and confines them. Decides no permission and knows no tool: the
//! caller says what a command was granted.

pub mod account;
pub mod caches;
pub mod environment;
pub mod git_config;
pub mod git_guard;
pub mod git_index;
pub mod limits;
pub mod link_chain;
pub mod no_follow;
pub mod paths;
pub mod platform;
pub mod process;
pub mod programs;
pub mod regular_file;
pub mod relay;
mod sandbox;
pub mod scratch_file;
pub mod temporary;
mod trusted;
mod version_managers;

pub use sandbox::*;
