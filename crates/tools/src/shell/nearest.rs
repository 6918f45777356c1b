//! A look at a tree before a command searches it: the nearest entries first, and no further than a command may wait.

use std::collections::VecDeque;
use std::fs::{DirEntry, FileType};
use std::ops::ControlFlow;
use std::path::Path;

use crate::limits::SHELL_LOOK;

/// Shows every entry in `directory` and below until the visitor has seen enough. Follows no link.
pub(super) fn look(directory: &Path, mut visit: impl FnMut(&DirEntry, FileType) -> ControlFlow<()>) {
    let mut open = VecDeque::from([directory.to_path_buf()]);
    let mut left = SHELL_LOOK;
    while let Some(directory) = open.pop_front() {
        // What can't be listed can't be searched either.
        let Ok(entries) = directory.read_dir() else { continue };
        for entry in entries.flatten() {
            if left == 0 {
                return;
            }
            left -= 1;
            let Ok(kind) = entry.file_type() else { continue };
            if visit(&entry, kind).is_break() {
                return;
            }
            if kind.is_dir() {
                open.push_back(entry.path());
            }
        }
    }
}
