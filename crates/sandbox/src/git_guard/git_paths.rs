//! Which paths are git's own: everything in and at `.git`, and what makes or changes a repository without a
//! work tree.

use std::ffi::OsStr;
use std::path::Path;

/// The entries by which git recognises a repository: all of the first, or the second, each beside a `HEAD`.
const PARTS: [&str; 2] = ["objects", "refs"];
const ELSEWHERE: &str = "commondir";

/// Why an edit tool must leave a file to git. `named` is the path in the call, `real` the same with links
/// resolved.
pub fn belongs_to_git(named: &Path, real: &Path) -> Option<String> {
    let is_git = |path: &Path| path.components().any(|name| is_dot_git(name.as_os_str()));
    let belongs = is_git(named) || is_git(real) || is_in_bare_repository(real);
    belongs.then(|| {
        format!(
            "{} belongs to git and is not edited; use commands of git (add, commit, switch …) with bash; its configuration is the user's",
            named.display()
        )
    })
}

pub(super) fn is_dot_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Whether a file lies in a repository without a work tree, or would complete one.
fn is_in_bare_repository(real: &Path) -> bool {
    real.ancestors().zip(real.ancestors().skip(1)).any(|(entry, directory)| {
        let there = |name: &str| {
            entry.file_name() == Some(OsStr::new(name)) || directory.join(name).symlink_metadata().is_ok()
        };
        there("HEAD") && (PARTS.iter().all(|name| there(name)) || there(ELSEWHERE))
    })
}
