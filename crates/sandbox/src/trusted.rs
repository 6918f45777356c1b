//! Which programs attache may start outside of any sandbox: those that neither its user nor a session can
//! replace. Only looks.
//!
//! A command that was allowed once can leave a `bwrap` in a directory that `PATH` names. So we trust a place
//! only if root owns everything on the way and no other user can write there. If we are root, ownership proves
//! nothing: then we trust only the system's places.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use attache_core::scope::LinkChain;

use crate::link_chain::link_chain;

/// Where programs of the system live. We look there if `PATH` names no trusted place; root looks only there.
pub(crate) const SYSTEM_PLACES: [&str; 6] =
    ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/run/current-system/sw/bin"];

/// What programs in those places may lead through and to.
const SYSTEM_FILES: [&str; 7] = [
    "/usr",
    "/bin",
    "/sbin",
    "/etc/alternatives",
    "/run/current-system",
    "/nix/store",
    "/nix/var/nix/profiles",
];

/// Owned by root, with a group that may add entries but change nothing.
const STORE: &str = "/nix/store";

const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Which user asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurrentUser {
    /// Root can write everything, whatever its owner.
    Root,
    User {
        id: u32,
    },
}

/// The owner and mode of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EntryOwner {
    user: u32,
    mode: u32,
}

/// What we know of a machine.
struct SeenMachine<'a> {
    current_user: CurrentUser,
    chain: &'a dyn Fn(&Path) -> Option<LinkChain>,
    /// `None` if there is nothing.
    owned: &'a dyn Fn(&Path) -> Option<EntryOwner>,
}

/// Whether only root decides what runs under this name. For a missing entry, the existing directories above it
/// decide, because no other user could create it.
pub(crate) fn is_trusted(path: &Path) -> bool {
    on_this_machine(|machine| machine.trusts(path))
}

/// Whether only root can create or change something there, even if it is not one of the system's places.
pub(crate) fn is_of_root(path: &Path) -> bool {
    on_this_machine(|machine| machine.chain_of(path).is_some_and(|chain| machine.belongs_to_root(&chain)))
}

fn on_this_machine(look: impl Fn(&SeenMachine<'_>) -> bool) -> bool {
    let owned = |path: &Path| {
        let found = path.symlink_metadata().ok()?;
        Some(EntryOwner { user: found.uid(), mode: found.mode() })
    };
    let chain = |path: &Path| link_chain(path).ok();
    look(&SeenMachine { current_user: current_user(), chain: &chain, owned: &owned })
}

fn current_user() -> CurrentUser {
    let id = rustix::process::geteuid();
    if id.is_root() { CurrentUser::Root } else { CurrentUser::User { id: id.as_raw() } }
}

impl SeenMachine<'_> {
    fn trusts(&self, path: &Path) -> bool {
        let Some(chain) = self.chain_of(path) else { return false };
        let is_allowed = match self.current_user {
            CurrentUser::Root => is_of_system(path, &chain),
            CurrentUser::User { .. } => true,
        };
        is_allowed && self.belongs_to_root(&chain)
    }

    fn chain_of(&self, path: &Path) -> Option<LinkChain> {
        path.is_absolute().then(|| (self.chain)(path)).flatten()
    }

    fn belongs_to_root(&self, chain: &LinkChain) -> bool {
        let is_safe_link = |link: &PathBuf| {
            // For a missing entry, only root can create it.
            let owner = (self.owned)(link).map(|found| found.user);
            owner.is_none_or(|owner| self.is_root(owner))
                && link.ancestors().skip(1).all(|above| self.is_safe(above))
        };
        chain.links.iter().all(is_safe_link) && chain.end.ancestors().all(|step| self.is_safe(step))
    }

    /// Whether only root can change a file, or what a directory holds.
    fn is_safe(&self, path: &Path) -> bool {
        let Some(found) = (self.owned)(path) else { return true };
        let is_closed =
            found.mode & WRITABLE_BY_OTHERS == 0 || path == Path::new(STORE) && found.mode & STICKY != 0;
        self.is_root(found.user) && is_closed
    }

    /// Inside a user namespace, files of root appear to belong to `nobody`; then the owner of `/` counts as
    /// root, unless that is us.
    fn is_root(&self, user: u32) -> bool {
        let has_all = || (self.owned)(Path::new("/")).is_some_and(|found| found.user == user);
        user == 0 || self.current_user != (CurrentUser::User { id: user }) && has_all()
    }
}

/// Whether a path lies in a place of the system and leads only to the system's files.
fn is_of_system(path: &Path, chain: &LinkChain) -> bool {
    let is_below = |path: &Path, places: &[&str]| places.iter().any(|place| path.starts_with(place));
    let is_named_so = is_below(path, &SYSTEM_PLACES) || is_below(&chain.end, &[STORE]);
    is_named_so && chain.links.iter().chain([&chain.end]).all(|step| is_below(step, &SYSTEM_FILES))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: u32 = 1000;
    const NOBODY: u32 = 65534;

    /// Everything not listed belongs to root and is closed to others.
    fn trusts(
        current_user: CurrentUser,
        path: &str,
        links: &[(&str, &str)],
        others: &[(&str, u32, u32)],
    ) -> bool {
        let chain = |path: &Path| {
            let mut chain = LinkChain { links: Vec::new(), end: path.to_owned() };
            while let Some((link, to)) = links.iter().find(|(link, _)| chain.end.starts_with(link)) {
                let rest = chain.end.strip_prefix(link).unwrap().to_owned();
                chain.links.push(link.into());
                chain.end = Path::new(to).join(rest).components().collect();
            }
            Some(chain)
        };
        let owned = |path: &Path| {
            let said = others.iter().find(|(said, ..)| Path::new(said) == path);
            let link = links.iter().any(|(link, _)| Path::new(link) == path);
            let usual = if link { 0o777 } else { 0o755 };
            Some(said.map_or(EntryOwner { user: 0, mode: usual }, |(_, user, mode)| EntryOwner {
                user: *user,
                mode: *mode,
            }))
        };
        SeenMachine { current_user, chain: &chain, owned: &owned }.trusts(Path::new(path))
    }

    const USER: CurrentUser = CurrentUser::User { id: ADA };

    #[test]
    fn a_user_starts_what_only_root_can_write() {
        for (path, links, others) in [
            ("/usr/bin/bwrap", &[][..], &[][..]),
            ("/opt/tools/bin/bwrap", &[], &[]),
            ("/usr/bin/true", &[("/usr/bin/true", "/usr/lib/cargo/bin/coreutils/true")], &[]),
            ("/bin/sh", &[("/bin", "/usr/bin"), ("/usr/bin/sh", "/usr/bin/dash")], &[]),
            ("/nix/store/x-bwrap/bin/bwrap", &[], &[("/nix/store", 0, 0o1775)]),
            // In a namespace that maps only our own user.
            ("/usr/bin/bwrap", &[], &[("/", NOBODY, 0o755), ("/usr/bin/bwrap", NOBODY, 0o755)]),
        ] {
            assert!(trusts(USER, path, links, others), "{path} {links:?} {others:?}");
        }
    }

    #[test]
    fn one_step_that_somebody_else_can_write_spoils_it() {
        for (path, links, others) in [
            ("/p/bin/bwrap", &[][..], &[("/p/bin/bwrap", ADA, 0o755)][..]),
            ("/p/bin/bwrap", &[], &[("/p/bin", ADA, 0o755)]),
            ("/p/bin/bwrap", &[], &[("/p", ADA, 0o755)]),
            ("/p/bin/bwrap", &[], &[("/p", 1001, 0o755)]),
            ("/p/bin/bwrap", &[], &[("/p/bin", 0, 0o775)]),
            ("/p/bin/bwrap", &[], &[("/p/bin/bwrap", 0, 0o757)]),
            ("/tmp/bwrap", &[], &[("/tmp", 0, 0o1777)]),
            ("/tmp/x/bwrap", &[], &[("/tmp", 0, 0o1777)]),
            ("/nix/store/x/bwrap", &[], &[("/nix/store", 0, 0o775)]),
            ("/nix/store/x/bwrap", &[], &[("/nix/store", ADA, 0o1755)]),
            // Over links: their own place, their owner and where they lead.
            ("/usr/local/bin/bwrap", &[("/usr/local/bin/bwrap", "/p/bwrap")], &[("/p", ADA, 0o755)]),
            ("/l/bwrap", &[("/l", "/usr/bin")], &[("/l", ADA, 0o777)]),
            ("/p/l/bwrap", &[("/p/l", "/usr/bin")], &[("/p", ADA, 0o755)]),
            ("relative/bwrap", &[], &[]),
            // We own `/` ourselves, so its owner proves nothing.
            ("/usr/bin/bwrap", &[], &[("/", ADA, 0o755)]),
        ] {
            assert!(!trusts(USER, path, links, others), "{path} {links:?} {others:?}");
        }
    }

    #[test]
    fn root_starts_what_lies_in_the_places_of_the_system() {
        let links =
            [("/run/current-system/sw/bin/bwrap", "/nix/store/x/bin/bwrap"), ("/n", "/nix/store/y/bin")];
        let store = [("/nix/store", 0, 0o1775)];
        for path in ["/usr/bin/bwrap", "/usr/local/bin/bwrap", links[0].0, "/nix/store/x/bin/bwrap"] {
            assert!(trusts(CurrentUser::Root, path, &links, &store), "{path}");
        }
        assert!(!trusts(CurrentUser::Root, "/n/bwrap", &links, &store), "who changes /n decides");
        let planted = [("/usr/bin/bwrap", "/p/node_modules/.bin/bwrap")];
        for path in ["/p/node_modules/.bin/bwrap", "/opt/x/bwrap", "/root/bin/bwrap", "/usr/bin/bwrap"] {
            assert!(!trusts(CurrentUser::Root, path, &planted, &[]), "{path}");
        }
        assert!(!trusts(CurrentUser::Root, "/usr/bin/bwrap", &[], &[("/usr/bin", 0, 0o777)]));
    }

    #[test]
    fn on_this_machine_the_system_is_trusted_and_a_new_directory_is_not() {
        assert!(is_trusted(Path::new("/usr/bin/env")));
        assert!(is_trusted(Path::new("/bin/sh")));
        let place = tempfile::tempdir().unwrap();
        std::fs::copy("/usr/bin/env", place.path().join("env")).unwrap();
        assert!(!is_trusted(&place.path().join("env")));
        std::os::unix::fs::symlink("/usr/bin", place.path().join("bin")).unwrap();
        assert!(!is_trusted(&place.path().join("bin/env")), "the link can be changed");
    }
}
