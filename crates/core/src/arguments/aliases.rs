//! Names that models use for arguments when they have the tools of another agent in mind: a table, and its
//! lookup.

/// How the value under an alias becomes the field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The same value.
    Same,
    /// Seconds; the field counts milliseconds.
    Seconds,
    /// A number below 1,000 means seconds, a larger one milliseconds: no model means to give a command less
    /// than a second, and more than 600 seconds are not allowed.
    Either,
    /// A boolean with the opposite meaning.
    Opposite,
    /// A number; more than one means true.
    MoreThanOne,
}

/// Field, unit, and other names for it. Several fields may share a name, because a tool has only one of them.
const ALIASES: &[(&str, Unit, &[&str])] = &[
    (
        "path",
        Unit::Same,
        &[
            "file",
            "file_path",
            "file_name",
            "target_file",
            "target_path",
            "absolute_path",
            "relative_path",
            "relative_workspace_path",
            "source_path",
            "dir",
            "directory",
            "dir_path",
            "directory_path",
            "folder",
            "cwd",
            "image",
            "image_path",
            "search_path",
        ],
    ),
    ("offset", Unit::Same, &["skip", "skip_lines"]),
    (
        "limit",
        Unit::Same,
        &[
            "lines",
            "num_lines",
            "line_count",
            "count",
            "max_lines",
            "head_limit",
            "max_results",
            "max_matches",
            "max_count",
            "total_max_matches",
        ],
    ),
    ("content", Unit::Same, &["contents", "text", "file_text", "file_content", "new_content", "data"]),
    ("old_string", Unit::Same, &["old", "old_str", "old_text", "search", "find", "before"]),
    ("new_string", Unit::Same, &["new", "new_str", "new_text", "replace", "replacement", "after"]),
    ("replace_all", Unit::Same, &["all", "global", "replace_all_occurrences", "allow_multiple"]),
    ("replace_all", Unit::MoreThanOne, &["expected_replacements", "expected_occurrences"]),
    ("edits", Unit::Same, &["replacements", "changes"]),
    ("patch", Unit::Same, &["diff", "input", "patch_text", "content"]),
    ("pattern", Unit::Same, &["query", "regex", "search", "glob", "search_pattern", "regexp"]),
    (
        "glob",
        Unit::Same,
        &["include", "includes", "include_pattern", "file_pattern", "glob_pattern", "file_glob"],
    ),
    ("ignore_case", Unit::Same, &["case_insensitive", "i"]),
    ("ignore_case", Unit::Opposite, &["case_sensitive"]),
    ("context", Unit::Same, &["context_lines", "A", "B", "C", "before_context", "after_context"]),
    ("command", Unit::Same, &["cmd", "script", "code", "shell_command", "bash_command", "command_line"]),
    ("timeout_ms", Unit::Same, &["timeout_millis", "timeout_milliseconds"]),
    ("timeout_ms", Unit::Seconds, &["timeout_s", "timeout_sec", "timeout_secs", "timeout_seconds"]),
    ("timeout_ms", Unit::Either, &["timeout"]),
    ("wait_ms", Unit::Same, &["wait_millis", "timeout_ms"]),
    ("wait_ms", Unit::Seconds, &["wait_s", "wait_seconds", "timeout_s", "timeout_seconds"]),
    ("wait_ms", Unit::Either, &["wait", "timeout"]),
    (
        "description",
        Unit::Same,
        &["desc", "purpose", "reason", "explanation", "justification", "display_description"],
    ),
    ("background", Unit::Same, &["run_in_background", "is_background", "in_background", "detach"]),
    (
        "name",
        Unit::Same,
        &["id", "bash_id", "shell_id", "task_id", "process_id", "session_id", "skill", "skill_name"],
    ),
    (
        "subagent_type",
        Unit::Same,
        &["agent", "agent_type", "agent_name", "agent_id", "subagent", "subagent_name", "type", "name"],
    ),
    (
        "prompt",
        Unit::Same,
        &["task", "message", "task_prompt", "task_description", "request", "instruction", "instructions"],
    ),
    ("todos", Unit::Same, &["tasks", "items", "list", "plan"]),
    ("status", Unit::Same, &["state"]),
    ("action", Unit::Same, &["operation", "command"]),
    ("url", Unit::Same, &["uri", "link", "address"]),
    ("query", Unit::Same, &["q", "search", "search_query", "search_term"]),
    ("max_results", Unit::Same, &["count", "limit", "num_results"]),
    ("question", Unit::Same, &["text", "prompt"]),
    ("options", Unit::Same, &["choices", "answers"]),
    ("header", Unit::Same, &["title"]),
    ("multi_select", Unit::Same, &["multiple", "multi_choice"]),
    ("label", Unit::Same, &["value", "option"]),
];

/// What others call the `content` of a task.
const TASK: &[&str] = &["task", "step", "description", "title"];

/// A value of a list of values, and what others call it.
const VALUES: &[(&str, &[&str])] = &[
    ("stop", &["kill", "terminate", "cancel", "end", "interrupt"]),
    ("output", &["read", "get", "poll", "log", "logs", "tail", "wait", "check", "status", "view"]),
    ("list", &["ls", "all", "show"]),
    ("pending", &["todo", "open", "not_started", "planned", "queued", "new"]),
    ("in_progress", &["doing", "active", "started", "current", "working", "ongoing", "wip"]),
    ("completed", &["done", "complete", "finished", "closed", "resolved"]),
    ("high", &["critical", "urgent", "important"]),
    ("medium", &["normal", "moderate", "default"]),
    ("low", &["minor"]),
];

/// Words about a call, for people: they do not change what the call does.
const REMARKS: &[&str] = &[
    "description",
    "desc",
    "display_description",
    "explanation",
    "justification",
    "purpose",
    "reason",
    "reasoning",
    "thought",
    "instruction",
    "instructions",
    "summary",
    "title",
    "comment",
];

/// What to do instead of giving an argument that no field takes, for tools that have the first of the named
/// fields.
const ADVICE: &[(&str, &[&str], &str)] = &[
    ("command", &["stdin", "input"], "give it with `<<'EOF'` in the command"),
    ("command", &["env", "environment"], "set variables in the command: `A=1 program`"),
    ("ignore_case", &["n", "line_numbers"], "lines are always numbered"),
    ("ignore_case", &["type", "file_type"], "give `glob`, like `*.py`"),
    ("ignore_case", &["multiline"], "a match never spans lines"),
    (
        "ignore_case",
        &["output_mode", "files_with_matches", "names_only"],
        "matches are always listed below their file",
    ),
    ("replace_all", &["expected_replacements", "count"], "`replace_all` replaces all"),
    ("todos", &["merge"], "the list is always replaced as a whole"),
];

/// The one known field that a name means, and the unit of its number.
pub fn meant<'a>(name: &str, known: impl Iterator<Item = &'a String> + Clone) -> Option<(&'a String, Unit)> {
    let name = plain(name);
    if let Some(field) = only(known.clone().filter(|field| plain(field) == name)) {
        return Some((field, Unit::Same));
    }
    let is_task =
        known.clone().any(|field| field == "status") && TASK.iter().any(|other| plain(other) == name);
    if let Some(field) = known.clone().find(|field| is_task && *field == "content") {
        return Some((field, Unit::Same));
    }
    only(known.flat_map(|field| {
        let rows = ALIASES.iter().filter(move |row| row.0 == field);
        let name = &name;
        rows.filter(move |row| row.2.iter().any(|alias| plain(alias) == *name)).map(move |row| (field, row.1))
    }))
}

/// What to do instead of giving this argument to a tool with these fields.
pub fn advice<'a>(name: &str, known: impl Iterator<Item = &'a String> + Clone) -> Option<&'static str> {
    let name = plain(name);
    let fits = |row: &&(&str, &[&str], &str)| {
        row.1.iter().any(|alias| plain(alias) == name) && known.clone().any(|field| field == row.0)
    };
    ADVICE.iter().find(fits).map(|row| row.2)
}

/// Whether a name, already in its `plain` form, is another name for this value.
pub(crate) fn is_value(value: &str, name: &str) -> bool {
    VALUES.iter().any(|row| row.0 == value && row.1.iter().any(|other| plain(other) == name))
}

/// Whether a field only says something about its call.
pub fn is_remark(name: &str) -> bool {
    REMARKS.iter().any(|remark| plain(remark) == plain(name))
}

/// A name without what people write differently: case, `_`, `-`.
pub fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    found.next().filter(|_| found.next().is_none())
}

/// Every value of a list of values with each of its other names, for tests that check the tables against the
/// tools.
pub fn all_values() -> impl Iterator<Item = (&'static str, &'static str)> {
    VALUES.iter().flat_map(|row| row.1.iter().map(move |other| (row.0, *other)))
}

/// Every field with each of its other names, for tests that check the tables against the tools.
pub fn all() -> impl Iterator<Item = (&'static str, Unit, &'static str)> {
    let of_tasks = TASK.iter().map(|alias| ("content", Unit::Same, *alias));
    ALIASES.iter().flat_map(|row| row.2.iter().map(move |alias| (row.0, row.1, *alias))).chain(of_tasks)
}
