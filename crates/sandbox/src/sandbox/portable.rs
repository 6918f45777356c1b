//! How other systems hold commands: macOS by Seatbelt, at the reduced level because nobody has proved more
//! there; the others not at all. The rules come from the same plan as the mounts of Linux.

#[cfg(all(test, target_os = "linux"))]
#[path = "linux/capabilities.rs"]
mod capabilities;
mod seatbelt;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::directory_tree::MachineTree;
use super::links::Links;
use super::plan::{self, Hidden};
use super::policy::Policy;
use super::protection::Protection;
use super::reexec::{ConfinedLine, HelperRequest, SupervisorPipes, begin};
use super::resources::physical_memory;
use super::trial::{run_true, trial};
use super::{Confined, Level, Sandbox, Shortfall};
use crate::process::{EndReporter, Launch, StandardStreams};
use crate::programs::Programs;

#[cfg(all(test, target_os = "linux"))]
pub(crate) use capabilities::drop_capabilities;
use seatbelt::{ProfilePlan, profile};

/// Tests run as an ordinary user there.
#[cfg(all(test, not(target_os = "linux")))]
pub(crate) fn drop_capabilities() {}

/// What makes the full level.
pub const FULL_BY: &str = "nothing on this system";

/// What makes the reduced one.
pub const REDUCED_BY: &str = "Seatbelt (sandbox-exec)";

const ONLY_LINUX: &str = "the full sandbox is made of what only Linux has (namespaces, seccomp)";
const ELSEWHERE: &str =
    "work with attache in a Linux virtual machine or container where commands shall be held";
const NO_SEATBELT: &str = "there is no sandbox-exec where only root can write";

pub(super) fn best(helper: PathBuf) -> Sandbox {
    with(Programs::of_machine().helper("sandbox-exec"), helper)
}

pub(super) fn with(seatbelt: Option<PathBuf>, helper: PathBuf) -> Sandbox {
    let shortfall =
        Shortfall { level: Level::Full, reason: ONLY_LINUX.to_owned(), advice: ELSEWHERE.to_owned() };
    held_by(seatbelt, helper, vec![shortfall])
}

pub(super) fn reduced(helper: PathBuf, shortfalls: Vec<Shortfall>) -> Sandbox {
    held_by(Programs::of_machine().helper("sandbox-exec"), helper, shortfalls)
}

fn held_by(seatbelt: Option<PathBuf>, helper: PathBuf, mut shortfalls: Vec<Shortfall>) -> Sandbox {
    let tried = match seatbelt {
        Some(seatbelt) => try_seatbelt(&seatbelt, &helper).map(|()| seatbelt),
        None => Err(io::Error::new(io::ErrorKind::NotFound, NO_SEATBELT)),
    };
    match tried {
        Ok(builder) => Sandbox { level: Level::Reduced, builder, shortfalls, ..Sandbox::none(helper) },
        Err(error) => {
            let (reason, advice) = (error.to_string(), ELSEWHERE.to_owned());
            shortfalls.push(Shortfall { level: Level::Reduced, reason, advice });
            Sandbox { level: Level::None, shortfalls, ..Sandbox::none(helper) }
        }
    }
}

/// Commands and all their rules in the words of the language, tried with the least of both.
fn try_seatbelt(seatbelt: &Path, helper: &Path) -> io::Result<()> {
    let rules = profile(&ProfilePlan {
        mounts: &[],
        protection: &Protection::default(),
        unprotected: &[],
        network: attache_core::ports::tool::NetworkGrant::Withheld,
    })?;
    let arguments = arguments(rules, helper, trial(HelperStage).to_arguments());
    let (program, contact) = (seatbelt.into(), EndReporter::Helper);
    run_true(&Launch { program, arguments, contact, marked: Vec::new(), streams: StandardStreams::Together })
}

fn arguments(rules: String, helper: &Path, request: Vec<OsString>) -> Vec<OsString> {
    let before = [OsString::from("-p"), rules.into(), helper.into()];
    before.into_iter().chain(request).collect()
}

impl Sandbox {
    /// No `Sandbox` of such a system has that level.
    pub(super) fn namespaces(&self, _policy: &Policy, _line: &ConfinedLine) -> io::Result<Confined> {
        Err(io::Error::new(io::ErrorKind::Unsupported, ONLY_LINUX))
    }

    pub(super) fn restricted(&self, policy: &Policy, line: ConfinedLine) -> io::Result<Confined> {
        let protection = Protection::of(policy, &MachineTree);
        let hidden: Vec<Hidden> = policy.hidden.iter().map(|path| Hidden::of(path)).collect();
        let mounts = plan::plan(policy, &protection, &hidden);
        let caches = policy.caches.iter().map(|cache| cache.path.clone());
        let unprotected: Vec<PathBuf> = caches.chain([policy.scratch.clone()]).collect();
        let rules = profile(&ProfilePlan {
            mounts: &mounts,
            protection: &protection,
            unprotected: &unprotected,
            network: policy.network,
        })?;
        let request = HelperRequest::of(policy, HelperStage, line).to_arguments();
        let arguments = arguments(rules, &self.helper, request);
        Ok(Confined {
            directory: Some(policy.directory.clone()),
            links: Links::of(&protection.links),
            held: policy.notes.iter().cloned().chain(policy.lost_writes.clone().all_held()).collect(),
            protected: protection.shown_below(&policy.writable),
            absent: protection.missing_below(&policy.writable),
            told: policy.told.clone(),
            ..Confined::new(self.builder.clone().into(), arguments, EndReporter::Helper)
        })
    }
}

/// What the helper is told beside its line: nothing, since it is held already when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HelperStage;

impl HelperStage {
    pub(super) fn to_words(self) -> Vec<OsString> {
        Vec::new()
    }

    #[cfg(test)]
    pub(super) fn examples() -> Vec<Self> {
        vec![Self, Self]
    }
}

#[derive(Debug, Default)]
pub(super) struct StageWords;

impl StageWords {
    /// There are none.
    pub(super) fn read(
        &mut self,
        _option: &str,
        _arguments: &mut dyn Iterator<Item = OsString>,
    ) -> Option<()> {
        None
    }

    pub(super) fn stage(self) -> HelperStage {
        HelperStage
    }
}

/// Becomes the command.
pub(super) fn enter(request: &HelperRequest, contact: &SupervisorPipes) -> io::Result<ExitCode> {
    Err(begin(request, contact, || Ok(())))
}

/// A rule holds a name without anything in its place.
#[derive(Debug)]
pub(super) enum PlaceHolders {}

/// There are none to be left behind.
pub fn remove_left_behind(_scratch: &Path) {}

pub(super) fn machine_memory() -> Option<u64> {
    physical_memory()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use attache_core::ids::SessionId;
    use attache_core::ports::tool::{NetworkGrant, Site, Workspace, WriteGrant};

    use super::*;

    /// Fails unless it is given a profile, as the real one does, and holds nothing.
    const SEATBELT: &str = "#!/bin/sh\n[ \"$1\" = -p ] || exit 64\ncase \"$2\" in \"(version 1)\"*) ;; *) exit 65;; esac\nshift 2\nexec \"$@\"\n";

    fn program(place: &Path, name: &str, text: &str) -> PathBuf {
        let path = place.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_system_without_seatbelt_holds_nothing_and_says_why() {
        let sandbox = with(None, "/bin/true".into());
        assert_eq!(sandbox.level(), Level::None);
        let told: Vec<&str> = sandbox.shortfalls().iter().map(|one| one.reason.as_str()).collect();
        assert_eq!(told, [ONLY_LINUX, NO_SEATBELT]);
    }

    #[test]
    fn a_seatbelt_that_does_not_work_is_none() {
        let place = tempfile::tempdir().unwrap();
        let broken = program(place.path(), "sandbox-exec", "#!/bin/sh\nexit 71\n");
        let sandbox = with(Some(broken), "/bin/true".into());
        assert_eq!(sandbox.level(), Level::None);
        assert_eq!(sandbox.shortfalls().len(), 2);
    }

    #[test]
    fn one_that_takes_the_profile_is_the_reduced_level() {
        let place = tempfile::tempdir().unwrap();
        let seatbelt = program(place.path(), "sandbox-exec", SEATBELT);
        let helper = program(place.path(), "helper", "#!/bin/sh\n[ \"$1\" = __sandboxed ]\n");
        let sandbox = with(Some(seatbelt), helper);
        assert_eq!(sandbox.level(), Level::Reduced, "{:?}", sandbox.shortfalls());
    }

    /// A session with a root and a scratch below `base`.
    fn site(base: &Path) -> Site {
        let root = base.join("root");
        std::fs::create_dir(&root).unwrap();
        Site::of_roots(Arc::new(Workspace {
            session_id: SessionId::new("ses_1"),
            root,
            additional: vec![],
            scratch: base.join("scratches/ses_1"),
            guarded: Default::default(),
            skills: Default::default(),
        }))
    }

    fn held(base: &Path, writes: WriteGrant) -> Launch {
        let seatbelt = program(base, "sandbox-exec", SEATBELT);
        let (level, helper) = (Level::Reduced, base.join("attache"));
        let sandbox = Sandbox { level, builder: seatbelt, ..Sandbox::none(helper) };
        let line = vec!["sh".into(), "-c".into(), "true".into()];
        sandbox.confine(&site(base), NetworkGrant::Withheld, writes, line).unwrap().line()
    }

    #[test]
    fn a_command_is_started_behind_a_profile_of_its_session() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let Launch { program, arguments, contact, .. } = held(&base, WriteGrant::Granted);
        assert_eq!(
            (Path::new(&program), contact),
            (base.join("sandbox-exec").as_path(), EndReporter::Helper)
        );
        assert_eq!((&arguments[0], &arguments[2]), (&"-p".into(), &base.join("attache").into()));
        assert_eq!(arguments[arguments.len() - 4..], ["--", "sh", "-c", "true"].map(OsString::from));
        let rules = arguments[1].to_str().unwrap();
        for place in ["root", "scratches/ses_1"] {
            let rule = format!("(allow file-read* file-write* (subpath \"{}\"))", base.join(place).display());
            assert!(rules.contains(&rule), "{rules}");
        }
        // Names that must not come into being in the root.
        assert!(rules.contains("\\\\.[mM][cC][pP]\\\\.[jJ][sS][oO][nN](/|$)"), "{rules}");
        assert!(rules.contains("(deny network*)"), "{rules}");
    }

    #[test]
    fn a_command_that_may_write_nothing_has_its_scratch_alone() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let rules = held(&base, WriteGrant::Withheld).arguments[1].to_str().unwrap().to_owned();
        let allowed: Vec<&str> =
            rules.lines().filter(|line| line.contains("subpath") && line.contains("allow")).collect();
        assert!(
            !allowed.is_empty() && allowed.iter().all(|line| line.contains("scratches/ses_1")),
            "{rules}"
        );
    }
}
