//! What a command of one call may write, see and reach, as real paths. Looks at the disk, changes nothing.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::{NetworkGrant, Site, WriteGrant};
use rustix::fs::Access;

/// Variables that name a socket or a file through which others act for the user.
const AGENTS: &[&str] =
    &["SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XAUTHORITY"];

/// Real, absolute paths of directories and files that exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// Where the command starts.
    pub(super) directory: PathBuf,
    /// Roots and granted directories, outer ones first; none where writing is withheld. The scratch is not among them: it
    /// can always be written.
    pub(super) writable: Vec<PathBuf>,
    /// Roots and granted directories that can't be written and would be missing: they lie in what a sandbox has of its own.
    pub(super) readable: Vec<PathBuf>,
    pub(super) scratch: PathBuf,
    /// None of them lies in another.
    pub(super) hidden: Vec<PathBuf>,
    pub(super) home: Option<PathBuf>,
    pub(super) network: NetworkGrant,
}

impl Policy {
    /// Makes the scratch directory if it is not there yet.
    pub(super) fn of(site: &Site, network: NetworkGrant, writes: WriteGrant) -> io::Result<Self> {
        let workspace = &site.workspace;
        make_private(&workspace.scratch)?;
        let scratch = workspace.scratch.canonicalize()?;
        let agents = AGENTS
            .iter()
            .filter_map(std::env::var_os)
            .flat_map(|value| agent_paths(&value.to_string_lossy()));
        let mut hidden = outermost(workspace.guarded.hidden_paths().chain(agents));
        let roots = std::iter::once(&workspace.root).chain(&workspace.additional).chain(site.granted.iter());
        let mut roots: Vec<PathBuf> = roots.filter_map(|root| root.canonicalize().ok()).collect();
        roots.sort();
        roots.dedup();
        let (writable, mut readable, network) = match writes {
            WriteGrant::Granted => (roots, Vec::new(), network),
            WriteGrant::Withheld => (Vec::new(), roots, NetworkGrant::Withheld),
        };
        let is_private =
            |path: &PathBuf| ["/tmp", "/var/tmp", "/run"].iter().any(|own| path.starts_with(own));
        readable.retain(is_private);
        let directory = workspace.root.canonicalize()?;
        if let Some(hidden) = hidden.iter().find(|hidden| directory.starts_with(hidden)) {
            let text = format!("{} is not shown to agents: it may hold keys or tokens", hidden.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        hidden.retain(|path| writable.iter().any(|root| path.starts_with(root)) || is_reachable(path));
        let home = workspace.guarded.home().and_then(|home| home.canonicalize().ok());
        Ok(Self { directory, writable, readable, scratch, hidden, home, network })
    }

    pub(super) fn is_writable(&self, path: &Path) -> bool {
        self.writable.iter().any(|root| path.starts_with(root))
    }
}

/// Whether the kernel would let this user in, now or after a change of the mode. What it would not needs no hiding: a
/// command has no more rights than we have, and each thing hidden is one more mount.
fn is_reachable(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return true };
    let access = |access| rustix::fs::access(path, access).is_ok();
    metadata.uid() == rustix::process::getuid().as_raw()
        || access(Access::READ_OK)
        || (metadata.is_dir() && access(Access::EXEC_OK))
}

fn make_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// A path, `unix:path=…` with more behind it, or `unix://…`.
fn agent_paths(value: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let candidates = value.split([';', ',', ':', '=']).map(|part| part.strip_prefix("//").unwrap_or(part));
    let paths: Vec<PathBuf> = candidates.filter(|part| part.starts_with('/')).map(PathBuf::from).collect();
    paths.into_iter()
}

/// Those that exist, as they really are. What the kernel makes up needs no hiding: a sandbox has its own or no rights in it.
fn outermost(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut real: Vec<PathBuf> = paths.filter_map(|path| path.canonicalize().ok()).collect();
    real.retain(|path| !["/proc", "/dev", "/sys"].iter().any(|made_up| path.starts_with(made_up)));
    real.sort();
    let mut outermost: Vec<PathBuf> = Vec::new();
    for path in real {
        if !outermost.last().is_some_and(|outer| path.starts_with(outer)) {
            outermost.push(path);
        }
    }
    outermost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_found_in_the_ways_they_are_named() {
        let paths = |value: &str| agent_paths(value).collect::<Vec<_>>();
        assert_eq!(paths("/tmp/ssh-x/agent.1"), [PathBuf::from("/tmp/ssh-x/agent.1")]);
        assert_eq!(paths("unix:path=/run/bus,guid=1"), [PathBuf::from("/run/bus")]);
        assert_eq!(paths("unix:///var/run/docker.sock"), [PathBuf::from("/var/run/docker.sock")]);
        assert_eq!(paths("/home/a/.gnupg/S.gpg-agent:0:1"), [PathBuf::from("/home/a/.gnupg/S.gpg-agent")]);
        assert_eq!(paths("tcp://h:1"), Vec::<PathBuf>::new());
    }

    #[test]
    fn only_what_exists_is_hidden_and_nothing_twice() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        std::os::unix::fs::symlink(base.join("a"), base.join("link")).unwrap();
        let paths = ["a/b", "link", "missing", "a"].map(|name| base.join(name));
        assert_eq!(outermost(paths.into_iter()), [base.join("a")]);
    }
}
