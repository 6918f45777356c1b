//! The real file system, for the tests of this crate.

use std::ffi::OsStr;
use std::fs::FileType;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::{Disk, EntryKind};

pub(crate) struct TestDisk;

impl Disk for TestDisk {
    fn entries(&self, directory: &Path, visit: &mut dyn FnMut(&OsStr, EntryKind) -> ControlFlow<()>) {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            if visit(&entry.file_name(), kind_of(entry.file_type().unwrap())).is_break() {
                return;
            }
        }
    }

    fn kind(&self, path: &Path) -> Option<EntryKind> {
        path.metadata().ok().map(|found| kind_of(found.file_type()))
    }

    fn is_there(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn real(&self, path: &Path) -> Option<PathBuf> {
        path.ancestors().find_map(|existing| {
            let real = existing.canonicalize().ok()?;
            let rest = path.strip_prefix(existing).ok()?;
            Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
        })
    }
}

fn kind_of(found: FileType) -> EntryKind {
    match (found.is_file(), found.is_dir(), found.is_symlink()) {
        (true, _, _) => EntryKind::File,
        (_, true, _) => EntryKind::Directory,
        (_, _, true) => EntryKind::Link,
        (false, false, false) => EntryKind::Other,
    }
}
