//! Creates place-holders for names that must not come into being while a command runs, and removes them after
//! the last such command. Never removes an entry with content.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use rustix::io::Errno;

use super::super::directory_tree::{DirectoryTree, MachineTree, PLACE_HOLDER_MARK, is_marked_file};
use super::super::protection::{ForbiddenName, HolderForm};
use crate::platform::rename_new;

const PLACE_HOLDER_MODE: u32 = PLACE_HOLDER_MARK | 0o755;
const PLACE_HOLDER_FILE_MODE: u32 = PLACE_HOLDER_MARK | 0o600;

/// Place-holders that stay while this value lives.
///
/// Commands that run at the same time share them, also those of other processes of ours: each holds a lock, and
/// the one that can lock it alone at its end is the last. The lock's file lists the names, so that the next
/// start (`remove_left_behind`) and the next command in the same root remove what a crash leaves.
#[derive(Debug)]
pub(in super::super) struct PlaceHolders {
    lock: File,
    made: Vec<ForbiddenName>,
    /// Empty directories between two uses: moving one is cheap everywhere, but removing one waits for the disk
    /// if that discards freed blocks at once.
    spares: PathBuf,
}

impl PlaceHolders {
    /// `locks` is a directory that no command can reach. Also returns the directories in which it could not
    /// create one.
    pub(super) fn make(
        locks: &Path,
        root: &Path,
        missing: impl Iterator<Item = ForbiddenName>,
    ) -> io::Result<(Self, Vec<PathBuf>)> {
        let mut hasher = DefaultHasher::new();
        root.hash(&mut hasher);
        let mut lock = File::options()
            .create(true)
            .read(true)
            .append(true)
            .open(locks.join(format!("{:016x}", hasher.finish())))?;
        flock(&lock, FlockOperation::LockShared)?;
        let missing: Vec<ForbiddenName> = missing.collect();
        // Before creating the first, so that its name is known whatever happens then.
        if let Err(error) = remember(&mut lock, &missing) {
            tracing::debug!(%error, "names of place-holders are not kept");
        }
        let spares = locks.join("spare");
        DirBuilder::new().recursive(true).mode(0o700).create(&spares)?;
        let mut at_hand = spares.read_dir()?.flatten().map(|entry| entry.path());
        let mut holders = Self { lock, made: Vec::new(), spares };
        let mut failed: Vec<PathBuf> = Vec::new();
        for one in missing {
            let parent = one.path.parent().unwrap_or(root);
            // If one failed, do not try the next: we then protect the whole directory.
            if failed.last().is_some_and(|last| last == parent) {
                continue;
            }
            match make(&one, &mut at_hand) {
                Ok(()) => holders.made.push(one),
                Err(error) => {
                    tracing::debug!(path = %one.path.display(), %error, "no place-holder");
                    failed.push(parent.to_owned());
                }
            }
        }
        Ok((holders, failed))
    }
}

impl Drop for PlaceHolders {
    fn drop(&mut self) {
        if flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        for one in self.made.iter().rev() {
            if let Err(error) = remove(&one.path, &self.spares) {
                tracing::debug!(path = %one.path.display(), %error, "a place-holder stays");
            }
        }
    }
}

/// Adds the names that the lock's file does not list yet: most commands in a root have the same names, and
/// write nothing.
fn remember(lock: &mut File, missing: &[ForbiddenName]) -> io::Result<()> {
    let mut listed = Vec::new();
    lock.read_to_end(&mut listed)?;
    let known: HashSet<&[u8]> = listed.split(|byte| *byte == SEPARATOR).collect();
    let mut added = Vec::new();
    for name in missing.iter().map(|one| one.path.as_os_str().as_bytes()).filter(|name| !known.contains(name))
    {
        added.extend_from_slice(name);
        added.push(SEPARATOR);
    }
    lock.write_all(&added)
}

/// No path contains it.
const SEPARATOR: u8 = 0;

/// Removes the place-holders of commands whose attache was killed. `scratch` contains the scratch directories
/// of all sessions.
pub fn remove_left_behind(scratch: &Path) {
    let locks = scratch.join(super::super::CLOSED);
    let Ok(entries) = locks.read_dir() else { return };
    let spares = locks.join("spare");
    for entry in entries.flatten().filter(|entry| is_name_of_lock(&entry.file_name())) {
        if let Err(error) = remove_listed(&entry.path(), &spares) {
            tracing::debug!(path = %entry.path().display(), %error, "place-holders stay");
        }
    }
}

fn is_name_of_lock(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.len() == 16 && name.iter().all(u8::is_ascii_hexdigit)
}

/// Does nothing while a command runs in that root.
fn remove_listed(lock: &Path, spares: &Path) -> io::Result<()> {
    let mut lock = File::options().read(true).write(true).open(lock)?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    let mut listed = Vec::new();
    lock.read_to_end(&mut listed)?;
    for name in listed.split(|byte| *byte == SEPARATOR).filter(|name| !name.is_empty()).rev() {
        // Most do not exist: their command removed them.
        if let Err(error) = remove(Path::new(OsStr::from_bytes(name)), spares)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(name = %String::from_utf8_lossy(name), %error, "a place-holder stays");
        }
    }
    lock.set_len(0)
}

fn make(missing: &ForbiddenName, spares: &mut impl Iterator<Item = PathBuf>) -> io::Result<()> {
    let made = match missing.form {
        HolderForm::Directory => make_directory(&missing.path, spares),
        HolderForm::File => {
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, &missing.path, FileType::Socket, mode, 0).map_err(io::Error::from)
        }
        HolderForm::EmptyFile => {
            let made = File::options().write(true).create_new(true).mode(0o600).open(&missing.path);
            made.and_then(|file| file.set_permissions(Permissions::from_mode(PLACE_HOLDER_FILE_MODE)))
        }
    };
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn make_directory(path: &Path, spares: &mut impl Iterator<Item = PathBuf>) -> io::Result<()> {
    for spare in spares.filter(|spare| is_empty(spare)) {
        match move_to(&spare, path) {
            Ok(()) => return Ok(()),
            // Another command was faster.
            Err(Errno::NOENT) => {}
            // It is on another file system, or the name exists by now.
            Err(_) => break,
        }
    }
    DirBuilder::new().mode(PLACE_HOLDER_MODE).create(path)
}

fn remove(path: &Path, spares: &Path) -> io::Result<()> {
    let found = path.symlink_metadata()?;
    let kind = found.file_type();
    if kind.is_socket() || is_marked_file(&found) {
        std::fs::remove_file(path)
    } else if kind.is_dir() && MachineTree.is_place_holder(path) {
        remove_directory(path, spares)
    } else {
        // The user has made something of it.
        Ok(())
    }
}

fn remove_directory(path: &Path, spares: &Path) -> io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let spare = spares.join(format!("{}-{number}", std::process::id()));
    match move_to(path, &spare) {
        Ok(()) if is_empty(&spare) => Ok(()),
        // The user has made something of it meanwhile.
        Ok(()) => Ok(move_to(&spare, path)?),
        Err(_) => std::fs::remove_dir(path),
    }
}

/// Never replaces an existing entry.
fn move_to(from: &Path, to: &Path) -> rustix::io::Result<()> {
    rename_new(CWD, from, CWD, to)
}

fn is_empty(directory: &Path) -> bool {
    directory.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}

/// The directory of the locks, and an empty file that covers hidden files.
pub(super) fn prepare(scratch: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let locks = super::super::closed_directory(scratch);
    DirBuilder::new().recursive(true).mode(0o700).create(&locks)?;
    let empty = locks.join("empty");
    File::options().create(true).truncate(true).write(true).open(&empty)?;
    Ok((locks, empty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_used_again_and_nothing_of_the_owner_is_moved() {
        let place = tempfile::tempdir().unwrap();
        let [locks, root] = ["locks", "root"].map(|name| place.path().join(name));
        std::fs::create_dir(&locks).unwrap();
        std::fs::create_dir(&root).unwrap();
        let names = [".claude", ".zed"].map(|name| root.join(name));
        let missing =
            || names.clone().map(|path| ForbiddenName { path, form: HolderForm::Directory }).into_iter();
        let spares = || locks.join("spare").read_dir().unwrap().count();
        drop(PlaceHolders::make(&locks, &root, missing()).unwrap().0);
        assert_eq!((spares(), root.read_dir().unwrap().count()), (2, 0));
        let (held, _) = PlaceHolders::make(&locks, &root, missing()).unwrap();
        assert_eq!((spares(), root.read_dir().unwrap().count()), (0, 2));
        std::fs::write(names[0].join("settings"), "own").unwrap();
        drop(held);
        assert_eq!(spares(), 1);
        assert_eq!(std::fs::read_to_string(names[0].join("settings")).unwrap(), "own");
        // If a user has put something into a spare directory, it must not appear in the root.
        let spare = locks.join("spare").read_dir().unwrap().next().unwrap().unwrap().path();
        std::fs::write(spare.join("x"), "").unwrap();
        let (held, _) = PlaceHolders::make(&locks, &root, missing()).unwrap();
        assert_eq!(names[1].read_dir().unwrap().count(), 0);
        drop(held);
        assert!(!names[1].exists() && names[0].exists());
    }

    #[test]
    fn an_empty_file_holds_a_name_until_somebody_writes_it() {
        let place = tempfile::tempdir().unwrap();
        let [locks, root] = ["locks", "root"].map(|name| place.path().join(name));
        std::fs::create_dir(&locks).unwrap();
        std::fs::create_dir(&root).unwrap();
        let names = ["s.db-journal", "s.db.repair", "own"].map(|name| root.join(name));
        std::fs::write(&names[2], "").unwrap();
        let missing =
            || names.clone().map(|path| ForbiddenName { path, form: HolderForm::EmptyFile }).into_iter();
        let (held, failed) = PlaceHolders::make(&locks, &root, missing()).unwrap();
        assert_eq!(failed, Vec::<PathBuf>::new());
        assert!(names.iter().all(|name| std::fs::read(name).unwrap().is_empty()), "each can be read");
        std::fs::write(&names[1], "x").unwrap();
        drop(held);
        assert_eq!(names.map(|name| name.exists()), [false, true, true], "its own stay with their user");
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_that_is_in_use() {
        let place = tempfile::tempdir().unwrap();
        let (scratch, root) = (place.path().join("scratch"), place.path().join("root"));
        let locks = scratch.join(super::super::super::CLOSED);
        std::fs::create_dir_all(&locks).unwrap();
        std::fs::create_dir(&root).unwrap();
        let forms = [
            (".claude", HolderForm::Directory),
            (".mcp.json", HolderForm::File),
            (".zed", HolderForm::Directory),
        ];
        let missing = || forms.map(|(name, form)| ForbiddenName { path: root.join(name), form }).into_iter();
        let names = || {
            let mut names: Vec<_> =
                root.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let (mut killed, _) = PlaceHolders::make(&locks, &root, missing()).unwrap();
        remove_left_behind(&scratch);
        assert_eq!(names(), [".claude", ".mcp.json", ".zed"], "its command runs");
        // A killed process releases its locks and removes nothing.
        killed.made.clear();
        drop(killed);
        std::fs::write(root.join(".zed/settings.json"), "own").unwrap();
        std::fs::write(root.join("notes"), "own").unwrap();
        remove_left_behind(&scratch);
        assert_eq!(names(), [".zed", "notes"], "what is its owner's stays");
        drop(PlaceHolders::make(&locks, &root, missing()).unwrap().0);
        assert_eq!(names(), [".zed", "notes"]);
    }
}
