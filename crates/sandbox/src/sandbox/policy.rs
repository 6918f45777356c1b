//! What a command of one call may write, see and reach, as real paths. Looks at the disk; creates the scratch
//! and missing caches, changes nothing else.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use attache_core::ports::tool::{NetworkGrant, Site, Workspace, WriteGrant};
use attache_core::scope::Guarded;
use rustix::fs::Access;

use super::directory_tree::{DirectoryEntries, DirectoryTree, MachineTree, NodeKind, is_closed};
use super::kept_places::KeptPlaces;
use super::led_to::HeldSteps;
use super::lost_writes::LostWrites;
use super::places::{self, Followed};
use super::protection::ForbiddenName;
use crate::caches;
use crate::limits::NESTED_DIRECTORIES;
use crate::link_chain::{LinkPass, WayThere};

/// Variables that name a socket or a file through which other programs act for the user.
const AGENTS: &[&str] =
    &["SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XAUTHORITY"];

/// Real, absolute paths of existing directories and files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// Where the command starts.
    pub(super) directory: PathBuf,
    /// Roots and granted directories, outer ones first; empty if the command may not write. Without the
    /// scratch, which is always writable.
    pub(super) writable: Vec<PathBuf>,
    /// The same, whether they can be written or not.
    pub(super) places: Vec<PathBuf>,
    /// Package caches at home: granted with the network. Apart from all roots, and nothing in them is protected
    /// or hidden.
    pub(super) caches: Vec<WritableCache>,
    /// What the command may read and would be missing, because it lies in a private place of the sandbox, above
    /// all in `/tmp`.
    pub(super) readable: Vec<PathBuf>,
    pub(super) scratch: PathBuf,
    /// None of them lies inside another.
    pub(super) hidden: Vec<PathBuf>,
    /// The writable targets of names of the home and of the user's git configuration.
    pub(super) protected: Vec<PathBuf>,
    /// The same for names that do not exist yet.
    pub(super) protected_missing: Vec<ForbiddenName>,
    /// Links on the way from names of the home. We compare them afterwards, and protect the way to them.
    pub(super) protected_links: Vec<PathBuf>,
    pub(super) home: Option<PathBuf>,
    pub(super) network: NetworkGrant,
    /// A command that runs unasked may use less of the machine.
    pub(super) writes: WriteGrant,
    /// What is less than requested, and why; the model hears it if the command fails.
    pub(super) notes: Vec<String>,
    /// The same, but the model always hears it, because the command may have succeeded elsewhere.
    pub(super) told: Vec<String>,
    /// Granted writes that the sandbox does not allow.
    pub(super) lost_writes: LostWrites,
}

/// A package cache of the user that a command may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WritableCache {
    pub(super) name: &'static str,
    pub(super) path: PathBuf,
}

/// The links on the way to what is guarded, and to the user's own places.
fn held_steps(
    workspace: &Workspace,
    home: Option<&PathBuf>,
    hidden: &[PathBuf],
    writable: &[PathBuf],
) -> HeldSteps {
    let steps = HeldSteps::of(workspace.guarded.led_to(), writable);
    let is_written = |home: &&PathBuf| writable.iter().any(|root| home.starts_with(root));
    let steps = match home.filter(is_written) {
        Some(home) => steps.with_home(home, hidden, writable),
        None => steps,
    };
    steps.with_own(workspace.guarded.own_places(), hidden, writable)
}

/// Without a network a command fetches nothing, so it needs no cache.
fn caches(site: &Site, network: NetworkGrant, home: Option<&Path>, taken: &[&PathBuf]) -> Vec<WritableCache> {
    match network {
        NetworkGrant::Granted | NetworkGrant::GrantedByName => writable_caches(site, home, taken),
        NetworkGrant::Withheld => Vec::new(),
    }
}

impl Policy {
    /// Creates the scratch directory if it is missing.
    pub(super) fn of(site: &Site, network: NetworkGrant, writes: WriteGrant) -> io::Result<Self> {
        let workspace = &site.workspace;
        make_private(&workspace.scratch)?;
        let scratch = workspace.scratch.canonicalize()?;
        let mut kept = KeptPlaces::of(&workspace.scratch)?;
        let root = kept.follow(&workspace.root)?.real;
        let others = workspace.additional.iter().chain(site.granted.iter());
        let (mut notes, mut told) = (Vec::new(), Vec::new());
        let mut candidates = vec![(workspace.root.clone(), Followed::of(&workspace.root)?)];
        for named in others {
            match kept.follow(named) {
                Ok(followed) => candidates.push((named.clone(), followed)),
                // There is nothing to mount yet; `lost_writes` reports it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => notes.push(error.to_string()),
            }
        }
        let places: Vec<PathBuf> = candidates.iter().map(|(_, followed)| followed.real.clone()).collect();
        let (writable, network) = match writes {
            WriteGrant::Granted => {
                let (writable, refused) = places::writable(candidates);
                notes.extend(refused);
                (writable, network)
            }
            WriteGrant::Withheld => (Vec::new(), NetworkGrant::Withheld),
        };
        let hidden = hidden(site, &places, &scratch);
        refuse_hidden(&root, &hidden)?;
        let readable = readable(site, &places, &writable);
        let directory = start_directory(root, &scratch, &mut told);
        let home = workspace.guarded.home().and_then(|home| home.canonicalize().ok());
        let led_to = held_steps(workspace, home.as_ref(), &hidden, &writable);
        let taken: Vec<&PathBuf> = places.iter().chain(&hidden).chain([&scratch]).collect();
        let caches = caches(site, network, home.as_deref(), &taken);
        let policy = Self {
            directory,
            writable,
            places,
            caches,
            readable,
            scratch,
            hidden,
            protected: led_to.existing,
            protected_missing: led_to.missing,
            protected_links: led_to.links,
            home,
            network,
            writes,
            notes,
            told,
            lost_writes: LostWrites::default(),
        };
        let lost_writes = match writes {
            WriteGrant::Granted => LostWrites::of(&site.writes, |path| policy.keeps(path)),
            WriteGrant::Withheld => LostWrites::default(),
        };
        Ok(Self { lost_writes, ..policy })
    }

    /// The same for a server, which its user agreed to beforehand. Even without the right to write in the roots
    /// it has its network, and as much room for what it fetches as any command. It fetches into its scratch,
    /// from which no other command runs anything, unlike the user's caches.
    pub(super) fn of_server(self, network: NetworkGrant) -> Self {
        Self { network, writes: WriteGrant::Granted, caches: Vec::new(), ..self }
    }

    /// The same with more protected paths, where a command could change them.
    pub(super) fn with_protected(mut self, paths: &[PathBuf]) -> Self {
        let more: Vec<PathBuf> = paths.iter().filter(|path| self.is_below_writable(path)).cloned().collect();
        self.protected.extend(more);
        self
    }

    /// Whether what a command writes there stays.
    fn keeps(&self, path: &Path) -> bool {
        self.is_writable(path) || path.starts_with(&self.scratch)
    }

    pub(super) fn is_writable(&self, path: &Path) -> bool {
        let caches = self.caches.iter().map(|cache| &cache.path);
        self.writable.iter().chain(caches).any(|place| path.starts_with(place))
    }

    /// The same, but without the roots themselves, which lie in no other, and without caches.
    pub(super) fn is_below_writable(&self, path: &Path) -> bool {
        self.writable.iter().any(|root| path.starts_with(root) && path != root)
    }

    pub(super) fn cache_names(&self) -> Vec<String> {
        self.caches.iter().map(|cache| cache.name.to_owned()).collect()
    }
}

fn refuse_hidden(root: &Path, hidden: &[PathBuf]) -> io::Result<()> {
    match hidden.iter().find(|hidden| root.starts_with(hidden)) {
        None => Ok(()),
        Some(hidden) => {
            let text = format!("{} is not shown to agents: it may hold keys or tokens", hidden.display());
            Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
        }
    }
}

/// The root, unless a command could not enter it.
fn start_directory(root: PathBuf, scratch: &Path, told: &mut Vec<String>) -> PathBuf {
    if can_be_entered(&root) {
        return root;
    }
    let root = root.display();
    told.push(format!("{root} can't be entered (see its mode): the command ran in $TMPDIR instead"));
    scratch.to_path_buf()
}

/// The user's package caches, without those that overlap with `taken`, with private places of sandboxes, or
/// with what is hidden or protected, existing or not. Creates missing ones.
fn writable_caches(site: &Site, home: Option<&Path>, taken: &[&PathBuf]) -> Vec<WritableCache> {
    let guarded = &site.workspace.guarded;
    let hidden: Vec<PathBuf> = guarded.hidden_paths().collect();
    let at_home = home.iter().flat_map(|home| Guarded::protected().iter().map(|row| home.join(row.name())));
    let protected: Vec<PathBuf> =
        at_home.chain(guarded.led_to().iter().map(|led| led.path.clone())).collect();
    let is_apart = |path: &Path| {
        let overlaps = |other: &Path| path.starts_with(other) || other.starts_with(path);
        !taken.iter().any(|other| overlaps(other))
            && !hidden.iter().chain(&protected).any(|other| overlaps(other))
            && !home.is_some_and(|home| home.starts_with(path))
            && guarded.protects(path, &site.workspace.scratch).is_none()
            && places::covers_private(path).is_none()
    };
    let apart =
        caches::all(home, |name| std::env::var_os(name)).into_iter().filter(|cache| is_apart(&cache.path()));
    apart.filter_map(|cache| Some(WritableCache { name: cache.name, path: cache.ready()? })).collect()
}

/// A command has no rights beyond those of its user's mode, not even as root.
fn can_be_entered(directory: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_own = |found: &std::fs::Metadata| found.uid() == rustix::process::geteuid().as_raw();
    let lacks_entry = |found: &std::fs::Metadata| found.permissions().mode() & 0o100 == 0;
    let own = directory.metadata().ok().filter(is_own);
    !own.is_some_and(|found| lacks_entry(&found)) && !is_closed(directory)
}

/// Keys, tokens, our own files, and places where agents listen. What no process of this user can reach need not
/// be hidden.
fn hidden(site: &Site, places: &[PathBuf], scratch: &Path) -> Vec<PathBuf> {
    let guarded = &site.workspace.guarded;
    let agents = AGENTS
        .iter()
        .filter_map(std::env::var_os)
        .flat_map(|value| agent_paths(&value.to_string_lossy()).collect::<Vec<_>>());
    // A command may have made a link where commands can write, to hide what others need.
    let is_plausible = |followed: &Followed| {
        let is_needed = |path: &PathBuf| path.starts_with(&followed.real);
        let is_at_home = guarded.home().is_some_and(|home| followed.real.starts_with(home));
        !followed.leads_through(places)
            || (is_at_home && !places.iter().chain([&scratch.to_owned()]).any(is_needed))
    };
    let mut pass = LinkPass::default();
    let found = guarded.hidden_paths().chain(agents).filter_map(|path| match pass.follow(&path) {
        Ok((chain, WayThere::Whole)) => Some(Followed::from(chain)),
        // A command of its owner could open a closed directory. A root is read-only there, and so stays closed.
        Ok((chain, WayThere::Closed)) if !places.iter().any(|place| place.starts_with(&chain.end)) => {
            Some(Followed::from(chain))
        }
        Ok((_, WayThere::Closed | WayThere::InPart)) | Err(_) => None,
    });
    let mut hidden = outermost(found.filter(is_plausible).map(|followed| followed.real));
    hidden.retain(|path| places.iter().any(|root| path.starts_with(root)) || is_reachable(path));
    hidden
}

/// Roots that are not writable, and paths that were judged and allowed.
fn readable(site: &Site, places: &[PathBuf], writable: &[PathBuf]) -> Vec<PathBuf> {
    let judged = site.judged.iter().flat_map(|judged| judged.iter());
    let judged = judged.filter_map(|path| Followed::of(path).ok());
    let judged = judged.filter(|followed| !followed.leads_through(places)).map(|followed| followed.real);
    let judged = judged.filter(|path| is_quiet(path));
    let is_missing = |path: &PathBuf| {
        places::is_shown_on_purpose(path) && !writable.iter().any(|root| path.starts_with(root))
    };
    outermost(places.iter().cloned().chain(judged).filter(is_missing))
}

/// Whether no process listens at a path or slightly below it: a socket accepts connections wherever it is
/// mounted.
fn is_quiet(path: &Path) -> bool {
    match path.symlink_metadata().map(|found| found.file_type()) {
        Ok(kind) if kind.is_file() => return true,
        Ok(kind) if kind.is_dir() && !kind.is_socket() => {}
        Ok(_) | Err(_) => return false,
    }
    let mut open = vec![path.to_owned()];
    let mut looked_at = 0;
    while let Some(directory) = open.pop() {
        looked_at += 1;
        if looked_at > NESTED_DIRECTORIES {
            break;
        }
        let DirectoryEntries::Entries(entries) = MachineTree.list(&directory) else { continue };
        for (name, kind) in entries {
            match kind {
                NodeKind::Socket => return false,
                NodeKind::Directory => open.push(directory.join(name)),
                NodeKind::Link | NodeKind::Other => {}
            }
        }
    }
    true
}

/// Whether the kernel would let this user in, now or after a change of the mode. What it would not needs no
/// hiding: a command has no more rights than we have, and each thing hidden is one more mount.
pub(super) fn is_reachable(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return true };
    let access = |access| rustix::fs::access(path, access).is_ok();
    let is_open = metadata.uid() == rustix::process::getuid().as_raw()
        || access(Access::READ_OK)
        || (metadata.is_dir() && access(Access::EXEC_OK));
    is_open && !path.parent().is_some_and(is_closed)
}

fn make_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// A path, `unix:path=…` with more after it, or `unix://…`.
fn agent_paths(value: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let candidates = value.split([';', ',', ':', '=']).map(|part| part.strip_prefix("//").unwrap_or(part));
    let paths: Vec<PathBuf> = candidates.filter(|part| part.starts_with('/')).map(PathBuf::from).collect();
    paths.into_iter()
}

/// What the kernel makes up needs no hiding: a sandbox has its own or no rights in it.
pub(super) fn outermost(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut real: Vec<PathBuf> = paths.collect();
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
    fn nothing_is_hidden_twice() {
        let paths = ["/a/b", "/a", "/a-b", "/proc/kcore", "/a"].map(PathBuf::from);
        assert_eq!(outermost(paths.into_iter()), [PathBuf::from("/a"), "/a-b".into()]);
    }
}
