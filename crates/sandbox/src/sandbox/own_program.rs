//! A copy of our own program where no command can replace it: the program itself may lie in a session's
//! directory, as it does for its developers. We start helpers and relays from the copy, outside of any sandbox.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock, statvfs};

use super::closed_directory;
use crate::limits::SPACE_BESIDE_COPY;
use crate::platform::{copy_opened, running_program, runs_no_programs};

/// Locked as long as this process runs: the next process removes copies that are not locked.
static USED: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// The copy of this program. `scratches` is the directory of all scratch directories. Made once for each build,
/// then shared.
pub fn own_program(scratches: &Path) -> io::Result<PathBuf> {
    copy_of(&running_program()?, &closed_directory(&scratches.join("any")).join("programs"))
}

fn copy_of(program: &File, directory: &Path) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    if runs_no_programs(directory)? {
        let text = format!("programs can't be run in {}", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let found = program.metadata()?;
    // Every change of the file changes one of these.
    let name = format!(
        "{:x}-{:x}-{:x}-{:x}.{:x}",
        found.dev(),
        found.ino(),
        found.size(),
        found.ctime(),
        found.ctime_nsec()
    );
    let path = directory.join(&name);
    let used = locked(program, directory, &path)?;
    USED.lock().unwrap_or_else(PoisonError::into_inner).push(used);
    sweep(directory, &path);
    Ok(path)
}

/// The copy; makes it if it is missing. Another process may remove it before we have locked it.
fn locked(program: &File, directory: &Path, path: &Path) -> io::Result<File> {
    loop {
        let copy = File::open(path).or_else(|_| make(program, directory, path))?;
        flock(&copy, FlockOperation::LockShared)?;
        let (copied, found) = (copy.metadata()?.ino(), path.metadata().map(|found| found.ino()));
        if found.is_ok_and(|found| found == copied) {
            return Ok(copy);
        }
    }
}

/// Writes it under another name first, so that no process finds half of it. Leaves an almost full disk to the
/// sessions, and leaves nothing behind if it fails halfway.
fn make(program: &File, directory: &Path, path: &Path) -> io::Result<File> {
    let disk = statvfs(directory)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free < program.metadata()?.size().saturating_add(SPACE_BESIDE_COPY) {
        let text = format!("{} has too little space for a copy of our program", directory.display());
        return Err(io::Error::new(io::ErrorKind::StorageFull, text));
    }
    let new = directory.join(format!("new-{}", std::process::id()));
    match write_copy(program, &new).and_then(|()| std::fs::rename(&new, path)) {
        Ok(()) => File::open(path),
        Err(error) => {
            if let Err(stays) = std::fs::remove_file(&new) {
                tracing::debug!(path = %new.display(), error = %stays, "half of a copy stays");
            }
            Err(error)
        }
    }
}

fn write_copy(program: &File, new: &Path) -> io::Result<()> {
    let mut copy = File::options().write(true).create(true).truncate(true).mode(0o600).open(new)?;
    copy_opened(program, &mut copy)?;
    // It is closed with this: a program that is open to be written can't be run.
    copy.set_permissions(Permissions::from_mode(0o500))
}

/// Removes copies that no process uses.
fn sweep(directory: &Path, own: &Path) {
    let others = directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    for other in others.filter(|other| other != own) {
        let is_unused = File::open(&other)
            .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
        if is_unused && let Err(error) = std::fs::remove_file(&other) {
            tracing::debug!(path = %other.display(), %error, "an old copy of our program stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_replaced_does_not_change_its_copy() {
        let place = tempfile::tempdir().unwrap();
        let (program, directory) = (place.path().join("attache"), place.path().join("closed/programs"));
        std::fs::write(&program, "first").unwrap();
        let running = File::open(&program).unwrap();
        let copy = copy_of(&running, &directory).unwrap();
        assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o500);
        assert_eq!(copy_of(&running, &directory).unwrap(), copy, "one for each build");
        // As a build does, and as a command could.
        std::fs::remove_file(&program).unwrap();
        std::fs::write(&program, "evil").unwrap();
        let again = copy_of(&running, &directory).unwrap();
        for copy in [&copy, &again] {
            assert_eq!(std::fs::read_to_string(copy).unwrap(), "first", "both are in use");
        }
        let other = copy_of(&File::open(&program).unwrap(), &directory).unwrap();
        assert_eq!(std::fs::read_to_string(other).unwrap(), "evil", "another program has another copy");
    }

    #[test]
    fn copies_that_no_process_uses_go() {
        let place = tempfile::tempdir().unwrap();
        let (program, directory) = (place.path().join("attache"), place.path().join("programs"));
        std::fs::write(&program, "x").unwrap();
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("1-2-3-4.5"), "old").unwrap();
        let copy = copy_of(&File::open(&program).unwrap(), &directory).unwrap();
        let left: Vec<PathBuf> = directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [copy]);
    }

    /// If the source cannot be read to its end, no half copy stays, which could take the last space of a disk.
    #[test]
    fn a_copy_that_fails_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("programs");
        assert!(
            copy_of(&File::open(place.path()).unwrap(), &directory).is_err(),
            "a directory is no program"
        );
        assert_eq!(directory.read_dir().unwrap().count(), 0);
    }

    #[test]
    fn the_copy_of_this_program_runs() {
        let place = tempfile::tempdir().unwrap();
        let copy = own_program(place.path()).unwrap();
        let listed = std::process::Command::new(copy).args(["--list", "--exact", "none"]).output().unwrap();
        assert!(listed.status.success(), "{listed:?}");
    }
}
