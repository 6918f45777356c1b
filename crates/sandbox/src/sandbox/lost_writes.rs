//! Files that a command was allowed to write and that its sandbox cannot make writable: tells the model what
//! happens to them. Looks only.

use std::path::{Path, PathBuf};

use attache_core::legible::visible_name;

use super::places::{Followed, of_the_kernel, private_of};
use crate::limits::LOST_WRITE_NAMES;

/// Granted writes that we cannot honour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LostWrites {
    /// In places that each sandbox has for itself.
    private: Vec<(PathBuf, &'static str)>,
    /// Elsewhere, where everything is read-only.
    read_only: Vec<PathBuf>,
}

impl LostWrites {
    /// Of the files to write, by any name; `is_kept` tells, by real paths, which of them are mounted writable.
    pub(super) fn of(writes: &[PathBuf], is_kept: impl Fn(&Path) -> bool) -> Self {
        let mut lost_writes = Self::default();
        for path in writes {
            let real = real(path);
            // Devices, and paths that mean something else for each process: `/dev/stdout`, `/proc/self/fd/1`.
            let is_made_up = |path: &Path| of_the_kernel(path).is_some() && private_of(path).is_none();
            match private_of(&real) {
                _ if is_kept(&real) || is_made_up(path) || is_made_up(&real) => {}
                Some(place) => lost_writes.private.push((path.clone(), place)),
                None => lost_writes.read_only.push(path.clone()),
            }
        }
        lost_writes
    }

    /// What is gone with the command, whether it noticed or not.
    #[cfg_attr(
        not(all(target_os = "linux", not(attache_portable))),
        allow(dead_code, reason = "no place is private there")
    )]
    pub(super) fn lost(&self) -> Option<String> {
        let place = self.private.first()?.1;
        let names = named(self.private.iter().map(|(path, _)| path));
        Some(format!(
            "{names}: commands have a {place} of their own, and what was written there is gone. Use $TMPDIR, or the write tool"
        ))
    }

    /// Why the command could not write something.
    pub(super) fn held(&self) -> Option<String> {
        let names = named(self.read_only.iter());
        (!self.read_only.is_empty()).then(|| {
            format!("{names}: commands can't create files there, even if allowed; only existing files can be opened for writing. \
                     Make it with the write tool, or have the user add its directory to the session")
        })
    }

    /// The same where the sandbox has no private places.
    pub(super) fn all_held(self) -> Option<String> {
        let private = self.private.into_iter().map(|(path, _)| path);
        let read_only = self.read_only.into_iter().chain(private).collect();
        Self { read_only, private: Vec::new() }.held()
    }
}

/// The path with links resolved as far as it exists; the rest unchanged.
fn real(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(followed) = Followed::of(ancestor) {
            return missing.iter().rev().fold(followed.real, |real, name| real.join(name));
        }
        missing.extend(ancestor.file_name());
    }
    path.to_owned()
}

fn named<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> String {
    let mut names: Vec<String> = paths.map(|path| visible_name(&path.to_string_lossy())).collect();
    let more = names.len().saturating_sub(LOST_WRITE_NAMES);
    names.truncate(LOST_WRITE_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost_writes(writes: &[&str]) -> LostWrites {
        let writes: Vec<PathBuf> = writes.iter().map(PathBuf::from).collect();
        LostWrites::of(&writes, |path| path.starts_with("/tmp/granted-zz") || path.starts_with("/srv/zz"))
    }

    #[test]
    fn what_a_grant_could_not_open_is_told_by_where_it_lies() {
        for kept in ["/tmp/granted-zz/a", "/srv/zz/a", "/dev/null", "/proc/self/fd/1"] {
            assert_eq!(lost_writes(&[kept]), LostWrites::default(), "{kept}");
        }
        for (path, place) in [("/tmp/zz", "/tmp"), ("/var/tmp/zz/a", "/var/tmp"), ("/dev/shm/zz", "/dev/shm")]
        {
            let lost_writes = lost_writes(&[path]);
            assert!(lost_writes.held().is_none());
            let lost = lost_writes.lost().unwrap();
            assert!(lost.starts_with(&format!("{path}: commands have a {place} of their own")), "{lost}");
        }
        for path in ["/etc/zz", "/zz/a/b"] {
            let lost_writes = lost_writes(&[path]);
            assert!(lost_writes.lost().is_none());
            assert!(lost_writes.held().unwrap().starts_with(&format!("{path}: commands can't create")));
        }
    }

    #[test]
    fn many_files_are_one_note() {
        let names: Vec<String> = (0..9).map(|number| format!("/tmp/zz-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let lost = lost_writes(&names).lost().unwrap();
        assert!(lost.starts_with("/tmp/zz-0, /tmp/zz-1, /tmp/zz-2 and 6 more: "), "{lost}");
        assert!(lost_writes(&names).all_held().unwrap().contains("and 6 more: commands can't create"));
    }
}
