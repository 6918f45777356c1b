//! What a program does not find because the full sandbox has its own `/tmp` and `/var/tmp`. Looks at words, not
//! at the disk.

use std::path::{Path, PathBuf};

/// What programs print if a file does not exist; the last is a shell's message about a directory.
const MISSING: [&str; 7] = [
    "No such file",
    "no such file",
    "ENOENT",
    "not found",
    "does not exist",
    "Cannot find module",
    "can't cd to",
];

/// Follows such a failure; the advice comes after it.
pub const TEMPORARY_IS_PRIVATE: &str = "/tmp and /var/tmp are each command's own and begin empty: what other \
                                        commands or tools wrote there is not seen";

/// Whether it lies where every command in the full sandbox has its own empty directory.
pub fn is_shared_temporary(path: &Path) -> bool {
    ["/tmp", "/var/tmp"].iter().any(|place| path.starts_with(place) && path != Path::new(place))
}

/// The paths in a text that lie there and in none of the visible directories.
pub fn hidden_in<'a>(text: &'a str, visible: &'a [PathBuf]) -> impl Iterator<Item = &'a Path> {
    let is_of_path = |letter: char| letter.is_alphanumeric() || "/._-+@%~".contains(letter);
    let words = text.split(move |letter: char| !is_of_path(letter)).map(Path::new);
    words.filter(move |path| {
        is_shared_temporary(path) && !visible.iter().any(|directory| path.starts_with(directory))
    })
}

/// Whether a program reports that it did not find such a path.
pub fn misses_hidden(output: &str, visible: &[PathBuf]) -> bool {
    let mut failures = output.lines().filter(|line| MISSING.iter().any(|sign| line.contains(sign)));
    failures.any(|line| hidden_in(line, visible).next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_path_is_found_within_words() {
        let visible = [PathBuf::from("/tmp/project")];
        for text in ["/tmp/x.py", "--config=/var/tmp/a/b.json", "/usr/bin:/tmp/bin", "open '/tmp/x'"] {
            assert_eq!(hidden_in(text, &visible).count(), 1, "{text}");
        }
        for text in ["/tmp", "/tmp/project/x.py", "/home/tmp/x", "a/tmp/x", "/tmpfs/x"] {
            assert_eq!(hidden_in(text, &visible).count(), 0, "{text}");
        }
    }

    #[test]
    fn only_a_failure_that_names_a_hidden_path_counts() {
        let visible = [PathBuf::from("/tmp/project")];
        assert!(misses_hidden("/bin/sh: 1: cd: can't cd to /tmp/x", &visible));
        assert!(misses_hidden("started\npython3: can't open file '/tmp/x.py': No such file", &visible));
        assert!(!misses_hidden("/tmp/x: syntax error\nx.py: No such file", &visible));
    }
}
