//! Translates between an editor and the core: ACP in, core values out, and back. Opens no files, knows no tools
//! or providers.
//!
//! `from_wire` and `to_wire` are pure, and the only modules that know the protocol's shapes; `serve` sends and
//! receives what they convert.
#![warn(missing_docs)]

mod accounts;
pub mod from_wire;
pub mod limits;
mod serve;
pub mod to_wire;

pub use accounts::{Accounts, CommandLine, Login, LoginWay};
pub use serve::{
    AgentServices, ClientFs, Host, SameDirectory, SessionPace, StartFailure, Warning, connect, connect_paced,
    refuse_all,
};
