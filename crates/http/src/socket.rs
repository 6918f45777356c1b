//! A socket in the file system that only its owner can reach. It goes with its listener.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use crate::token::random_name;

#[derive(Debug)]
pub(crate) struct OwnSocket {
    pub(crate) listener: UnixListener,
    _path: SocketPath,
}

#[derive(Debug)]
struct SocketPath(PathBuf);

impl Drop for SocketPath {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(%error, "the socket was gone already");
        }
    }
}

impl OwnSocket {
    /// Gets its name only when no other user can reach it. A file that a dead process left there is replaced.
    pub(crate) async fn bind(path: &Path) -> io::Result<Self> {
        match path.symlink_metadata() {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file of this name"));
            }
            Ok(_) if UnixStream::connect(path).await.is_ok() => {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "somebody listens there already"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", random_name(4)?));
        let unfinished = SocketPath(path.with_file_name(name));
        let listener = UnixListener::bind(&unfinished.0)?;
        std::fs::set_permissions(&unfinished.0, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&unfinished.0, path)?;
        Ok(Self { listener, _path: SocketPath(path.to_owned()) })
    }
}
