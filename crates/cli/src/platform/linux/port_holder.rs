//! Which program holds an address of this machine, as far as the system tells us. Changes nothing.

use std::net::SocketAddr;
use std::path::Path;

use attache_core::legible::legible_line;
use tokio::net::UnixStream;

/// A program with its number; `None` if it is not ours to see.
pub(crate) fn holder_of(address: SocketAddr) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.iter().filter_map(|table| std::fs::read_to_string(table).ok());
    let inode =
        tables.into_iter().find_map(|table| listening_inode(&table, address.port()).map(str::to_owned))?;
    let socket = format!("socket:[{inode}]");
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes.into_iter().find_map(|process| {
        let number: u32 = process.file_name().to_str()?.parse().ok()?;
        holds(&process.path(), &socket).then(|| named(number))
    })
}

/// The same for a socket in the file system: its other end says who it is.
pub(crate) async fn holder_of_socket(path: &Path) -> Option<String> {
    let number = UnixStream::connect(path).await.ok()?.peer_cred().ok()?.pid()?;
    u32::try_from(number).ok().map(named)
}

fn named(number: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
    format!("{} ({number})", legible_line(name.trim()))
}

fn holds(process: &Path, socket: &str) -> bool {
    let Ok(descriptors) = std::fs::read_dir(process.join("fd")) else { return false };
    let mut targets =
        descriptors.flatten().filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
    targets.any(|target| target.as_os_str() == socket)
}

/// From the kernel's table: column 1 is the local address, 3 the state, 9 the inode.
fn listening_inode(table: &str, port: u16) -> Option<&str> {
    const LISTENING: &str = "0A";
    table.lines().skip(1).find_map(|line| {
        let places: Vec<&str> = line.split_whitespace().collect();
        let (_, held) = places.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(held, 16).ok()? == port && *places.get(3)? == LISTENING;
        is_it.then(|| places.get(9).copied()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_our_own_is_held_by_us() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let holder = holder_of(listener.local_addr().unwrap()).unwrap();
        assert!(holder.ends_with(&format!(" ({})", std::process::id())), "{holder}");
        assert_eq!(holder_of("127.0.0.1:1".parse().unwrap()), None);
    }

    #[tokio::test]
    async fn so_is_a_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.sock");
        assert_eq!(holder_of_socket(&path).await, None);
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let holder = holder_of_socket(&path).await.unwrap();
        assert!(holder.ends_with(&format!(" ({})", std::process::id())), "{holder}");
    }
}
