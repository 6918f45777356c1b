//! Translates between an editor and the core: ACP in, core values out, and back. Opens no files, knows no tools or providers.
//!
//! `from_wire` and `to_wire` are pure and the only modules that know the shapes of the protocol.

pub mod from_wire;
pub mod limits;
pub mod to_wire;
