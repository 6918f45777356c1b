//! Speaks to language models and gives back chunks. Knows no sessions, no ACP and no disk: scripts arrive as text.

mod limits;
mod registry;
mod script;
mod script_model;

pub use registry::Providers;
pub use script::{
    Directive, ErrorKind, Script, ScriptError, ScriptedCall, ScriptedError, ScriptedModel, Step,
};
pub use script_model::ScriptModel;
