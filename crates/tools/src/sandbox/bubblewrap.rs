//! The full level: the arguments with which bubblewrap builds the namespaces of one command. Pure but for the kinds of
//! paths; starts nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::NetworkGrant;

use super::policy::Policy;
use super::protection::{Kind, Protection};
use crate::limits::{SEALED_BYTES, TEMPORARY_BYTES};

/// Where our own program is found inside. Not by its own name: what ends us by name must leave it to do its work.
const HELPER: &str = "/run/command-guard";

/// Programs of some systems are found through these; nothing listens there.
const KEPT_OF_RUN: &[&str] = &["/run/current-system", "/run/opengl-driver"];

/// Always the same, whatever the command: namespaces of everything, no capability, nothing that outlives its parent.
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
pub(super) struct Plan<'a> {
    pub(super) policy: &'a Policy,
    pub(super) protection: &'a Protection,
    /// Shown instead of hidden files.
    pub(super) empty: &'a Path,
    /// Our own program.
    pub(super) helper: &'a Path,
    /// What our program is told, once it is the first process inside.
    pub(super) request: Vec<OsString>,
    /// The whole environment, where it can't be set by who starts bubblewrap.
    pub(super) environment: Option<Vec<(OsString, OsString)>>,
}

impl Plan<'_> {
    /// Later mounts cover earlier ones: first the world, then what may be written, then what must stay in it, then
    /// what is hidden anywhere, and last the scratch, which lies in something hidden. Empty directories come as late as
    /// they can: for each other mount bubblewrap reads the table of all that are there by then.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut arguments = Arguments(ALWAYS.iter().map(OsString::from).collect());
        if let Some(environment) = &self.environment {
            arguments.push(["--clearenv"]);
            environment.iter().for_each(|(name, value)| {
                arguments.push([OsString::from("--setenv"), name.clone(), value.clone()])
            });
        }
        self.world(&mut arguments);
        let Protection { pinned, read_only, missing } = self.protection;
        self.policy.readable.iter().for_each(|path| arguments.mount("--ro-bind", path, path));
        self.policy.writable.iter().chain(pinned).for_each(|path| arguments.mount("--bind", path, path));
        read_only.iter().for_each(|path| arguments.mount("--ro-bind", path, path));
        let (directories, files): (Vec<&PathBuf>, Vec<_>) =
            self.policy.hidden.iter().partition(|path| path.is_dir());
        let (absent_directories, absent_files): (Vec<_>, Vec<_>) =
            missing.iter().partition(|one| one.kind == Kind::Directory);
        let absent_files = absent_files.iter().map(|one| &one.path);
        absent_files.chain(files).for_each(|path| arguments.mount("--ro-bind", self.empty, path));
        let absent_directories = absent_directories.iter().map(|one| &one.path);
        absent_directories.chain(directories).for_each(|path| arguments.sealed(path));
        arguments.mount("--bind", &self.policy.scratch, &self.policy.scratch);
        arguments.mount("--ro-bind", self.helper, Path::new(HELPER));
        arguments.push(["--chdir".into(), OsString::from(&self.policy.directory)]);
        arguments.push(["--", HELPER]);
        arguments.0.extend(self.request.iter().cloned());
        arguments.0
    }

    fn world(&self, arguments: &mut Arguments) {
        let root = Path::new("/");
        arguments.mount("--ro-bind", root, root);
        arguments.push(["--dev", "/dev", "--proc", "/proc"]);
        for temporary in ["/tmp", "/var/tmp"] {
            if Path::new(temporary).is_dir() {
                arguments.tmpfs("1777", TEMPORARY_BYTES, Path::new(temporary));
            }
        }
        // The sockets of daemons are here, those that look up names for others, too.
        arguments.sealed(Path::new("/run"));
        KEPT_OF_RUN.iter().map(Path::new).for_each(|path| arguments.mount("--ro-bind-try", path, path));
        match self.policy.network {
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

    /// A directory that is empty and stays so, but for what is mounted within. Not a read-only mount: for those bubblewrap
    /// reads the table of all mounts, which is most of what a sandbox costs. A command that makes it writable by force
    /// writes into a page of memory that goes with it.
    fn sealed(&mut self, path: &Path) {
        self.tmpfs("0555", SEALED_BYTES, path);
    }
}
