//! The names of other agents' tools, and which of ours does the same. Names are compared without case and
//! separators. Such a call does not run under our name, because its arguments mean something else; its error
//! names the right tool.

use super::plain;

/// Our tool, how it does the same if that is not obvious, and the others' names.
const FOREIGN: &[(&str, &str, &[&str])] = &[
    (
        "read",
        "",
        &[
            "read_file",
            "read_files",
            "read_many_files",
            "read_text_file",
            "view",
            "view_file",
            "open_file",
            "open",
            "cat",
            "fs_read",
            "get_file_contents",
            "notebook_read",
        ],
    ),
    (
        "read",
        " with the path of the directory",
        &["ls", "list", "list_dir", "list_directory", "list_files", "directory_tree", "view_directory"],
    ),
    (
        "write",
        "",
        &["write_file", "write_to_file", "create_file", "create", "save_file", "fs_write", "new_file"],
    ),
    (
        "edit",
        "",
        &[
            "multi_edit",
            "edit_file",
            "edit_files",
            "str_replace",
            "replace",
            "replace_in_file",
            "search_replace",
            "search_and_replace",
            "replace_string_in_file",
            "replace_file_content",
            "notebook_edit",
            "insert",
        ],
    ),
    (
        "edit",
        " (`read` shows a file, `write` makes one)",
        &["str_replace_editor", "str_replace_based_edit_tool", "text_editor", "editor"],
    ),
    ("apply_patch", "", &["apply_diff", "patch", "patch_file", "apply_edits"]),
    (
        "grep",
        "",
        &[
            "grep_search",
            "search_files",
            "search_file_content",
            "search_text",
            "search_code",
            "search",
            "codebase_search",
            "ripgrep",
            "rg",
            "find_in_files",
        ],
    ),
    (
        "glob",
        "",
        &["file_search", "find_file", "find_files", "find", "find_by_name", "search_for_files", "file_glob"],
    ),
    (
        "bash",
        "",
        &[
            "shell",
            "sh",
            "zsh",
            "terminal",
            "console",
            "exec",
            "exec_command",
            "execute",
            "execute_command",
            "execute_bash",
            "local_shell",
            "run",
            "run_command",
            "run_shell_command",
            "run_terminal_cmd",
            "run_terminal_command",
            "run_in_terminal",
            "shell_command",
            "container_exec",
            "python",
            "run_tests",
            "powershell",
        ],
    ),
    (
        "bash",
        " with `rm`, `mv` or `mkdir`",
        &[
            "delete_file",
            "remove_file",
            "move_file",
            "rename_file",
            "create_directory",
            "mkdir",
            "delete",
            "move",
        ],
    ),
    ("bash", " with git", &["git", "git_status", "git_diff", "git_commit", "git_log"]),
    (
        "bash_background",
        "",
        &[
            "bash_output",
            "kill_bash",
            "kill_shell",
            "get_terminal_output",
            "read_terminal",
            "command_status",
            "kill_terminal",
            "stop_command",
        ],
    ),
    (
        "todo",
        "",
        &[
            "todos",
            "todo_write",
            "todo_read",
            "todo_list",
            "write_todos",
            "update_plan",
            "manage_todo_list",
            "update_todo_list",
        ],
    ),
    (
        "question",
        "",
        &[
            "ask_user_question",
            "ask_followup_question",
            "ask_user",
            "ask",
            "ask_question",
            "request_user_input",
        ],
    ),
    (
        "web_fetch",
        "",
        &[
            "fetch",
            "fetch_url",
            "fetch_webpage",
            "read_url",
            "read_url_content",
            "browse",
            "open_url",
            "http_get",
        ],
    ),
    ("web_search", "", &["google_web_search", "search_web", "internet_search", "brave_web_search"]),
    ("view_image", "", &["read_image", "show_image", "open_image"]),
    ("plan_exit", "", &["exit_plan_mode", "plan_mode_respond"]),
];

/// Other agents' names for tools that change the mode: here one tool proposes that, and only in some modes.
pub(super) const SWITCHES: [&str; 5] =
    ["exit_plan_mode", "plan_exit", "enter_plan_mode", "switch_mode", "plan_mode_respond"];

/// Our tool that does what this one does elsewhere, and how.
pub(super) fn meant(name: &str) -> Option<(&'static str, &'static str)> {
    // Some models add a name space: `functions.shell`, `default_api:read_file`.
    let inner = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
    let is_called = |name: &str| {
        let name = plain(name);
        FOREIGN.iter().find(|row| row.2.iter().any(|other| plain(other) == name))
    };
    let (tool, how, _) = is_called(name).or_else(|| is_called(inner))?;
    Some((tool, how))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_names::BUILTIN_TOOLS;

    #[test]
    fn every_name_leads_to_one_tool_that_has_another_name() {
        let all: Vec<(&str, String)> =
            FOREIGN.iter().flat_map(|row| row.2.iter().map(|name| (row.0, plain(name)))).collect();
        for (tool, name) in &all {
            assert!(BUILTIN_TOOLS.contains(tool), "{tool}");
            assert_eq!(all.iter().filter(|(_, other)| other == name).count(), 1, "{name}");
            assert!(BUILTIN_TOOLS.iter().all(|tool| plain(tool) != *name), "{name} is ours");
        }
    }

    #[test]
    fn names_of_other_agents_are_known_however_they_are_written() {
        for (name, tool) in [
            ("TodoWrite", "todo"),
            ("MultiEdit", "edit"),
            ("run_terminal_cmd", "bash"),
            ("functions.shell", "bash"),
            ("container.exec", "bash"),
            ("default_api:read_file", "read"),
            ("LS", "read"),
            ("str_replace_editor", "edit"),
            ("KillShell", "bash_background"),
        ] {
            assert_eq!(meant(name).map(|meant| meant.0), Some(tool), "{name}");
        }
        assert_eq!(meant("fly"), None);
    }
}
