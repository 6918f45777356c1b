//! Finds out which level this machine can do, by running `true` in it. Remembers nothing.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::{NetworkGrant, WriteGrant};
use rustix::pipe::{PipeFlags, pipe_with};

use super::bubblewrap::BubblewrapOptions;
use super::filter::GroupBit;
use super::kernel_rules::unheld_here;
use super::plan::{Mount, MountKind};
use super::reexec::{ConfinedLine, HelperRequest, HelperStage};
use super::resources::tree_memory;
use super::verify::Expected;
use super::{Level, Sandbox, Shortfall, Sockets};
use crate::environment;
use crate::limits::PROBE_TIME;
use crate::process::{EndReporter, ExitCause, Launch, ProcessTree, Sink, StandardStreams, watch};
use crate::programs::Programs;

const INSTALL: &str =
    "install bubblewrap: apt install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap";
const ALLOW: &str = "let users make namespaces (sysctl kernel.unprivileged_userns_clone=1; on Ubuntu an AppArmor \
                     profile for bwrap, or sysctl kernel.apparmor_restrict_unprivileged_userns=0)";
const NEWER: &str = "install bubblewrap, or use a kernel from 6.12 on";
const UPGRADE: &str = "use a kernel from 5.13 on with Landlock enabled (lsm=landlock,…)";

pub(super) fn best(helper: PathBuf) -> Sandbox {
    with(Programs::of_machine().helper("bwrap"), helper)
}

pub(super) fn with(bubblewrap: Option<PathBuf>, helper: PathBuf) -> Sandbox {
    let shortfall = match bubblewrap {
        None => Shortfall {
            level: Level::Full,
            reason: "bubblewrap is not installed where only root can write".to_owned(),
            advice: INSTALL.to_owned(),
        },
        Some(bubblewrap) => match try_full(&bubblewrap, &helper) {
            Ok(()) => {
                let memory = tree_memory();
                return Sandbox { level: Level::Full, bubblewrap, memory, ..Sandbox::none(helper) };
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

pub(super) fn reduced(helper: PathBuf, mut shortfalls: Vec<Shortfall>) -> Sandbox {
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

/// Why the reduced level itself is less than it should be.
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

/// By its whole path: `PATH` may lead into a project, or nowhere.
fn find_true() -> OsString {
    Programs::of_machine().helper("true").map_or_else(|| "/bin/true".into(), PathBuf::into_os_string)
}

fn trial(stage: HelperStage) -> HelperRequest {
    let (scratch, caches) = ("/tmp".into(), Vec::new());
    let (group_bit, writes) = (GroupBit::Refused, WriteGrant::Withheld);
    let line = ConfinedLine { words: vec![find_true()], ..ConfinedLine::default() };
    HelperRequest { stage, scratch, caches, group_bit, writes, line }
}

fn try_full(bubblewrap: &Path, helper: &Path) -> io::Result<()> {
    let root = Path::new("/");
    // It has to exist; nothing but `true` could write there.
    let mounts = [Mount { at: "/tmp".into(), what: MountKind::Writable }];
    let stage = HelperStage::Init { expected: Expected::of(&mounts)?, memory: u64::MAX };
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
    let stage = HelperStage::Restricted { writable: vec![], hidden: vec![], sockets: Sockets::None };
    let request = trial(stage);
    run_true(&Launch {
        program: helper.into(),
        arguments: request.to_arguments(),
        contact: EndReporter::Helper,
        marked: Vec::new(),
        streams: StandardStreams::Together,
    })
}

struct DiscardedOutput;

impl Sink for DiscardedOutput {
    fn output(&mut self, _bytes: &[u8]) {}
    fn show(&mut self) {}
}

fn run_true(line: &Launch) -> io::Result<()> {
    let (never, _open) = pipe_with(PipeFlags::CLOEXEC)?;
    let tree = ProcessTree::start(line, Path::new("/"), environment::for_command(std::env::vars_os()))?;
    match watch(tree, &never, PROBE_TIME, &mut DiscardedOutput)?.how {
        ExitCause::Exited(0) => Ok(()),
        other => Err(io::Error::other(format!("`true` in it ended as {other:?}"))),
    }
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
