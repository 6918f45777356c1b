//! The names of built-in tools. Rules, docs and the checks of the repository derive theirs from this one list.

/// Every built-in tool, including those that this version lacks: a rule may name a tool before it exists.
pub const BUILTIN_TOOLS: [&str; 17] = [
    "read",
    "write",
    "edit",
    "apply_patch",
    "glob",
    "grep",
    "bash",
    "bash_background",
    "todo",
    "task",
    "question",
    "web_search",
    "web_fetch",
    "skill",
    "tool_search",
    "view_image",
    PLAN_EXIT,
];

/// Proposes to leave plan mode.
pub const PLAN_EXIT: &str = "plan_exit";
