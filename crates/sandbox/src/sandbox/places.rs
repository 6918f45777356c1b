//! Where a named directory really is, and whether a command could have changed where it leads. Changes nothing.

use std::io;
use std::path::{Path, PathBuf};

use attache_core::scope::LinkChain;
use rustix::io::Errno;

use crate::link_chain::{WayThere, follow};

/// Each sandbox has its own of these: mounting the machine's over them would bring back sockets, devices and
/// processes.
const PRIVATE: [&str; 6] = ["/proc", "/dev", "/sys", "/run", "/tmp", "/var/tmp"];

/// The writable ones of these.
const IN_MEMORY: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];

/// The kernel makes these up; no project has files there.
const OF_THE_KERNEL: [&str; 3] = ["/proc", "/dev", "/sys"];

/// The only place in `/run` that holds users' disks and not files of daemons.
const DISKS_IN_RUN: &str = "/run/media";

/// An existing path with every link resolved, and where those links were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Followed {
    pub(super) real: PathBuf,
    links: Vec<PathBuf>,
}

impl From<LinkChain> for Followed {
    /// As far as the chain goes.
    fn from(LinkChain { links, end }: LinkChain) -> Self {
        Self { real: end, links }
    }
}

impl Followed {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        match follow(path)? {
            (chain, WayThere::Whole) => Ok(chain.into()),
            (_, WayThere::InPart) => Err(io::Error::from(io::ErrorKind::NotFound)),
            (_, WayThere::Closed) => Err(io::Error::from(Errno::ACCESS)),
        }
    }

    /// Whether a link on the way lies where commands can write: then a command may have made it.
    pub(super) fn leads_through(&self, places: &[PathBuf]) -> bool {
        self.links.iter().any(|link| places.iter().any(|place| link.starts_with(place)))
    }
}

/// The directories that a command may write, by their real paths, and for the others why not.
pub(super) fn writable(candidates: Vec<(PathBuf, Followed)>) -> (Vec<PathBuf>, Vec<String>) {
    let places: Vec<PathBuf> = candidates.iter().map(|(_, followed)| followed.real.clone()).collect();
    let (mut writable, mut refused) = (Vec::new(), Vec::new());
    for (named, followed) in candidates {
        let named = named.display();
        if followed.leads_through(&places) {
            refused.push(format!("{named} is read-only here: a link in a writable directory leads to it"));
        } else if let Some(private) = covers_private(&followed.real) {
            refused.push(format!("{named} is read-only here: commands have a {private} of their own"));
        } else {
            writable.push(followed.real);
        }
    }
    writable.sort();
    writable.dedup();
    (writable, refused)
}

/// Which private place of a sandbox a mount of this directory would cover or replace.
pub(super) fn covers_private(real: &Path) -> Option<&'static str> {
    let covered = PRIVATE.into_iter().find(|private| Path::new(private).starts_with(real));
    covered.or_else(|| is_of_daemons(real).then_some("/run")).or_else(|| of_the_kernel(real))
}

pub(super) fn of_the_kernel(real: &Path) -> Option<&'static str> {
    OF_THE_KERNEL.into_iter().find(|place| real.starts_with(place))
}

/// Whether a sandbox has something of its own in the place of this path.
pub(super) fn is_private(real: &Path) -> bool {
    PRIVATE.iter().any(|place| real.starts_with(place))
}

/// What a sandbox has of its own that this path lies in, where writing succeeds and nothing stays.
pub(super) fn private_of(real: &Path) -> Option<&'static str> {
    IN_MEMORY.into_iter().find(|place| real.starts_with(place))
}

fn is_of_daemons(real: &Path) -> bool {
    real.starts_with("/run") && !real.starts_with(DISKS_IN_RUN)
}

/// Whether a sandbox lacks this path, which lies below a private place, unless we show it, and whether we can.
/// Of the daemons' own directories only plain files qualify: behind other entries a daemon listens.
pub(super) fn is_shown_on_purpose(real: &Path) -> bool {
    let is_below = |place: &str| real.starts_with(place) && real != Path::new(place);
    let is_file = || real.symlink_metadata().is_ok_and(|found| found.is_file());
    is_below("/tmp") || is_below("/var/tmp") || is_below(DISKS_IN_RUN) || (is_below("/run") && is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        (directory, base)
    }

    #[test]
    fn a_path_is_followed_as_the_kernel_does() {
        let (_directory, base) = place();
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        symlink("a", base.join("link")).unwrap();
        symlink("../link/./b", base.join("a/up")).unwrap();
        symlink(base.join("a/up"), base.join("far")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        for path in ["a/b", "link/b", "a/up", "far", "far/../b", "link/../link"] {
            let path = base.join(path);
            assert_eq!(Followed::of(&path).unwrap().real, path.canonicalize().unwrap(), "{}", path.display());
        }
        for path in ["loop", "missing", "a/missing/x"] {
            assert!(Followed::of(&base.join(path)).is_err(), "{path}");
        }
        assert_eq!(Followed::of(Path::new("/")).unwrap().real, Path::new("/"));
    }

    #[test]
    fn a_link_that_a_command_could_have_put_there_makes_nothing_writable() {
        let (_directory, base) = place();
        std::fs::create_dir_all(base.join("root/sub")).unwrap();
        std::fs::create_dir_all(base.join("home")).unwrap();
        symlink(base.join("home"), base.join("root/sub/link")).unwrap();
        symlink(base.join("root"), base.join("own-link")).unwrap();
        let candidates = |names: &[&str]| -> Vec<_> {
            let paths = names.iter().map(|name| base.join(name));
            paths.map(|path| (path.clone(), Followed::of(&path).unwrap())).collect()
        };
        let (roots, refused) = writable(candidates(&["own-link", "root/sub/link"]));
        assert_eq!(roots, [base.join("root")]);
        assert!(refused[0].contains("a link in a writable directory"), "{refused:?}");
        // On its own it belongs to the user.
        assert_eq!(writable(candidates(&["root/sub/link"])).0, [base.join("home")]);
    }

    #[test]
    fn no_grant_covers_what_a_sandbox_has_of_its_own() {
        for (path, is_writable) in [
            ("/", false),
            ("/tmp", false),
            ("/var", false),
            ("/var/tmp", false),
            ("/run", false),
            ("/run/user/0", false),
            ("/proc/1", false),
            ("/dev/shm", false),
            ("/sys", false),
            ("/tmp/x", true),
            ("/var/lib/x", true),
            ("/run/media/u/disk", true),
            ("/runs", true),
        ] {
            let followed = Followed { real: path.into(), links: Vec::new() };
            let (writable, refused) = writable(vec![(path.into(), followed)]);
            assert_eq!((writable.len(), refused.len()), if is_writable { (1, 0) } else { (0, 1) }, "{path}");
        }
    }
}
