//! Refuses commands that say they remove or move a directory with entries that no command can remove: part of
//! it would stay behind. Reads only the words of a command; what a program does on its own is reported
//! afterwards.

use std::path::{Path, PathBuf};

use attache_core::ports::tool::{Access, CommandAccess, Site};
use attache_sandbox::Sandbox;
use attache_sandbox::paths::normal;

use crate::paths::{below, told};

/// How many of those entries a refusal lists.
const NAMED: usize = 3;

/// Why the command is not run.
pub(super) fn refusal(accesses: &[Access], sandbox: &Sandbox, site: &Site) -> Option<String> {
    let commands = accesses.iter().filter_map(|access| match access {
        Access::Command(command) => Some(command),
        Access::ReadPath(_) | Access::WritePath(_) | Access::Network { .. } => None,
    });
    // Most commands remove no directory; then nothing is looked up.
    let directories = commands.flat_map(removed).filter(|path| is_directory(path));
    directories.into_iter().find_map(|directory| {
        let held = sandbox.held_below(site, &directory).unwrap_or_default();
        let named = |path: &Path| told(below(&site.workspace.root, path));
        let names: Vec<String> = held.iter().take(NAMED).map(|path| named(path)).collect();
        let more = if held.len() > NAMED { ", …" } else { "" };
        (!held.is_empty()).then(|| {
            format!(
                "not run: it would remove or move {}, but no command can change what is protected there ({}{more}), so a part \
                 of it would stay behind. Leave it, or tell the user to do it; what you want to remove again later \
                 belongs into $TMPDIR",
                named(&directory),
                names.join(", ")
            )
        })
    })
}

/// The paths that a command removes with all their content, or moves away.
fn removed(command: &CommandAccess) -> Vec<PathBuf> {
    let Some((program, words)) = command.words.split_first() else { return Vec::new() };
    let end_of_options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let is_option =
        |index: usize, word: &str| index <= end_of_options && word.starts_with('-') && word.len() > 1;
    let options: Vec<&String> = words
        .iter()
        .enumerate()
        .filter(|(index, word)| is_option(*index, word))
        .map(|(_, word)| word)
        .collect();
    let mut paths: Vec<&String> = words
        .iter()
        .enumerate()
        .filter(|(index, word)| !is_option(*index, word))
        .map(|(_, word)| word)
        .collect();
    match program.as_str() {
        "rm" => {
            let is_recursive = |option: &&&String| {
                option.as_str() == "--recursive" || !option.starts_with("--") && option.contains(['r', 'R'])
            };
            if options.iter().find(is_recursive).is_none() {
                return Vec::new();
            }
        }
        // The last path is the target; with `-t` all paths are taken, and looking at the target does no harm.
        "mv" if !options.iter().any(|option| option.starts_with("-t") || option.starts_with("--target")) => {
            paths.pop();
        }
        "mv" => {}
        _ => return Vec::new(),
    }
    paths.into_iter().map(|path| normal(&command.directory.join(path))).collect()
}

/// The path itself: removing a link to a directory removes only the link.
fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    use attache_core::ports::tool::CommandNature;

    use super::*;

    #[test]
    fn what_is_removed_is_read_from_the_words() {
        for (line, paths) in [
            ("rm -rf .git", &["/w/.git"][..]),
            ("rm -fR a/../.git b", &["/w/.git", "/w/b"]),
            ("rm --recursive /x", &["/x"]),
            ("rm -r -- -x y", &["/w/-x", "/w/y"]),
            ("rm -f a", &[]),
            ("rm", &[]),
            ("mv .git ../x", &["/w/.git"]),
            ("mv -t x a b", &["/w/x", "/w/a", "/w/b"]),
            ("ls -r .git", &[]),
        ] {
            let words = line.split(' ').map(str::to_owned).collect();
            let command = CommandAccess {
                words,
                directory: "/w".into(),
                nature: CommandNature::Effects,
                prefix: 1,
                input: None,
                why: None,
            };
            assert_eq!(removed(&command), paths.iter().map(PathBuf::from).collect::<Vec<_>>(), "{line}");
        }
    }
}
