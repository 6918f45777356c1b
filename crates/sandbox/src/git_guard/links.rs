//! Links in the directories of repositories, through which git would write elsewhere, and hard links to files
//! that control git. Only looks.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType};

use super::entries::enter;
use super::state::RootState;
use super::unseen::{NotSeen, note_unseen};
use crate::limits::GIT_GUARD_LINKS;

/// Adds the links in these directories to their repositories. Lists directories completely and keeps only
/// links.
pub(super) fn note_links(root: &OwnedFd, directories: &BTreeSet<PathBuf>, state: &mut RootState) {
    for directory in directories {
        let owner = directory.ancestors().find(|above| state.repositories.contains_key(*above));
        let Some(owner) = owner.map(Path::to_owned) else { continue };
        let Ok(inner) = directory.strip_prefix(&owner) else { continue };
        let Some(repository) = state.repositories.get_mut(&owner) else { continue };
        let listed = enter(root, directory).and_then(|handle| Ok((fs::Dir::read_from(&handle)?, handle)));
        let (entries, handle) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                note_unseen(&mut repository.unseen, inner, error);
                continue;
            }
        };
        let entries = entries.flatten();
        let links = entries.filter(|entry| match entry.file_type() {
            // Some file systems do not report the type.
            FileType::Unknown => fs::statat(&handle, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| kind_of(&stat) == FileType::Symlink),
            kind => kind == FileType::Symlink,
        });
        for link in links {
            if repository.links.len() >= GIT_GUARD_LINKS {
                repository.unseen.insert(inner.to_owned(), NotSeen::TooMany);
                break;
            }
            let name = OsString::from_vec(link.file_name().to_bytes().to_vec());
            repository.links.insert(inner.join(name));
        }
    }
}

/// Files that decide what git runs or does and that have another name elsewhere: writing there changes them
/// here.
pub(super) fn hard_linked(root: &OwnedFd, state: &RootState) -> BTreeSet<PathBuf> {
    let inner = state.repositories.iter().flat_map(|(path, repository)| {
        let control = repository.control.keys().map(move |name| path.join(name));
        control.chain(repository.hooks.keys().map(move |name| path.join("hooks").join(name)))
    });
    let below = state.below.0.iter().map(|(path, held)| (path, Some(held)));
    let named = state.named.iter().map(|(path, named)| (path, named.held.as_ref()));
    let held = below.chain(named).flat_map(|(path, held)| {
        let entries = held.into_iter().flat_map(|held| held.entries.keys());
        entries.map(move |inner| if inner.as_os_str().is_empty() { path.clone() } else { path.join(inner) })
    });
    let others = state.pointers.keys().chain(state.protected.keys()).cloned();
    let has_others = |path: &PathBuf| {
        let found = fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|stat| kind_of(&stat) == FileType::RegularFile && stat.st_nlink > 1)
    };
    inner.chain(held).chain(others).filter(has_others).collect()
}

fn kind_of(stat: &fs::Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
