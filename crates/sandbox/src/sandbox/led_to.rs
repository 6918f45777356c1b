//! What names of the home lead through and to inside writable directories: mounts protect what exists,
//! place-holders protect missing names, and `git_guard` compares links afterwards. Looks at the disk.

use std::path::{Path, PathBuf};

use attache_core::scope::{ChainStep, Guarded, LedTo, LinkChain, ProtectedKind};

use super::directory_tree::{DirectoryTree, MachineTree, is_marked_file};
use super::protection::{ForbiddenName, HolderForm};
use crate::link_chain::{LinkPass, WayThere, link_chain};

#[derive(Debug, Default)]
pub(super) struct HeldSteps {
    /// Files and directories that are there.
    pub(super) existing: Vec<PathBuf>,
    pub(super) missing: Vec<ForbiddenName>,
    /// No mount can protect a link, only the way there.
    pub(super) links: Vec<PathBuf>,
}

impl HeldSteps {
    /// Those below one of the `writable` directories. Links may have changed since the lookup.
    pub(super) fn of(led_to: &[LedTo], writable: &[PathBuf]) -> Self {
        let (mut held, mut pass) = (Self::default(), LinkPass::default());
        for led in led_to {
            let chain = match pass.follow(&led.path) {
                Ok((chain, WayThere::Whole | WayThere::InPart)) => chain,
                // Protect it as a whole: a command of its owner could open it.
                Ok((LinkChain { links: _, end: closed }, WayThere::Closed)) => {
                    held.add(closed, HolderForm::Directory, writable);
                    continue;
                }
                Err(_) => continue,
            };
            let form = match (led.step, led.kind) {
                (ChainStep::End, ProtectedKind::File) => HolderForm::File,
                (ChainStep::End, ProtectedKind::Directory) | (ChainStep::Link, _) => HolderForm::Directory,
            };
            for link in chain.links {
                held.add(link, HolderForm::Directory, writable);
            }
            held.add(chain.end, form, writable);
        }
        held
    }

    /// The same for names of a writable home. Hidden entries need nothing more. Below a missing directory,
    /// `git_guard` looks afterwards: a place-holder for `.local` would get in the way.
    pub(super) fn with_home(mut self, home: &Path, hidden: &[PathBuf], writable: &[PathBuf]) -> Self {
        for (name, kind) in Guarded::other_names_at_home() {
            let path = home.join(name);
            let is_hidden = hidden.iter().any(|hidden| path.starts_with(hidden));
            let has_directory = path.parent().is_some_and(|parent| {
                parent.symlink_metadata().is_ok_and(|found| found.is_dir())
                    && !MachineTree.is_place_holder(parent)
            });
            if has_directory && !is_hidden && link_chain(&path).is_ok_and(|chain| chain.end == path) {
                let form = match kind {
                    ProtectedKind::File => HolderForm::File,
                    ProtectedKind::Directory => HolderForm::Directory,
                };
                self.add(path, form, writable);
            }
        }
        self
    }

    /// The same for our own files that do not exist yet: the next start would obey them. The existing ones are
    /// hidden, with everything in them.
    pub(super) fn with_own<'a>(
        mut self,
        own: impl Iterator<Item = (&'a Path, ProtectedKind)>,
        hidden: &[PathBuf],
        writable: &[PathBuf],
    ) -> Self {
        for (path, kind) in own {
            let Ok(chain) = link_chain(path) else { continue };
            let is_hidden = hidden.iter().any(|hidden| chain.end.starts_with(hidden) && chain.end != *hidden);
            if is_hidden || is_there(&chain.end) {
                continue;
            }
            let form = match kind {
                ProtectedKind::File => HolderForm::EmptyFile,
                ProtectedKind::Directory => HolderForm::Directory,
            };
            self.add(chain.end, form, writable);
        }
        self
    }

    fn add(&mut self, path: PathBuf, form: HolderForm, writable: &[PathBuf]) {
        let below = writable.iter().filter(|root| path.starts_with(root) && path != **root);
        // Inside the innermost root, because those above it exist.
        let Some(root) = below.max_by_key(|root| root.as_os_str().len()) else { return };
        match first_missing(root, &path) {
            Some(missing) => {
                let form = if missing == path { form } else { HolderForm::Directory };
                self.missing.push(ForbiddenName { path: missing, form });
            }
            None if path.is_symlink() => self.links.push(path),
            None => self.existing.push(path),
        }
    }
}

/// The first missing part of a path below a directory; our own place-holders count as missing.
fn first_missing(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut place = root.to_owned();
    for name in path.strip_prefix(root).ok()?.components() {
        place.push(name);
        if !is_there(&place) {
            return Some(place);
        }
    }
    None
}

fn is_there(place: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    place.symlink_metadata().is_ok_and(|found| {
        let is_held = found.file_type().is_socket() || is_marked_file(&found);
        !(is_held || found.is_dir() && MachineTree.is_place_holder(place))
    })
}
