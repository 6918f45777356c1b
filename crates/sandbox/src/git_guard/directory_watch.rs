//! Has the system say which directories change, where it can, so that thousands need not be asked for their
//! times after each command. Where it can't, all of them are asked.

#[cfg(all(target_os = "linux", not(attache_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
mod portable;

use std::collections::HashSet;

#[cfg(all(target_os = "linux", not(attache_portable)))]
pub(super) use linux::DirectoryWatch;
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
pub(super) use portable::DirectoryWatch;

/// What the kernel reported since the last time.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(
    not(all(target_os = "linux", not(attache_portable))),
    allow(dead_code, reason = "nothing is watched there")
)]
pub(super) enum WatchedChanges {
    /// Changes in these directories, by their numbers.
    In(HashSet<i32>),
    /// There were too many changes, or something was mounted.
    Unknown,
}
