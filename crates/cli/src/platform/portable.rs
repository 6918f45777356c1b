//! What other systems have of it: a limit that keeps a crash from leaving an image of the memory.

use std::net::SocketAddr;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::UnixStream;

/// Other allocators give back by themselves.
pub(crate) fn give_back_large_blocks() {}

/// Keeps an image of the memory, where keys are, from being left by a crash. Other processes of the same user
/// can look into this one all the same; `attache doctor` says so.
pub(crate) fn keep_others_out() {
    let limit = Rlimit { current: Some(0), maximum: getrlimit(Resource::Core).maximum };
    if let Err(error) = setrlimit(Resource::Core, limit) {
        // Before there is a log.
        eprintln!("attache: a crash of this process may leave an image of its memory: {error}");
    }
}

/// Which program holds an address of this machine: no common way to learn it.
pub(crate) fn holder_of(_address: SocketAddr) -> Option<String> {
    None
}

/// Whether another user listens at a port of this machine: no common way to learn it.
pub(crate) fn is_held_by_another_user(_port: u16) -> bool {
    false
}

/// Which program listens at a socket in the file system: its other end says its number on many systems.
pub(crate) async fn holder_of_socket(path: &Path) -> Option<String> {
    let number = UnixStream::connect(path).await.ok()?.peer_cred().ok()?.pid()?;
    Some(format!("process {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_leaves_no_image() {
        keep_others_out();
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
    }
}
