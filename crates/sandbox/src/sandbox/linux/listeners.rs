//! Finds the sockets in the file system behind which others listen: agents, daemons and editors that act for
//! whoever talks to them. Asks the kernel, connects to none.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::super::places;
use super::super::policy::{Policy, is_reachable, outermost};
use crate::limits::{HIDDEN_LISTENERS, LISTENER_AGE, LISTENER_REST};

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
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        known.look_again(now, |path| path.symlink_metadata().is_ok());
        let others: Vec<PathBuf> = listening
            .into_iter()
            .filter(|path| {
                self.shows(path) && !self.is_of_session(path) && is_settled(path) && is_reachable(path)
            })
            .filter(|path| known.is_calm(path))
            .take(HIDDEN_LISTENERS)
            .collect();
        known.hidden.extend(others.iter().cloned());
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

/// Who was hidden of late, in all sandboxes of this process. What is gone when it is to be covered keeps a
/// sandbox from being entered: somebody who makes and removes sockets all the time would keep every command
/// from running.
#[derive(Debug, Default)]
struct KnownListeners {
    hidden: BTreeSet<PathBuf>,
    /// Directories that have lost one, and when.
    restless: BTreeMap<PathBuf, Instant>,
}

/// Why a lock: commands start side by side. Held for a look at some paths.
static KNOWN: Mutex<KnownListeners> =
    Mutex::new(KnownListeners { hidden: BTreeSet::new(), restless: BTreeMap::new() });

impl KnownListeners {
    fn look_again(&mut self, now: Instant, is_there: impl Fn(&Path) -> bool) {
        self.restless.retain(|_, since| now.saturating_duration_since(*since) < LISTENER_REST);
        let restless = &mut self.restless;
        self.hidden.retain(|path| {
            let stays = is_there(path);
            if !stays && let Some(directory) = path.parent() {
                restless.insert(directory.to_owned(), now);
            }
            stays
        });
    }

    fn is_calm(&self, path: &Path) -> bool {
        path.parent().is_none_or(|directory| !self.restless.contains_key(directory))
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
    let path = |entry: &[u8]| {
        let before = entry.windows(2).position(|pair| pair == b" /")?;
        Some(PathBuf::from(OsStr::from_bytes(&entry[before + 1..])))
    };
    entries(list).filter_map(path)
}

/// The kernel writes a path as it is: one with a line end goes on in a line that does not begin like an entry.
fn entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_line = |at: &usize| *at == 0 || list[*at - 1] == b'\n';
    let starts: Vec<usize> =
        (0..list.len()).filter(is_line).filter(|at| begins_entry(&list[*at..])).collect();
    let end = list.strip_suffix(b"\n").map_or(list.len(), <[u8]>::len);
    let ends: Vec<usize> = starts.iter().skip(1).map(|next| next - 1).chain([end]).collect();
    starts.into_iter().zip(ends).map(move |(start, end)| &list[start..end])
}

/// A number in hexadecimal digits and a colon.
fn begins_entry(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    digits > 0 && text.get(digits) == Some(&b':')
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

    #[test]
    fn a_path_with_a_line_end_is_read_as_one() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            00000000771e5575: 00000002 00000000 00010000 0001 01 1 /a\nb /c\n\nadd.sock\n\
            00000000771e5576: 00000002 00000000 00010000 0001 01 2 /d\n\n\
            00000000771e5577: 00000002 00000000 00010000 0001 01 3 /e\n";
        let found: Vec<PathBuf> = bound_paths(list).collect();
        assert_eq!(found, ["/a\nb /c\n\nadd.sock", "/d\n", "/e"].map(PathBuf::from));
        assert_eq!(bound_paths(b"Num Path\n").count(), 0);
    }

    #[test]
    fn a_directory_in_which_sockets_come_and_go_is_left_out_for_a_while() {
        let mut known = KnownListeners::default();
        let now = Instant::now();
        known.hidden.extend(["/a/1", "/a/2", "/b/1"].map(PathBuf::from));
        known.look_again(now, |path| path != Path::new("/a/1"));
        assert!(!known.is_calm(Path::new("/a/3")) && known.is_calm(Path::new("/b/1")));
        assert_eq!(known.hidden.len(), 2);
        known.look_again(now + LISTENER_REST, |_| true);
        assert!(known.is_calm(Path::new("/a/3")));
    }
}
