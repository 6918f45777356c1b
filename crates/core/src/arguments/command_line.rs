//! Commands in the forms of other agents: a list of words, or a line with its directory beside it. Our tool
//! takes one line for the shell.

use serde_json::{Map, Value};

use super::aliases::plain;

pub(super) const FIELD: &str = "command";

/// What others call the directory that a command runs in.
pub(super) const DIRECTORY: &[&str] =
    &["cwd", "cd", "dir", "directory", "dir_path", "workdir", "work_dir", "working_dir", "working_directory"];

const SHELLS: [&str; 3] = ["bash", "sh", "zsh"];

/// A list of words as the shell line that means the same.
pub(super) fn as_line(given: &Value) -> Value {
    let words: Option<Vec<&str>> = given
        .as_array()
        .filter(|words| !words.is_empty())
        .and_then(|words| words.iter().map(Value::as_str).collect());
    match words.as_deref() {
        None => given.clone(),
        Some([shell, "-c" | "-lc", line]) if SHELLS.contains(&shell.rsplit('/').next().unwrap_or(shell)) => {
            (*line).into()
        }
        Some(words) => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ").into(),
    }
}

/// The other arguments, and the directory that a tool for commands was given.
pub(super) fn without_directory(
    known: &Map<String, Value>,
    mut given: Map<String, Value>,
) -> (Map<String, Value>, Option<String>) {
    let is_directory = |name: &&String| DIRECTORY.iter().any(|other| plain(other) == plain(name));
    let names: Vec<String> = match known.contains_key(FIELD) {
        true => given.keys().filter(is_directory).cloned().collect(),
        false => Vec::new(),
    };
    match names.as_slice() {
        [name] if given[name].is_string() => {
            let directory = given.remove(name);
            let directory = directory.as_ref().and_then(Value::as_str).map(str::to_owned);
            (given, directory.filter(|directory| !directory.trim().is_empty()))
        }
        _ => (given, None),
    }
}

/// Makes the command run in that directory, and not at all if that is not a directory.
pub(super) fn go_to(directory: Option<String>, arguments: &mut Map<String, Value>) {
    if let (Some(directory), Some(Value::String(command))) = (directory, arguments.get_mut(FIELD)) {
        let is_one = !command.contains([';', '&', '|', '\n']);
        let join = if is_one { " && " } else { " || exit\n" };
        *command = format!("cd {}{join}{command}", quoted(&directory));
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./=:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
