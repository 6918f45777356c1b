//! How we show a call of another agent's tool: its title, its kind, the change it made. Derived from its name
//! and arguments, which differ little between agents.

use std::path::{Path, PathBuf};

use attache_core::ports::tool::{Location, Presentation, Shown, ToolKind};
use serde_json::Value;

pub(super) fn presentation(name: &str, input: &Value, directory: Option<&Path>) -> Presentation {
    let kind = kind_of(name);
    let path = text(input, &["file_path", "filePath", "path", "absolute_path", "dir_path", "notebook_path"]);
    let short = path.map(|path| shortened(path, directory));
    let title = match (kind, command(input), short) {
        (ToolKind::Execute, Some(command), _) => command,
        (ToolKind::Read, _, Some(path)) => format!("Read `{path}`"),
        (ToolKind::Edit, _, Some(path)) => format!("Edit `{path}`"),
        (ToolKind::Search, _, _) => match text(input, &["pattern", "query", "path", "dir_path"]) {
            Some(words) => format!("{name} `{words}`"),
            None => name.to_owned(),
        },
        (ToolKind::Fetch, _, _) => match text(input, &["url", "query", "prompt"]) {
            Some(words) => format!("{name} `{words}`"),
            None => name.to_owned(),
        },
        (_, _, Some(path)) => format!("{name} `{path}`"),
        (_, _, None) => name.to_owned(),
    };
    let edited = path.filter(|_| kind == ToolKind::Edit);
    let content = edited.map(|path| changes(input, &absolute(path, directory))).unwrap_or_default();
    let locations = path.map(|path| Location { path: absolute(path, directory), line: None });
    Presentation {
        title,
        kind: Some(kind),
        locations: locations.into_iter().collect(),
        content,
        ..Presentation::default()
    }
}

/// MCP servers put their own name before the tool's.
fn kind_of(name: &str) -> ToolKind {
    let lower = name.to_lowercase();
    let last = lower.rsplit("__").next().unwrap_or(&lower);
    let is = |words: &[&str]| words.contains(&last);
    if is(&["bash", "shell", "run_shell_command", "exec_command", "local_shell", "exec", "write_stdin"]) {
        ToolKind::Execute
    } else if is(&["read", "read_file", "view", "read_many_files", "notebookread", "view_image", "cat"]) {
        ToolKind::Read
    } else if is(&[
        "edit",
        "multiedit",
        "write",
        "write_file",
        "replace",
        "str_replace",
        "text_editor",
        "apply_patch",
        "patch",
        "notebookedit",
        "create",
        "insert",
        "edit_file",
    ]) {
        ToolKind::Edit
    } else if is(&[
        "grep",
        "glob",
        "ls",
        "list",
        "list_directory",
        "search_file_content",
        "grep_search",
        "tree",
    ]) {
        ToolKind::Search
    } else if is(&["webfetch", "web_fetch", "websearch", "web_search", "google_web_search", "fetch"]) {
        ToolKind::Fetch
    } else {
        ToolKind::Other
    }
}

fn text<'a>(input: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| input.get(key)?.as_str()).filter(|text| !text.is_empty())
}

/// A command line, or the words of one; leaves out a shell and its `-c`.
fn command(input: &Value) -> Option<String> {
    if let Some(line) = text(input, &["command", "cmd", "script"]) {
        return Some(line.to_owned());
    }
    let words: Vec<&str> = input.get("command")?.as_array()?.iter().filter_map(Value::as_str).collect();
    match words.as_slice() {
        [_, "-c" | "-lc", line] => Some((*line).to_owned()),
        [] => None,
        words => Some(words.join(" ")),
    }
}

/// Old and new texts, as one or several pairs, or a whole file.
fn changes(input: &Value, path: &Path) -> Vec<Shown> {
    let pair = |value: &Value| {
        let old = text(value, &["old_string", "oldString", "old_str", "old"]);
        let new = text(value, &["new_string", "newString", "new_str", "new"]);
        (old.is_some() || new.is_some()).then(|| diff(path, old, new.unwrap_or_default()))
    };
    if let Some(edits) = input.get("edits").and_then(Value::as_array) {
        return edits.iter().filter_map(pair).collect();
    }
    let whole = || text(input, &["content", "file_text", "new_content"]).map(|new| diff(path, None, new));
    pair(input).or_else(whole).into_iter().collect()
}

fn diff(path: &Path, old: Option<&str>, new: &str) -> Shown {
    Shown::Diff { path: path.to_owned(), old_text: old.map(str::to_owned), new_text: new.to_owned() }
}

fn absolute(path: &str, directory: Option<&Path>) -> PathBuf {
    directory.map_or_else(|| PathBuf::from(path), |directory| directory.join(path))
}

fn shortened(path: &str, directory: Option<&Path>) -> String {
    let inner = directory.and_then(|directory| Path::new(path).strip_prefix(directory).ok());
    inner.map_or_else(|| path.to_owned(), |inner| inner.display().to_string())
}
