//! Makes the place-holders of names that must not come into being while a command runs, and removes them after the last
//! one. Never removes anything that holds something.

use std::fs::{DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, RenameFlags, flock, mknodat, renameat_with};
use rustix::io::Errno;

use super::look::{Look, PLACE_HOLDER_MODE, Tree};
use super::protection::{Form, Missing};

/// Place-holders that stay while this value lives.
///
/// Commands that run at the same time share them, those of other processes of ours, too: each holds a lock,
/// and who gets it alone at its end is the last. What a crash leaves is found by the next command in the same root.
#[derive(Debug)]
pub(super) struct PlaceHolders {
    lock: File,
    made: Vec<Missing>,
    /// Empty directories between two uses: to move one is cheap everywhere, to remove one waits for the disk where freed
    /// blocks are discarded at once.
    spares: PathBuf,
}

impl PlaceHolders {
    /// `locks` is a directory that no command can reach. Told besides: directories in which one could not be made.
    pub(super) fn make(
        locks: &Path,
        root: &Path,
        missing: impl Iterator<Item = Missing>,
    ) -> io::Result<(Self, Vec<PathBuf>)> {
        let mut hasher = DefaultHasher::new();
        root.hash(&mut hasher);
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(locks.join(format!("{:016x}", hasher.finish())))?;
        flock(&lock, FlockOperation::LockShared)?;
        let spares = locks.join("spare");
        DirBuilder::new().recursive(true).mode(0o700).create(&spares)?;
        let mut at_hand = spares.read_dir()?.flatten().map(|entry| entry.path());
        let mut holders = Self { lock, made: Vec::new(), spares };
        let mut failed: Vec<PathBuf> = Vec::new();
        for one in missing {
            let parent = one.path.parent().unwrap_or(root);
            // Nobody tries again where the last one failed: a whole directory is held then.
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

fn make(missing: &Missing, spares: &mut impl Iterator<Item = PathBuf>) -> io::Result<()> {
    let made = match missing.form {
        Form::Directory => make_directory(&missing.path, spares),
        Form::File => {
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, &missing.path, FileType::Socket, mode, 0).map_err(io::Error::from)
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
            // Another file system, or something is there by now.
            Err(_) => break,
        }
    }
    DirBuilder::new().mode(PLACE_HOLDER_MODE).create(path)
}

fn remove(path: &Path, spares: &Path) -> io::Result<()> {
    let kind = path.symlink_metadata()?.file_type();
    if kind.is_socket() {
        std::fs::remove_file(path)
    } else if kind.is_dir() && Look.is_place_holder(path) {
        remove_directory(path, spares)
    } else {
        // Its owner has made something of it.
        Ok(())
    }
}

fn remove_directory(path: &Path, spares: &Path) -> io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let spare = spares.join(format!("{}-{number}", std::process::id()));
    match move_to(path, &spare) {
        Ok(()) if is_empty(&spare) => Ok(()),
        // Its owner has made something of it meanwhile.
        Ok(()) => Ok(move_to(&spare, path)?),
        Err(_) => std::fs::remove_dir(path),
    }
}

/// Never over something that is there.
fn move_to(from: &Path, to: &Path) -> rustix::io::Result<()> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
}

fn is_empty(directory: &Path) -> bool {
    directory.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}

/// The directory of the locks, and an empty file that stands for what is not shown.
pub(super) fn prepare(scratch: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let locks = super::closed_directory(scratch);
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
        let missing = || names.clone().map(|path| Missing { path, form: Form::Directory }).into_iter();
        let spares = || locks.join("spare").read_dir().unwrap().count();
        drop(PlaceHolders::make(&locks, &root, missing()).unwrap().0);
        assert_eq!((spares(), root.read_dir().unwrap().count()), (2, 0));
        let (held, _) = PlaceHolders::make(&locks, &root, missing()).unwrap();
        assert_eq!((spares(), root.read_dir().unwrap().count()), (0, 2));
        std::fs::write(names[0].join("settings"), "own").unwrap();
        drop(held);
        assert_eq!(spares(), 1);
        assert_eq!(std::fs::read_to_string(names[0].join("settings")).unwrap(), "own");
        // What somebody has put into a spare one stays out of the root.
        let spare = locks.join("spare").read_dir().unwrap().next().unwrap().unwrap().path();
        std::fs::write(spare.join("x"), "").unwrap();
        let (held, _) = PlaceHolders::make(&locks, &root, missing()).unwrap();
        assert_eq!(names[1].read_dir().unwrap().count(), 0);
        drop(held);
        assert!(!names[1].exists() && names[0].exists());
    }
}
