//! The `task` tool: gives a piece of work to a subagent, which does it in a session of its own. The child runs
//! like any other session; this module starts it, watches it and returns its last message.

mod progress;
pub(crate) mod relay;
mod result;
mod run;
pub(crate) mod slots;
mod start;
mod tool;

pub(crate) use start::TaskTerms;
pub(crate) use tool::TaskTool;
pub use tool::spec;

/// The sender of a prompt with news of a background task.
pub(crate) const TASK_TRIGGER: &str = "task";
