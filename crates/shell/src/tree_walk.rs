//! Looks at a tree before a command searches it: the nearest entries first, and no longer than a command may
//! wait.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;

use crate::limits::SHELL_LOOK;
use crate::{Disk, EntryKind};

/// Shows every entry in `directory` and below, by its whole path, until the visitor has seen enough. Follows no
/// link.
pub(super) fn look(
    disk: &dyn Disk,
    directory: &Path,
    visit: impl FnMut(&Path, EntryKind) -> ControlFlow<()>,
) {
    look_down(disk, directory, usize::MAX, visit);
}

/// The same, but at most `depth` names below the directory.
pub(super) fn look_down(
    disk: &dyn Disk,
    directory: &Path,
    depth: usize,
    mut visit: impl FnMut(&Path, EntryKind) -> ControlFlow<()>,
) {
    let mut open = VecDeque::from([(directory.to_path_buf(), 1)]);
    let mut left = SHELL_LOOK;
    let mut flow = ControlFlow::Continue(());
    while let (Some((directory, at)), ControlFlow::Continue(())) = (open.pop_front(), flow) {
        // A directory that we cannot list cannot be searched either.
        disk.entries(&directory, &mut |name, kind| {
            if left == 0 {
                flow = ControlFlow::Break(());
                return flow;
            }
            left -= 1;
            let path = directory.join(name);
            flow = visit(&path, kind);
            if kind == EntryKind::Directory && at < depth {
                open.push_back((path, at + 1));
            }
            flow
        });
    }
}
