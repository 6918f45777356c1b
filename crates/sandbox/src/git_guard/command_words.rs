//! Which files a command in git's configuration may name. Splits the text as a shell would, but without its
//! rules: where we cannot know the meaning, assumes what it could mean in the work tree. Looks only at kinds of
//! files.

use std::path::{Path, PathBuf};

use crate::limits::COMMAND_DIRECTORIES;
use crate::paths::normal;

/// Keys whose value git starts or hands to a shell, in any section.
const COMMANDS: [&str; 26] = [
    "alternaterefscommand",
    "askpass",
    "browser",
    "cccmd",
    "clean",
    "cmd",
    "command",
    "defaultkeycommand",
    "difffilter",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "headercmd",
    "helper",
    "packobjectshook",
    "process",
    "program",
    "receivepack",
    "recentobjectshook",
    "smudge",
    "sshcommand",
    "textconv",
    "tocmd",
    "uploadpack",
];

/// Sections whose keys the user names.
const SECTIONS: [&str; 2] = ["alias", "pager"];

/// Programs that run the file named after them.
const INTERPRETERS: [&str; 14] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "perl", "ruby", ".", "source",
    "exec",
];

/// Commands after which the next word becomes the directory.
const CHANGES: [&str; 3] = ["cd", "pushd", "-C"];

/// Replaces what a shell would insert: a variable, or the output of a command.
const UNKNOWN: char = '\u{1}';

pub(super) fn runs_a_command(section: &str, key: &str) -> bool {
    SECTIONS.contains(&section) || COMMANDS.contains(&key)
}

/// Files in a work tree that the command may run or read, whether or not they exist.
pub(super) fn paths_in(value: &str, tree: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut directories = vec![tree.to_owned()];
    let mut found = Vec::new();
    for part in parts(value) {
        // Quotes do not end a word.
        let part = part.replace(['\'', '"'], "");
        let is_separator = |c: char| c.is_whitespace() || "`;|&()<>=!{}".contains(c);
        let words: Vec<&str> = part.split(is_separator).filter(|word| !word.is_empty()).collect();
        let mut before = "";
        for word in words {
            let paths = directories.iter().map(|directory| path(word, directory, home));
            let paths: Vec<PathBuf> = paths.collect();
            if CHANGES.contains(&before) && directories.len() + paths.len() <= COMMAND_DIRECTORIES {
                directories.extend(paths);
            } else {
                let is_file_name = word.contains('/') && !word.contains("://");
                let is_run = INTERPRETERS.contains(&base(before)) && !word.starts_with('-');
                let is_named = |path: &PathBuf| {
                    let found = path.symlink_metadata();
                    found.map_or(is_file_name || is_run, |found| !found.is_dir())
                };
                found.extend(paths.into_iter().filter(is_named));
            }
            before = word;
        }
    }
    found
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// A word that begins with something unknown counts as a path below the directory.
fn path(word: &str, directory: &Path, home: Option<&Path>) -> PathBuf {
    let known = word.trim_start_matches(UNKNOWN);
    let is_unknown = known.len() < word.len();
    match (word.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => normal(&home.join(below)),
        _ if is_unknown => normal(&directory.join(known.trim_start_matches('/'))),
        _ => normal(&directory.join(word)),
    }
}

/// The text without everything that a shell would replace, and the commands that were in it.
fn parts(value: &str) -> Vec<String> {
    let mut outer = String::new();
    let mut inner: Vec<String> = Vec::new();
    let mut rest = value;
    while let Some(at) = rest.find(['$', '`']) {
        outer.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let (replaced, length) = match (rest.as_bytes()[at], behind.chars().next()) {
            (b'`', _) => (true, closed(behind, None, '`')),
            (_, Some('(')) => (true, 1 + closed(&behind[1..], Some('('), ')')),
            (_, Some('{')) => (true, 1 + closed(&behind[1..], Some('{'), '}')),
            _ => {
                (false, behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(behind.len()))
            }
        };
        if replaced {
            inner.extend(parts(behind[..length].trim_matches(['(', ')', '{', '}', '`'])));
        }
        outer.push(UNKNOWN);
        rest = &behind[length..];
    }
    outer.push_str(rest);
    inner.push(outer);
    inner
}

/// The length of a text up to and including its closing character.
fn closed(text: &str, open: Option<char>, close: char) -> usize {
    let mut depth = 1;
    for (at, character) in text.char_indices() {
        if character == close {
            depth -= 1;
        } else if Some(character) == open {
            depth += 1;
        }
        if depth == 0 {
            return at + character.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_may_name_is_found_there_or_not() {
        for (value, expected) in [
            ("tools/watch", &["/t/tools/watch"][..]),
            ("!sh st.sh", &["/t/st.sh"]),
            ("!$(git rev-parse --show-toplevel)/x/y", &["/t/x/y"]),
            ("!\"$(git rev-parse --show-toplevel)\"/x", &["/t/x"]),
            ("!`git rev-parse --show-toplevel`/x", &["/t/x"]),
            ("!${ROOT:-.}/x $HOME/y", &["/t/x", "/t/y"]),
            ("!cd tools && ./run", &["/t/run", "/t/tools/run"]),
            (
                "!cd \"$(git rev-parse --show-toplevel)/a\" && cd b && ./run",
                &["/t/run", "/t/a/run", "/t/b/run", "/t/a/b/run"],
            ),
            ("!f() { bin/x \"$@\"; }; f", &["/t/bin/x"]),
            ("!$(cat a/b $(c/d))", &["/t/c/d", "/t/a/b"]),
            ("~/x/y", &["/h/x/y"]),
            ("log --oneline", &[]),
            ("!git log | less -R", &[]),
            ("https://example.org/x", &[]),
            ("$", &[]),
            ("!${x", &[]),
        ] {
            let found = paths_in(value, Path::new("/t"), Some(Path::new("/h")));
            let found: Vec<&str> = found.iter().map(|path| path.to_str().unwrap()).collect();
            assert_eq!(found, expected, "{value}");
        }
    }
}
