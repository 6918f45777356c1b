//! Guesses what a missing path was meant to be. Opens no file.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use attache_core::legible::visible_name;
use attache_core::ports::tool::Workspace;

use super::{FilePlace, OpenRoots, names_in};
use crate::files::FileError;
use crate::limits::{NEAREST_ENTRIES, NEAREST_NAMES};
use crate::paths::{most_similar, nearest_names, told};

/// The text about a path outside of all roots whose directory does not exist, because a person can't grant
/// that. Says nothing if the caller may not know what is hidden there.
pub(crate) fn missing_outside(path: &Path, reach: &OpenRoots, workspace: &Workspace) -> Option<FileError> {
    let is_missing = |path: &Path| {
        path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    let parent = path.parent()?;
    let is_below = |root: &PathBuf| path.starts_with(root);
    if workspace.roots().any(is_below) || path.starts_with(&workspace.scratch) || !is_missing(parent) {
        return None;
    }
    reach.may_show(path).ok()?;
    // Models confuse the root with another directory; the end of the path is what they know.
    let names: Vec<_> = path.iter().skip(1).collect();
    let ends = (0..names.len()).map(|first| names[first..].iter().collect::<PathBuf>());
    let mut inside = ends.filter(|end| {
        let meant = workspace.root.join(end);
        meant.exists() && reach.may_show(&meant).is_ok()
    });
    let hint = match inside.next() {
        Some(end) => format!("; did you mean {}?", told(&end)),
        None => format!("; the workspace is {}", workspace.root.display()),
    };
    Some(FileError::Missing { path: path.to_owned(), hint })
}

impl OpenRoots {
    /// What a missing file was probably meant to be: a similar name beside it, or the directory at the end of
    /// the path.
    pub(crate) fn hint(&self, place: &FilePlace) -> String {
        let Some(directory) = place.real.ancestors().nth(place.missing.len() + 1) else {
            return String::new();
        };
        let Ok(names) = names_in(&place.directory) else { return String::new() };
        let mut shown = names.filter(|name| self.may_show(&directory.join(name)).is_ok());
        let Some(missing) = place.missing.first() else {
            return nearest_names(&place.name.to_string_lossy(), shown);
        };
        let below: PathBuf = place.missing.iter().skip(1).chain([&place.name]).collect();
        let meant = |name: &String| directory.join(name).join(&below);
        let wanted = missing.to_string_lossy();
        let similar: Vec<String> = most_similar(&wanted, shown.by_ref()).take(NEAREST_NAMES).collect();
        let there = similar.iter().map(meant).find(|path| path.exists() && self.may_show(path).is_ok());
        let there = there.or_else(|| self.same_name_below(directory, &place.name));
        match (there, similar.first()) {
            (Some(path), _) => format!("; did you mean {}?", self.told(&path)),
            (None, Some(name)) => {
                format!(
                    "; the path exists up to {}; the nearest name there is {}",
                    self.told(directory),
                    visible_name(name)
                )
            }
            (None, None) => format!("; the path exists up to {}", self.told(directory)),
        }
    }

    /// The first file of that name below a directory, the nearest first, because models get the directory
    /// wrong. Examines a limited number of names, none of them behind a link or hidden.
    fn same_name_below(&self, directory: &Path, name: &OsStr) -> Option<PathBuf> {
        let mut waiting = VecDeque::from([directory.to_owned()]);
        let mut left = NEAREST_ENTRIES;
        while let Some(directory) = waiting.pop_front() {
            let is_hidden =
                |path: &Path| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                left = left.checked_sub(1)?;
                let (path, kind) = (entry.path(), entry.file_type().ok());
                if is_hidden(&path) || self.may_show(&path).is_err() {
                    continue;
                }
                match kind {
                    Some(kind) if kind.is_file() && entry.file_name() == name => return Some(path),
                    Some(kind) if kind.is_dir() => waiting.push_back(path),
                    Some(_) | None => {}
                }
            }
        }
        None
    }
}
