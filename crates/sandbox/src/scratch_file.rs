//! Creates files in a session's scratch directory. Commands write there, too, so it follows no link of theirs
//! and replaces none of their files.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{self, CWD, Mode, OFlags};

/// Creates a new file directly in a scratch directory, for this user only. Not in a subdirectory, which a
/// command could have replaced by a link; it cannot replace the scratch directory itself, which is mounted.
pub fn create(path: &Path) -> io::Result<File> {
    let (Some(scratch), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no file of a directory"));
    };
    let directory = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let scratch = fs::openat(CWD, scratch, directory, Mode::empty())?;
    let new = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(fs::openat(&scratch, name, new, Mode::RUSR | Mode::WUSR)?))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn nothing_is_followed_and_nothing_replaced() {
        let place = tempfile::tempdir().unwrap();
        let (scratch, outside) = (place.path().join("scratch"), place.path().join("outside"));
        std::fs::create_dir(&scratch).unwrap();
        std::fs::create_dir(&outside).unwrap();
        symlink(&outside, scratch.join("directory")).unwrap();
        symlink(outside.join("made"), scratch.join("link")).unwrap();
        create(&scratch.join("file")).unwrap().write_all(b"x").unwrap();
        assert_eq!(std::fs::metadata(scratch.join("file")).unwrap().permissions().mode() & 0o777, 0o600);
        for name in ["file", "link", "directory", "directory/file"] {
            assert!(create(&scratch.join(name)).is_err(), "{name}");
        }
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }
}
