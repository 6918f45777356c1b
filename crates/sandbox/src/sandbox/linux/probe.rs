//! Finds out which level works on this machine, by running `true` in it. Remembers nothing.

use std::io;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::NetworkGrant;

use super::super::plan::{Mount, MountKind};
use super::super::trial::{run_true, trial};
use super::super::{Level, Sandbox, Shortfall};
use super::bubblewrap::BubblewrapOptions;
use super::filter::{GroupBit, Sockets};
use super::kernel_rules::unheld_here;
use super::machine_memory::tree_memory;
use super::stage::HelperStage;
use super::verify::Expected;
use crate::process::{EndReporter, Launch, StandardStreams};
use crate::programs::Programs;

const INSTALL: &str =
    "install bubblewrap: apt install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap";
const ALLOW: &str = "let users make namespaces (sysctl kernel.unprivileged_userns_clone=1; on Ubuntu an AppArmor \
                     profile for bwrap, or sysctl kernel.apparmor_restrict_unprivileged_userns=0)";
const NEWER: &str = "install bubblewrap, or use a kernel from 6.12 on";
const UPGRADE: &str = "use a kernel from 5.13 on with Landlock enabled (lsm=landlock,…)";

pub(in super::super) fn best(helper: PathBuf) -> Sandbox {
    with(Programs::of_machine().helper("bwrap"), helper)
}

pub(in super::super) fn with(bubblewrap: Option<PathBuf>, helper: PathBuf) -> Sandbox {
    let shortfall = match bubblewrap {
        None => Shortfall {
            level: Level::Full,
            reason: "bubblewrap is not installed where only root can write".to_owned(),
            advice: INSTALL.to_owned(),
        },
        Some(bubblewrap) => match try_full(&bubblewrap, &helper) {
            Ok(()) => {
                let memory = tree_memory();
                return Sandbox { level: Level::Full, builder: bubblewrap, memory, ..Sandbox::none(helper) };
            }
            Err(error) => Shortfall {
                level: Level::Full,
                reason: format!("bubblewrap does not work here: {error}"),
                advice: ALLOW.to_owned(),
            },
        },
    };
    reduced(helper, vec![shortfall])
}

pub(in super::super) fn reduced(helper: PathBuf, mut shortfalls: Vec<Shortfall>) -> Sandbox {
    let level = match try_reduced(&helper) {
        Ok(()) => {
            shortfalls.extend(partly_held(&unheld_here()));
            Level::Reduced
        }
        Err(error) => {
            let reason = error.to_string();
            shortfalls.push(Shortfall { level: Level::Reduced, reason, advice: UPGRADE.to_owned() });
            Level::None
        }
    };
    Sandbox { level, shortfalls, ..Sandbox::none(helper) }
}

/// Why the reduced level itself protects less than it should.
fn partly_held(unheld: &[&str]) -> Option<Shortfall> {
    (!unheld.is_empty()).then(|| Shortfall {
        level: Level::Reduced,
        reason: format!(
            "this kernel's Landlock is an old one; at the reduced level a command can {}",
            unheld.join(", ")
        ),
        advice: NEWER.to_owned(),
    })
}

fn try_full(bubblewrap: &Path, helper: &Path) -> io::Result<()> {
    let root = Path::new("/");
    // The mount point must exist; only `true` runs, and it writes nothing there.
    let mounts = [Mount { at: "/tmp".into(), what: MountKind::Writable }];
    let stage = HelperStage::Init {
        expected: Expected::of(&mounts)?,
        memory: u64::MAX,
        group_bit: GroupBit::Refused,
    };
    let request = trial(stage);
    let building = BubblewrapOptions {
        mounts: &mounts,
        network: NetworkGrant::Withheld,
        directory: root,
        empty: Path::new("/dev/null"),
        helper,
        request: request.to_arguments(),
    };
    run_true(&Launch {
        program: bubblewrap.into(),
        arguments: building.arguments(),
        contact: EndReporter::Init,
        marked: Vec::new(),
        streams: StandardStreams::Together,
    })
}

fn try_reduced(helper: &Path) -> io::Result<()> {
    let stage = HelperStage::Restricted {
        writable: vec![],
        hidden: vec![],
        sockets: Sockets::None,
        group_bit: GroupBit::Refused,
    };
    let request = trial(stage);
    run_true(&Launch {
        program: helper.into(),
        arguments: request.to_arguments(),
        contact: EndReporter::Helper,
        marked: Vec::new(),
        streams: StandardStreams::Together,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_is_a_shortfall_of_the_reduced_level() {
        assert_eq!(partly_held(&[]), None);
        let told = partly_held(&["truncate your files"]).unwrap();
        assert_eq!(told.level, Level::Reduced);
        assert!(
            told.reason.contains("truncate your files") && told.advice.contains("bubblewrap"),
            "{told:?}"
        );
    }
}
