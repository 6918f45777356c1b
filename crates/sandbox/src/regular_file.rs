//! Reads small files that a command may have replaced by something else.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use crate::no_follow;

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// At most one byte more than `most`, so that a longer file is known as such. Anything but a regular file is an
/// error: opening a pipe would wait for ever.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_opened(File::from(open(path, FLAGS, Mode::empty())?), most)
}

/// The same by its real path, which was judged: a link that took its place since, or that of a directory above
/// it, is an error.
pub fn read_real(real: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_opened(File::from(no_follow::anything(real, FLAGS | OFlags::NOFOLLOW)?), most)
}

/// The same by its path below a directory that is held open.
pub fn read_beneath(directory: &OwnedFd, relative: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_opened(File::from(no_follow::file(directory, relative)?), most)
}

fn read_opened(file: File, most: u64) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_far_as_it_may_be_and_a_pipe_is_refused_at_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "abcdef").unwrap();
        assert_eq!(read(&path, 3).unwrap(), b"abcd");
        let real = path.canonicalize().unwrap();
        assert_eq!(read_real(&real, 3).unwrap(), b"abcd");
        let link = real.with_file_name("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(read_real(&link, 3).is_err() && read(&link, 3).is_ok());
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        assert!(read(&path, 3).is_err());
    }
}
