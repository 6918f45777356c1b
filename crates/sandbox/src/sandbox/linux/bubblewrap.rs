//! The full level: the arguments with which bubblewrap builds the namespaces of one command. Pure but for the
//! kinds of the machine's own places; starts nothing.

use std::ffi::OsString;
use std::path::Path;

use attache_core::ports::tool::NetworkGrant;

use super::super::plan::{Mount, MountKind};
use crate::limits::{SEALED_BYTES, TEMPORARY_BYTES};

/// Where our own program is found inside. Not by its own name: what ends us by name must leave it to do its
/// work.
const HELPER: &str = "/run/command-guard";

/// Programs of some systems are found through these; nothing listens there.
const KEPT_OF_RUN: &[&str] = &["/run/current-system", "/run/opengl-driver"];

/// Always the same, whatever the command: namespaces of everything, no capability, nothing that outlives its
/// parent.
const ALWAYS: &[&str] = &[
    "--unshare-all",
    "--unshare-user",
    "--cap-drop",
    "ALL",
    "--die-with-parent",
    "--new-session",
    "--as-pid-1",
];

/// What a sandbox is built of.
#[derive(Debug)]
pub(super) struct BubblewrapOptions<'a> {
    pub(super) mounts: &'a [Mount],
    pub(super) network: NetworkGrant,
    /// Where the command starts.
    pub(super) directory: &'a Path,
    /// Shown instead of hidden files.
    pub(super) empty: &'a Path,
    /// Our own program.
    pub(super) helper: &'a Path,
    /// What our program is told, once it is the first process inside.
    pub(super) request: Vec<OsString>,
}

impl BubblewrapOptions<'_> {
    /// Later mounts cover earlier ones: first the world, then the plan.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut arguments = Arguments(ALWAYS.iter().map(OsString::from).collect());
        self.world(&mut arguments);
        for Mount { at, what } in self.mounts {
            match what {
                MountKind::Writable => arguments.mount("--bind", at, at),
                MountKind::ReadOnly => arguments.mount("--ro-bind", at, at),
                MountKind::EmptyFile => arguments.mount("--ro-bind", self.empty, at),
                MountKind::EmptyDirectory => arguments.sealed(at),
            }
        }
        arguments.mount("--ro-bind", self.helper, Path::new(HELPER));
        arguments.push(["--chdir".into(), OsString::from(self.directory)]);
        arguments.push(["--", HELPER]);
        arguments.0.extend(self.request.iter().cloned());
        arguments.0
    }

    fn world(&self, arguments: &mut Arguments) {
        let root = Path::new("/");
        arguments.mount("--ro-bind", root, root);
        arguments.push(["--dev", "/dev", "--proc", "/proc"]);
        // Who may change the kernel's settings is told by the user id alone, and root inside is root outside.
        // Bubblewrap covers them only where the directory itself looks writable, which it never does.
        if rustix::process::geteuid().is_root() {
            let settings = Path::new("/proc/sys");
            arguments.mount("--ro-bind", settings, settings);
        }
        for temporary in ["/tmp", "/var/tmp"] {
            if Path::new(temporary).is_dir() {
                arguments.tmpfs("1777", TEMPORARY_BYTES, Path::new(temporary));
            }
        }
        // The sockets of daemons are here, those that look up names for others, too.
        arguments.sealed(Path::new("/run"));
        KEPT_OF_RUN.iter().map(Path::new).for_each(|path| arguments.mount("--ro-bind-try", path, path));
        match self.network {
            NetworkGrant::Withheld => {}
            NetworkGrant::Granted | NetworkGrant::GrantedByName => {
                arguments.push(["--share-net"]);
                // Often a link into what was just covered.
                if let Ok(names) = Path::new("/etc/resolv.conf").canonicalize()
                    && names.starts_with("/run")
                {
                    arguments.mount("--ro-bind", &names, &names);
                }
            }
        }
    }
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn push<T: Into<OsString>>(&mut self, words: impl IntoIterator<Item = T>) {
        self.0.extend(words.into_iter().map(Into::into));
    }

    fn mount(&mut self, how: &str, source: &Path, target: &Path) {
        self.push([how.into(), OsString::from(source), OsString::from(target)]);
    }

    fn tmpfs(&mut self, mode: &str, bytes: u64, path: &Path) {
        self.push(["--perms", mode, "--size", &bytes.to_string()]);
        self.push(["--tmpfs".into(), OsString::from(path)]);
    }

    /// A directory that is empty and stays so, but for what is mounted within. Not a read-only mount: for those
    /// bubblewrap reads the table of all mounts, which is most of what a sandbox costs. A command that makes it
    /// writable by force writes into a page of memory that goes with it.
    fn sealed(&mut self, path: &Path) {
        self.tmpfs("0555", SEALED_BYTES, path);
    }
}
