//! Programs in `PATH` that replace others and run what a file of the project chooses: which programs, and which
//! file. From a table; runs nothing.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::limits::{SCRIPT_HEAD_BYTES, VERSION_FILE_BYTES};
use crate::regular_file;

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("version_managers.txt")));

/// The table's lines by kind, without their reasons.
#[derive(Debug, Default)]
struct Table {
    places: Vec<&'static Path>,
    managers: Vec<&'static str>,
    files: Vec<VersionFile>,
}

/// A file that chooses a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VersionFile {
    name: &'static str,
    /// It counts only if it contains this text.
    holding: Option<&'static str>,
}

impl Table {
    fn read(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_ascii_whitespace();
            let (Some(kind), Some(name)) = (words.next(), words.next()) else { continue };
            match kind {
                "place" => table.places.push(Path::new(name)),
                "leads" => table.managers.push(name),
                "file" => table.files.push(match name.split_once('~') {
                    Some((name, text)) => VersionFile { name, holding: Some(text) },
                    None => VersionFile { name, holding: None },
                }),
                _ => debug_assert!(false, "the table has an unknown kind: {kind}"),
            }
        }
        table
    }
}

/// What we know of a program that a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StandIn {
    No,
    Yes,
    /// A script that begins with `env`: it is whatever the program of this name is.
    As(String),
}

/// Whether the existing program at `file` starts another one instead.
pub(crate) fn stand_in(file: &Path) -> StandIn {
    let is_place = |path: &Path| {
        let directory = path.parent().unwrap_or(path);
        TABLE.places.iter().any(|place| directory.ends_with(place))
    };
    let is_manager = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        TABLE.managers.iter().any(|manager| name == *manager)
    };
    let real = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    // Under its own name the manager does what its arguments say, so it replaces no other program.
    let leads_to_manager = is_manager(&real) && real.file_name() != file.file_name();
    if is_place(file) || is_place(&real) || leads_to_manager {
        return StandIn::Yes;
    }
    // Only the beginning, because the file may have any size.
    let head = regular_file::read(&real, SCRIPT_HEAD_BYTES).unwrap_or_default();
    if !head.starts_with(b"#!") {
        return StandIn::No;
    }
    let head = String::from_utf8_lossy(&head);
    let words = head.split(|letter: char| letter.is_whitespace() || "\"'`$(){};|&".contains(letter));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let hands_on = |pair: &[&str]| is_manager(Path::new(pair[0])) && ["exec", "x", "run"].contains(&pair[1]);
    if words.windows(2).any(hands_on) {
        return StandIn::Yes;
    }
    let mut words = head[2..].lines().next().unwrap_or_default().split_ascii_whitespace();
    let is_env = words.next().is_some_and(|program| program.ends_with("/env"));
    let named = words.find(|word| !word.starts_with('-') && !word.contains('='));
    match named.filter(|_| is_env) {
        Some(name) => StandIn::As(name.to_owned()),
        None => StandIn::No,
    }
}

/// The first file that would choose a version for a command in one of these directories, or above the directory
/// if that lies below one of them. Ignores files in the home itself, which are the user's own choice.
pub(crate) fn version_file<'a>(
    directories: impl Iterator<Item = &'a Path>,
    home: Option<&Path>,
) -> Option<PathBuf> {
    let mut all: Vec<&Path> = directories.flat_map(Path::ancestors).collect();
    all.dedup();
    let all = all.into_iter().filter(|directory| Some(*directory) != home);
    all.flat_map(|directory| TABLE.files.iter().map(move |file| (directory.join(file.name), file.holding)))
        .find_map(|(path, holding)| {
            let counts = match holding {
                None => path.symlink_metadata().is_ok(),
                Some(text) => {
                    // A file that is unreadable or too long may contain it.
                    let found = regular_file::read_if_there(&path, VERSION_FILE_BYTES);
                    let Ok(found) = found else { return Some(path) };
                    found.is_some_and(|found| {
                        found.len() as u64 > VERSION_FILE_BYTES
                            || memchr::memmem::find(&found, text.as_bytes()).is_some()
                    })
                }
            };
            counts.then_some(path)
        })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Where programs of managers lie and what they are, as those managers install them.
    #[test]
    fn what_stands_in_for_another_is_known_by_its_place_and_by_where_it_leads() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path();
        let put = |name: &str, text: &str| {
            let path = base.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let lead = |name: &str, to: &str| {
            let path = base.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(base.join(to), &path).unwrap();
            path
        };
        for name in ["bin/mise", "bin/volta-shim", "bin/rustup", "bin/plain", "bin/asdf"] {
            put(name, "program");
        }
        for file in [
            put(".asdf/shims/node", "#!/usr/bin/env bash\nexec asdf exec \"node\" \"$@\"\n"),
            put(".pyenv/shims/python3", "#!/usr/bin/env bash\nexec \"/x/libexec/pyenv\" exec\n"),
            put("data/shims/jq", "program"),
            lead(".local/share/mise/shims/rg", "bin/mise"),
            lead("other/node", "bin/mise"),
            lead(".volta/bin/npm", "bin/volta-shim"),
            lead(".cargo/bin/rustc", "bin/rustup"),
            lead("linked/jq", "data/shims/jq"),
            put("wrappers/node", "#!/bin/sh\nexec mise exec -- node \"$@\"\n"),
        ] {
            assert_eq!(stand_in(&file), StandIn::Yes, "{file:?}");
        }
        for file in [
            base.join("bin/mise"),
            base.join("bin/plain"),
            lead("other/plain", "bin/plain"),
            put("scripts/x", "#!/bin/sh\n# proto and mise\n"),
            put("scripts/missing", "\u{7f}ELF shims"),
        ] {
            assert_eq!(stand_in(&file), StandIn::No, "{file:?}");
        }
        for line in ["#!/usr/bin/env node\n", "#!/usr/bin/env -S node --x\n"] {
            assert_eq!(stand_in(&put("scripts/npm", line)), StandIn::As("node".into()), "{line}");
        }
    }

    #[test]
    fn a_version_file_counts_above_the_directory_and_not_in_the_home() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        let inner = home.join("w/a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let found = || version_file([inner.as_path()].into_iter(), Some(&home));
        std::fs::write(home.join(".tool-versions"), "x").unwrap();
        std::fs::write(home.join("w/package.json"), "{}").unwrap();
        assert_eq!(found(), None);
        std::fs::write(home.join("w/package.json"), r#"{"volta":{"node":"20"}}"#).unwrap();
        assert_eq!(found(), Some(home.join("w/package.json")));
        std::fs::write(home.join("w/a/.tool-versions"), "x").unwrap();
        assert_eq!(found(), Some(home.join("w/a/.tool-versions")));
    }

    #[test]
    fn every_line_of_the_table_is_a_row_with_a_reason() {
        let lines = include_str!("version_managers.txt").lines();
        for line in lines.filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            assert!(line.split_ascii_whitespace().count() >= 3, "{line}");
            let kind = line.split_ascii_whitespace().next().unwrap();
            assert!(["place", "leads", "file"].contains(&kind), "{line}");
        }
        assert!(TABLE.files.len() > 20 && TABLE.managers.len() > 10 && !TABLE.places.is_empty());
    }
}
