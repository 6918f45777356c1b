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

/// Whether another user listens at a port of this machine. Root counts as us: it can read what is ours anyway.
pub(crate) fn is_held_by_another_user(port: u16) -> bool {
    let us = rustix::process::geteuid().as_raw();
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.iter().filter_map(|table| std::fs::read_to_string(table).ok());
    tables.into_iter().any(|table| {
        let mut users = listening(&table, port).filter_map(|columns| columns.get(7)?.parse::<u32>().ok());
        users.any(|user| user != us && user != 0)
    })
}

fn listening_inode(table: &str, port: u16) -> Option<&str> {
    listening(table, port).next()?.get(9).copied()
}

/// The entries of those who listen at a port, from the kernel's table: column 1 is the local address, 3 the
/// state, 7 the user, 9 the inode.
fn listening(table: &str, port: u16) -> impl Iterator<Item = Vec<&str>> {
    const LISTENING: &str = "0A";
    table.lines().skip(1).filter_map(move |line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (_, held) = columns.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(held, 16).ok()? == port && *columns.get(3)? == LISTENING;
        is_it.then_some(columns)
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

    #[test]
    fn a_port_of_another_user_is_told_from_ours() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!is_held_by_another_user(listener.local_addr().unwrap().port()));
        let table = "sl local rem st queues timer retrnsmt uid timeout inode\n\
             0: 0100007F:1E56 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1001 0 7 1\n\
             1: 0100007F:1E56 0100007F:C350 01 00000000:00000000 00:00000000 00000000 1002 0 8 1\n";
        let users: Vec<_> = listening(table, 7766).map(|columns| columns[7]).collect();
        assert_eq!(users, ["1001"]);
        assert_eq!(listening_inode(table, 7766), Some("7"));
        assert_eq!(listening(table, 7767).count(), 0);
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
