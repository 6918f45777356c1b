//! How Linux holds commands. Full: bubblewrap builds namespaces, our own program is the first process inside
//! and starts the command behind a filter of system calls. Reduced: our own program gives up rights through
//! Landlock and the filter, then becomes the command.

mod bubblewrap;
mod capabilities;
mod filter;
mod init;
mod kernel_rules;
mod listeners;
mod machine_memory;
mod place_holders;
mod probe;
mod stage;
mod usage;
mod verify;

use std::io;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::NetworkGrant;

use super::directory_tree::MachineTree;
use super::links::Links;
use super::plan::{self, Hidden};
use super::policy::Policy;
use super::protection::Protection;
use super::reexec::{ConfinedLine, HelperRequest};
use super::{Confined, Sandbox};
use crate::limits::PLAN_TRIES;
use crate::process::EndReporter;

use bubblewrap::BubblewrapOptions;
use filter::{GroupBit, Sockets};
use verify::Expected;

#[cfg(test)]
pub(crate) use capabilities::drop_capabilities;
pub(super) use machine_memory::machine_memory;
pub(super) use place_holders::PlaceHolders;
pub use place_holders::remove_left_behind;
pub(super) use probe::{best, reduced, with};
pub(super) use stage::{HelperStage, StageWords, enter};

/// What makes the full level.
pub const FULL_BY: &str = "bubblewrap and seccomp";

/// What makes the reduced one.
pub const REDUCED_BY: &str = "landlock and seccomp";

impl Sandbox {
    /// What is read may change before it is mounted: then everything is read once more.
    pub(super) fn namespaces(&self, policy: &Policy, line: &ConfinedLine) -> io::Result<Confined> {
        let mut built = self.namespaces_once(policy, line);
        for _ in 1..PLAN_TRIES {
            if built.is_ok() {
                break;
            }
            built = self.namespaces_once(policy, line);
        }
        built
    }

    fn namespaces_once(&self, policy: &Policy, line: &ConfinedLine) -> io::Result<Confined> {
        let policy = &policy.clone().with_listeners_hidden();
        let (locks, empty) = place_holders::prepare(&policy.scratch)?;
        let protection = Protection::of(policy, &MachineTree);
        let (place_holders, failed) = hold_places(&locks, policy, &protection)?;
        let mut held = policy.notes.clone();
        held.extend(policy.lost_writes.held());
        held.extend(failed.iter().map(|place| {
            let place = place.display();
            format!("{place} is read-only here: attache could not protect the configuration in it otherwise")
        }));
        let protection = protection.with_read_only(failed);
        let hidden: Vec<Hidden> = policy.hidden.iter().map(|path| Hidden::of(path)).collect();
        let mounts = plan::plan(policy, &protection, &hidden);
        let (expected, memory) = (Expected::of(&mounts)?, self.memory);
        let stage = HelperStage::Init { expected, memory, group_bit: group_bit(policy) };
        let request = HelperRequest::of(policy, stage, line.clone());
        let building = BubblewrapOptions {
            mounts: &mounts,
            network: policy.network,
            directory: &policy.directory,
            empty: &empty,
            helper: &self.helper,
            request: request.to_arguments(),
        };
        Ok(Confined {
            directory: Some(PathBuf::from("/")),
            links: Links::of(&protection.links),
            held,
            protected: protection.shown_below(&policy.writable),
            absent: protection.missing_below(&policy.writable),
            told: policy.told.iter().cloned().chain(policy.lost_writes.lost()).collect(),
            _place_holders: place_holders,
            ..Confined::new(self.builder.clone().into(), building.arguments(), EndReporter::Init)
        })
    }

    pub(super) fn restricted(&self, policy: &Policy, line: ConfinedLine) -> io::Result<Confined> {
        let caches = policy.caches.iter().map(|cache| &cache.path);
        let writable = policy.writable.iter().chain(caches).chain([&policy.scratch]).cloned().collect();
        let sockets = match policy.network {
            NetworkGrant::Withheld => Sockets::None,
            NetworkGrant::Granted | NetworkGrant::GrantedByName => Sockets::Ordinary,
        };
        let (hidden, group_bit) = (policy.hidden.clone(), group_bit(policy));
        let stage = HelperStage::Restricted { writable, hidden, sockets, group_bit };
        let request = HelperRequest::of(policy, stage, line);
        Ok(Confined {
            directory: Some(policy.directory.clone()),
            held: policy.notes.iter().cloned().chain(policy.lost_writes.clone().all_held()).collect(),
            told: policy.told.clone(),
            ..Confined::new(self.helper.clone().into(), request.to_arguments(), EndReporter::Helper)
        })
    }
}

/// Place-holders for what is missing, each with the lock of the innermost root it lies in, and the directories
/// that take none.
fn hold_places(
    locks: &Path,
    policy: &Policy,
    protection: &Protection,
) -> io::Result<(Vec<PlaceHolders>, Vec<PathBuf>)> {
    let (mut held, mut failed) = (Vec::new(), Vec::new());
    for root in policy.writable.iter().rev() {
        let is_of_inner = |path: &Path| {
            let is_inner = |other: &&PathBuf| other.starts_with(root) && *other != root;
            policy.writable.iter().filter(is_inner).any(|inner| path.starts_with(inner))
        };
        let own = protection
            .missing
            .iter()
            .filter(|missing| missing.path.starts_with(root) && !is_of_inner(&missing.path));
        let (made, not_made) = PlaceHolders::make(locks, root, own.cloned())?;
        held.push(made);
        failed.extend(not_made);
    }
    Ok((held, failed))
}

/// Whether a root, or the repository in it, belongs to a group by its mode.
fn group_bit(policy: &Policy) -> GroupBit {
    use std::os::unix::fs::MetadataExt;
    let places = policy.writable.iter().flat_map(|root| [root.clone(), root.join(".git")]);
    let has_bit = |path: PathBuf| {
        path.symlink_metadata().is_ok_and(|found| found.is_dir() && found.mode() & 0o2000 != 0)
    };
    if places.into_iter().any(has_bit) { GroupBit::Needed } else { GroupBit::Refused }
}
