//! Finds the sockets in the file system behind which others listen: agents, daemons and editors that act for
//! whoever talks to them. Asks the kernel, connects to none.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::places;
use super::super::policy::{Policy, is_reachable, outermost};
use crate::limits::{HIDDEN_LISTENERS, LISTENER_AGE};

/// All sockets of this network namespace.
const SOCKETS: &str = "/proc/self/net/unix";

impl Policy {
    /// The same with these sockets hidden, but for those in the directories of the session: the user's own
    /// servers of this workspace.
    pub(super) fn with_listeners_hidden(mut self) -> Self {
        let listening = match std::fs::read(SOCKETS) {
            Ok(text) => bound_paths(&text).filter_map(|path| path.canonicalize().ok()).collect(),
            Err(error) => {
                tracing::debug!(%error, "no list of sockets");
                Vec::new()
            }
        };
        let others: Vec<PathBuf> = listening
            .into_iter()
            .filter(|path| {
                self.shows(path) && !self.is_of_session(path) && is_settled(path) && is_reachable(path)
            })
            .take(HIDDEN_LISTENERS)
            .collect();
        self.hidden = outermost(self.hidden.into_iter().chain(others));
        self
    }

    /// Whether a sandbox has this path at all, rather than something of its own in its place.
    fn shows(&self, path: &Path) -> bool {
        let mounted = || self.readable.iter().chain(&self.writable).any(|place| path.starts_with(place));
        !places::is_private(path) || mounted()
    }

    fn is_of_session(&self, path: &Path) -> bool {
        self.places.iter().chain([&self.scratch]).any(|place| path.starts_with(place))
            || self.is_writable(path)
    }
}

/// Whether it is a socket that stays for a while.
fn is_settled(path: &Path) -> bool {
    let Ok(found) = path.symlink_metadata() else { return false };
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    let bound = Duration::from_secs(part(found.ctime())) + Duration::from_nanos(part(found.ctime_nsec()));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A clock that was set back makes nothing young.
    let is_young = now.checked_sub(bound).is_some_and(|age| age < LISTENER_AGE);
    found.file_type().is_socket() && !is_young
}

/// The paths in the kernel's list, one line for each socket: number, count, protocol, flags, type, state, inode
/// and path. Those that were named relative to a directory can't be found again.
fn bound_paths(list: &[u8]) -> impl Iterator<Item = PathBuf> {
    let path = |line: &[u8]| {
        let before = line.windows(2).position(|pair| pair == b" /")?;
        Some(PathBuf::from(OsStr::from_bytes(&line[before + 1..])))
    };
    list.split(|byte| *byte == b'\n').filter_map(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_the_list_of_the_kernel_and_names_without_a_place_are_not() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000092c21796: 00000003 00000000 00000000 0001 03   573\n\
            00000000771e5575: 00000002 00000000 00010000 0001 01 4231143 /var/lib/my db/my.sock\n\
            00000000771e5576: 00000002 00000000 00010000 0001 01 4231144 @/tmp/.X11-unix/X0\n\
            00000000771e5577: 00000002 00000000 00010000 0001 01    12 here.sock\n\
            00000000771e5578: 00000002 00000000 00000000 0002 01 1 /a b\xff";
        let found: Vec<PathBuf> = bound_paths(list).collect();
        assert_eq!(found, [Path::new("/var/lib/my db/my.sock"), Path::new(OsStr::from_bytes(b"/a b\xff"))]);
    }
}
