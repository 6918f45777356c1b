//! The full level: the arguments with which bubblewrap builds the namespaces of one command. Pure, except that
//! it checks the kinds of some system paths; starts nothing.

use std::ffi::OsString;
use std::path::Path;

use attache_core::ports::tool::NetworkGrant;

use super::super::plan::{Mount, MountKind};
use crate::limits::{SEALED_BYTES, TEMPORARY_BYTES};

/// The path of our own program inside. It has another name, so that killing us by name leaves it to do its
/// work.
const HELPER: &str = "/run/command-guard";

/// Some systems find programs through these links; nothing listens there.
const KEPT_OF_RUN: &[&str] = &["/run/current-system", "/run/opengl-driver"];

/// The same for every command: new namespaces of every kind, no capability, nothing that outlives its parent.
const ALWAYS: &[&str] = &[
    "--unshare-all",
    "--unshare-user",
    "--cap-drop",
    "ALL",
    "--die-with-parent",
    "--new-session",
    "--as-pid-1",
];

/// What we build a sandbox from.
#[derive(Debug)]
pub(super) struct BubblewrapOptions<'a> {
    pub(super) mounts: &'a [Mount],
    pub(super) network: NetworkGrant,
    /// Where the command starts.
    pub(super) directory: &'a Path,
    /// Covers hidden files.
    pub(super) empty: &'a Path,
    /// Our own program.
    pub(super) helper: &'a Path,
    /// The arguments of our program as the first process inside.
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
        // The kernel protects its settings by the user id alone, and root inside is root outside. Bubblewrap
        // covers them only if the directory itself looks writable, which it never does.
        if rustix::process::geteuid().is_root() {
            let settings = Path::new("/proc/sys");
            arguments.mount("--ro-bind", settings, settings);
        }
        for temporary in ["/tmp", "/var/tmp"] {
            if Path::new(temporary).is_dir() {
                arguments.tmpfs("1777", TEMPORARY_BYTES, Path::new(temporary));
            }
        }
        // Daemons have their sockets here, including those that look up names for others.
        arguments.sealed(Path::new("/run"));
        KEPT_OF_RUN.iter().map(Path::new).for_each(|path| arguments.mount("--ro-bind-try", path, path));
        match self.network {
            NetworkGrant::Withheld => {}
            NetworkGrant::Granted | NetworkGrant::GrantedByName => {
                arguments.push(["--share-net"]);
                // It is often a link into what we just covered.
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

    /// An empty directory that stays empty, except for mounts inside it. Not a read-only mount: for those
    /// bubblewrap reads the table of all mounts, which is most of a sandbox's cost. If a command makes it
    /// writable by force, it writes into a page of memory that vanishes with it.
    fn sealed(&mut self, path: &Path) {
        self.tmpfs("0555", SEALED_BYTES, path);
    }
}
