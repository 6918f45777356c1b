//! The `task` tool: gives a piece of work to a subagent, which does it in a session of its own. The child runs
//! like any other session; here is what starts it, watches it and brings its last message back.

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

/// The transient chunk by which a call of a child is shown to the clients of its parent, because they are asked
/// about it.
pub const ASKED_CALL: &str = "subagent-call";

/// Who sent a prompt that brings news of a background task.
pub(crate) const TASK_TRIGGER: &str = "task";
