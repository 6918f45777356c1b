//! The reduced level: a process gives up, through Landlock, what its command does not need. Landlock rules only
//! allow, so nothing inside a writable directory can be excluded again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use thiserror::Error;

use crate::limits::HIDING_RULES;

/// The newest version whose rules we understand; older kernels apply what they support.
const RULES: ABI = ABI::V6;

/// Devices that every program may write to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

#[derive(Debug, Error)]
pub(super) enum RestrictError {
    #[error("this kernel has no Landlock")]
    Missing,
    #[error("Landlock: {0}")]
    Rules(#[from] landlock::RulesetError),
}

/// Restricts this process and all it starts: writes below `writable` only, no reads of `hidden`, no signals and
/// no abstract sockets beyond its own tree.
pub(super) fn restrict(writable: &[PathBuf], hidden: &[PathBuf]) -> Result<(), RestrictError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()?;
    let ruleset = allow(ruleset, readable(hidden), AccessFs::from_read(RULES))?;
    let ruleset = allow(ruleset, writable.to_vec(), AccessFs::from_all(RULES))?;
    let devices = DEVICES.iter().map(PathBuf::from).collect();
    let ruleset = allow(ruleset, devices, AccessFs::from_file(RULES))?;
    match ruleset.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(RestrictError::Missing),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

/// What kernels with each older version of Landlock cannot prevent, in words for people.
const UNHELD: [(i64, &str); 3] = [
    (3, "truncate your files outside of the workspace (Linux 6.2 holds that)"),
    (5, "control devices that it may open (Linux 6.10 holds that)"),
    (6, "signal your other processes and, with the network, reach abstract sockets (Linux 6.12 holds that)"),
];

/// What a command can do at the reduced level on this kernel although it should not.
pub(super) fn unheld_here() -> Vec<&'static str> {
    unheld_by(version())
}

fn unheld_by(version: i64) -> Vec<&'static str> {
    UNHELD.iter().filter(|(held_from, _)| version < *held_from).map(|(_, what)| *what).collect()
}

/// The version of this kernel's Landlock; a higher one prevents more. Negative if there is none.
#[allow(unsafe_code)]
fn version() -> i64 {
    const VERSION: libc::c_uint = 1; // LANDLOCK_CREATE_RULESET_VERSION
    // SAFETY: with this flag the kernel reads nothing and makes nothing.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) }
}

/// A path that we cannot open (it vanished, or belongs to another user) cannot be granted either.
fn allow(
    mut ruleset: RulesetCreated,
    paths: Vec<PathBuf>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RestrictError> {
    for path in paths {
        let Ok(handle) = PathFd::new(&path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(RULES) };
        ruleset = ruleset.add_rule(PathBeneath::new(handle, access))?;
    }
    Ok(ruleset)
}

/// The largest trees without anything of `hidden`. They do not include the directories above a hidden path, but
/// all current entries of those directories, one by one.
fn readable(hidden: &[PathBuf]) -> Vec<PathBuf> {
    let hidden: BTreeSet<&Path> = hidden.iter().map(PathBuf::as_path).collect();
    let above: BTreeSet<&Path> = hidden.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let mut readable = Vec::new();
    let mut open = vec![PathBuf::from("/")];
    while let Some(path) = open.pop() {
        if hidden.contains(path.as_path()) || readable.len() >= HIDING_RULES {
            continue;
        }
        if !above.contains(path.as_path()) {
            readable.push(path);
        } else if let Ok(entries) = path.read_dir() {
            // A rule for a link would apply to its target, which has its own rule or is hidden.
            let is_link = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
            open.extend(entries.flatten().filter(|entry| !is_link(entry)).map(|entry| entry.path()));
        }
    }
    readable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_kernel_does_not_hold_is_named() {
        assert_eq!(unheld_by(6), Vec::<&str>::new());
        assert_eq!(unheld_by(5).len(), 1);
        assert_eq!(unheld_by(4).len(), 2);
        let of_the_first = unheld_by(1).join("; ");
        for what in ["truncate", "devices", "signal", "abstract sockets"] {
            assert!(of_the_first.contains(what), "{of_the_first}");
        }
    }

    #[test]
    fn everything_but_the_hidden_is_readable_one_entry_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in ["home/.ssh", "home/src", "other"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(base.join("home/.ssh"), base.join("home/keys")).unwrap();
        let readable = readable(&[base.join("home/.ssh")]);
        let below: Vec<_> = readable.iter().filter(|path| path.starts_with(&base)).collect();
        assert_eq!(below.len(), 2, "{below:?}");
        assert!(below.contains(&&base.join("home/src")) && below.contains(&&base.join("other")));
        assert!(!readable.iter().any(|path| base.starts_with(path)));
        assert_eq!(super::readable(&[]), [PathBuf::from("/")]);
    }
}
