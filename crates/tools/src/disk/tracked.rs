//! Which files git tracks around a directory. Reads the names from the index, without running git.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use attache_sandbox::limits::GIT_INDEX_BYTES;
use attache_sandbox::{git_index, regular_file};
use attache_shell::Tracked;

use super::repository::is_complete;
use crate::limits::GIT_HEAD_BYTES;

/// Calls `visit` with the absolute path of each file that git tracks in the repository around `directory`.
pub(crate) fn tracked(directory: &Path, visit: &mut dyn FnMut(&Path)) -> Tracked {
    let Ok(directory) = directory.canonicalize() else { return Tracked::Unknown };
    for top in directory.ancestors() {
        let is_there = |name: &str| top.join(name).symlink_metadata().is_ok();
        if is_there("HEAD") && is_there("objects") {
            return Tracked::Unknown;
        }
        let git = top.join(".git");
        match git.symlink_metadata() {
            Ok(found) if found.is_dir() && is_complete(&git) => return listed(top, &git, visit),
            Ok(found) if found.is_file() => {
                return led_to(top, &git).map_or(Tracked::Unknown, |git| listed(top, &git, visit));
            }
            Ok(_) => return Tracked::Unknown,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return Tracked::Unknown,
        }
    }
    Tracked::Nowhere
}

/// The repository that a `.git` file points to.
fn led_to(top: &Path, file: &Path) -> Option<PathBuf> {
    let text = String::from_utf8(regular_file::read(file, GIT_HEAD_BYTES).ok()?).ok()?;
    Some(top.join(text.strip_prefix("gitdir:")?.trim()))
}

fn listed(top: &Path, git: &Path, visit: &mut dyn FnMut(&Path)) -> Tracked {
    let shown = match regular_file::read(&git.join("index"), GIT_INDEX_BYTES) {
        Ok(index) if index.len() as u64 <= GIT_INDEX_BYTES => {
            git_index::files(&index, |name| visit(&top.join(OsStr::from_bytes(name))))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(()),
        Ok(_) | Err(_) => None,
    };
    shown.map_or(Tracked::Unknown, |()| Tracked::Below(top.to_path_buf()))
}
