//! The plan of one sandbox's mounts: a pure function of what a command may touch and of the tree that we read.
//!
//! Mounts everything of the machine onto itself: no mount shows one thing in the place of another, so a
//! swapped-in link can lead nowhere new. The end of the plan checks again what must be true of every plan.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::policy::Policy;
use super::protection::{HolderForm, Protection};

/// One mount; later ones cover earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) at: PathBuf,
    pub(super) what: MountKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MountKind {
    /// The machine's own entry, writable.
    Writable,
    /// The machine's own entry, read-only.
    ReadOnly,
    /// A file without content.
    EmptyFile,
    /// A directory without entries.
    EmptyDirectory,
}

/// What covers a hidden path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    pub(super) path: PathBuf,
    pub(super) form: HolderForm,
}

impl Hidden {
    /// According to what is there now.
    pub(super) fn of(path: &Path) -> Self {
        let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let form = if is_directory { HolderForm::Directory } else { HolderForm::File };
        Self { path: path.to_owned(), form }
    }
}

/// First what the command may read, then what it may write, then what must not change in it, then what is
/// hidden anywhere, and last the scratch, which lies in something hidden. Empty directories come as late as
/// possible: for each other mount, bubblewrap reads the table of all mounts so far.
pub(super) fn plan(policy: &Policy, protection: &Protection, hidden: &[Hidden]) -> Vec<Mount> {
    let Protection { pinned, read_only, missing, links: _ } = protection;
    let all = |paths: &mut dyn Iterator<Item = &PathBuf>, what: MountKind| -> Vec<Mount> {
        paths.map(|path| Mount { at: path.clone(), what }).collect()
    };
    let covers = missing.iter().map(|one| (&one.path, one.form));
    let covers = || covers.clone().chain(hidden.iter().map(|one| (&one.path, one.form)));
    let is_file = |form: HolderForm| match form {
        HolderForm::File | HolderForm::EmptyFile => true,
        HolderForm::Directory => false,
    };
    let mut files = covers().filter(|(_, form)| is_file(*form)).map(|(path, _)| path);
    let mut directories = covers().filter(|(_, form)| *form == HolderForm::Directory).map(|(path, _)| path);
    let mounts = [
        all(&mut policy.readable.iter(), MountKind::ReadOnly),
        all(&mut policy.writable.iter().chain(pinned), MountKind::Writable),
        all(&mut policy.caches.iter().map(|cache| &cache.path), MountKind::Writable),
        all(&mut read_only.iter(), MountKind::ReadOnly),
        all(&mut files, MountKind::EmptyFile),
        all(&mut directories, MountKind::EmptyDirectory),
        all(&mut [&policy.scratch].into_iter(), MountKind::Writable),
    ];
    safe(mounts.concat(), policy)
}

/// What is true of every plan, whatever it was made from: only entries below a root, a grant, a cache or the
/// scratch are writable, and no mount shows what is hidden. Makes mounts that break this read-only, or leaves
/// them out.
fn safe(mounts: Vec<Mount>, policy: &Policy) -> Vec<Mount> {
    let is_hidden = |path: &Path| {
        policy.hidden.iter().any(|hidden| path.starts_with(hidden)) && !path.starts_with(&policy.scratch)
    };
    let hides_again = |index: usize, at: &Path| {
        let inside = |hidden: &&PathBuf| hidden.starts_with(at) && !at.starts_with(hidden.as_path());
        let is_covered_later = |hidden: &PathBuf| {
            mounts.iter().skip(index + 1).any(|mount| mount.at == *hidden && mount.what.is_cover())
        };
        policy.hidden.iter().filter(inside).all(is_covered_later)
    };
    let kept = mounts.iter().enumerate().filter_map(|(index, mount)| {
        let mut mount = mount.clone();
        match mount.what {
            MountKind::EmptyFile | MountKind::EmptyDirectory => return Some(mount),
            MountKind::Writable
                if !policy.is_writable(&mount.at) && !mount.at.starts_with(&policy.scratch) =>
            {
                mount.what = MountKind::ReadOnly;
            }
            MountKind::Writable | MountKind::ReadOnly => {}
        }
        (!is_hidden(&mount.at) && hides_again(index, &mount.at)).then_some(mount)
    });
    seen(kept.collect())
}

/// Leaves out mounts that a later one covers: from inside, nothing could tell where they were mounted.
fn seen(mounts: Vec<Mount>) -> Vec<Mount> {
    let mut later: BTreeSet<PathBuf> = BTreeSet::new();
    let is_seen = |mount: &Mount| {
        let is_covered = mount.at.ancestors().any(|above| later.contains(above));
        later.insert(mount.at.clone());
        !is_covered
    };
    let mut seen: Vec<Mount> = mounts.into_iter().rev().filter(is_seen).collect();
    seen.reverse();
    seen
}

impl MountKind {
    fn is_cover(self) -> bool {
        match self {
            Self::EmptyFile | Self::EmptyDirectory => true,
            Self::Writable | Self::ReadOnly => false,
        }
    }
}

#[cfg(test)]
mod tests;
