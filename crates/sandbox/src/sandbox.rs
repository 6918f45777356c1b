//! Holds commands by the means of the operating system: what they may write, see and reach. Decides no
//! permission.
//!
//! Full: bubblewrap builds namespaces, our own program is the first process inside and starts the command
//! behind a filter of system calls. Reduced: our own program gives up rights through Landlock and the filter,
//! then becomes the command. Which one this machine can do is found out once, by doing it. See
//! `docs/sandbox.md`.

mod bubblewrap;
mod confined;
mod directory_tree;
mod filter;
mod init;
mod kept_places;
mod kernel_rules;
mod led_to;
mod links;
mod listeners;
mod lost_writes;
mod own_program;
mod place_holders;
mod places;
mod plan;
mod policy;
mod probe;
mod protection;
mod reexec;
mod resources;
pub mod seatbelt;
mod usage;
mod verify;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use attache_core::ports::tool::{NetworkGrant, Site, WriteGrant};

use crate::git_guard::GitGuard;
use crate::limits::PLAN_TRIES;
use crate::process::EndReporter;
use crate::programs::Programs;

use bubblewrap::BubblewrapOptions;
use directory_tree::MachineTree;
use filter::Sockets;
use links::Links;
use place_holders::PlaceHolders;
use places::Followed;
use plan::Hidden;
use policy::Policy;
use protection::Protection;
use reexec::{ConfinedLine, HelperRequest, HelperStage};
use verify::Expected;

pub use confined::{Aftermath, Confined};
pub(crate) use directory_tree::is_place_holder_in;
pub use kept_places::{check_places, forget_places};
#[cfg(test)]
pub(crate) use kernel_rules::drop_capabilities;
pub use own_program::own_program;
pub use place_holders::remove_left_behind;
pub use reexec::run_if_asked;

/// How strongly commands are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A file system, processes and a network of their own.
    Full,
    /// Rights given up: nothing can be excepted from a writable directory, and processes of others are seen.
    Reduced,
    /// Not at all.
    None,
}

/// Why a level is out of reach on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    pub level: Level,
    pub reason: String,
    /// What to do about it.
    pub advice: String,
}

/// The sandbox of this machine.
#[derive(Clone, Debug)]
pub struct Sandbox {
    level: Level,
    /// Our own program, which `run_if_asked` makes a helper.
    helper: PathBuf,
    bubblewrap: PathBuf,
    shortfalls: Vec<Shortfall>,
    /// Bytes that all processes of one command may have in memory together.
    memory: u64,
}

/// What a sandbox is made for.
#[derive(Clone, Copy, Debug)]
enum Guest {
    Command,
    /// Is talked to, for days maybe.
    Server,
}

/// The sandbox of this machine, looked for when it is first needed.
pub type LazySandbox = Arc<LazyLock<Sandbox, Box<dyn FnOnce() -> Sandbox + Send>>>;

impl Sandbox {
    /// Commands run as they are. `helper` is a program that calls `run_if_asked` first.
    pub fn none(helper: PathBuf) -> Self {
        Self {
            level: Level::None,
            helper,
            bubblewrap: PathBuf::new(),
            shortfalls: Vec::new(),
            memory: u64::MAX,
        }
    }

    /// The best level that works here; starts a process in each. `helper` is a program that calls
    /// `run_if_asked` first.
    pub fn probe(helper: PathBuf) -> Self {
        probe::best(helper)
    }

    /// The same with this bubblewrap, for which the caller answers: it is started outside of any sandbox.
    pub fn probe_with(bubblewrap: PathBuf, helper: PathBuf) -> Self {
        probe::with(Some(bubblewrap), helper)
    }

    /// The reduced level, or none; for machines that shall be treated alike whatever is installed.
    pub fn probe_reduced(helper: PathBuf) -> Self {
        probe::reduced(helper, Vec::new())
    }

    /// The same with another limit of what all processes of one command may have in memory together.
    pub fn with_memory(self, bytes: u64) -> Self {
        Self { memory: bytes, ..self }
    }

    /// What `look` finds; the first who needs it waits.
    pub fn found_lazily_by(look: impl FnOnce() -> Self + Send + 'static) -> LazySandbox {
        Arc::new(LazyLock::new(Box::new(look)))
    }

    /// Our own program.
    pub fn helper(&self) -> &Path {
        &self.helper
    }

    /// Whether this session's commands could replace our own program, which is started outside of their
    /// sandbox.
    pub fn is_exposed(&self, site: &Site) -> bool {
        // What is closed is hidden, in a root, too; and some roots are never writable.
        let is_closed = || self.helper.starts_with(closed_directory(&site.workspace.scratch));
        let own = site.workspace.roots().chain(site.granted.iter());
        let writable = own.filter(|own| places::covers_private(own).is_none());
        match self.level {
            Level::Full => !is_closed() && Programs::new(None, writable).is_own(&self.helper),
            Level::Reduced => Programs::of(site).is_own(&self.helper),
            Level::None => false,
        }
    }

    pub fn level(&self) -> Level {
        self.level
    }

    /// Why it is not better, the best level first.
    pub fn shortfalls(&self) -> &[Shortfall] {
        &self.shortfalls
    }

    /// What no command can remove in a directory, as it is called there. Blocks: looks at the disk.
    pub fn held_below(&self, site: &Site, directory: &Path) -> io::Result<Vec<PathBuf>> {
        if self.level != Level::Full {
            return Ok(Vec::new());
        }
        let policy = Policy::of(site, NetworkGrant::Withheld, WriteGrant::Granted)?;
        Ok(Protection::of(&policy, &MachineTree).below(&Followed::of(directory)?.real))
    }

    /// The line that a tree of ours has to start to run `line` inside the sandbox of this site. Blocks: looks
    /// at the disk.
    pub fn confine(
        &self,
        site: &Site,
        network: NetworkGrant,
        writes: WriteGrant,
        line: Vec<OsString>,
    ) -> io::Result<Confined> {
        self.check_own_programs(site)?;
        let git = GitGuard::before(site, writes, self.level);
        let named = git.named();
        let line = ConfinedLine { words: line, ..ConfinedLine::default() };
        Ok(Confined { git, ..self.confine_unwatched(site, Guest::Command, network, writes, line, &named)? })
    }

    /// The same for a program that is talked to (`ProcessTree::start_talking`) and may run for days: it gets
    /// the variables of these names from its tree's environment, it keeps its network where it may not write,
    /// and nothing is undone after it, because its user works in the same directories meanwhile.
    pub fn confine_talking(
        &self,
        site: &Site,
        network: NetworkGrant,
        writes: WriteGrant,
        words: Vec<OsString>,
        kept: Vec<OsString>,
    ) -> io::Result<Confined> {
        self.check_own_programs(site)?;
        let line = ConfinedLine { words, kept };
        let roots: Vec<PathBuf> = site.workspace.roots().cloned().collect();
        let named = crate::git_guard::named_and_there(&roots);
        self.confine_unwatched(site, Guest::Server, network, writes, line, &named)
    }

    /// `named`: what else must stay as it is.
    fn confine_unwatched(
        &self,
        site: &Site,
        guest: Guest,
        network: NetworkGrant,
        writes: WriteGrant,
        line: ConfinedLine,
        named: &[PathBuf],
    ) -> io::Result<Confined> {
        let policy = |writes| {
            let policy = Policy::of(site, network, writes)?.with_protected(named);
            Ok::<_, io::Error>(match guest {
                Guest::Command => policy,
                Guest::Server => policy.of_server(network),
            })
        };
        Ok(match self.level {
            Level::Full => match (self.namespaces(&policy(writes)?, &line), writes) {
                (Err(error), WriteGrant::Granted) => {
                    // Without anything to be written there is nothing that could change on the way.
                    let mut confined = self.namespaces(&policy(WriteGrant::Withheld)?, &line)?;
                    confined.told.push(cautious(&error));
                    confined
                }
                (built, _) => built?,
            },
            Level::Reduced => self.restricted(&policy(writes)?, line),
            Level::None => {
                let mut words = line.words.into_iter();
                let program = words.next().unwrap_or_default();
                Confined::new(program, words.collect(), EndReporter::Direct)
            }
        })
    }

    /// What we start outside of the sandbox must not lie where commands could change it.
    fn check_own_programs(&self, site: &Site) -> io::Result<()> {
        let programs = Programs::of(site);
        if self.level == Level::Full && programs.is_own(&self.bubblewrap) {
            let text = format!(
                "{} lies in the workspace, where commands could change it; install bubblewrap elsewhere",
                self.bubblewrap.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        if self.is_exposed(site) {
            let text = format!(
                "attache's own program {} lies in the session's own directories, where commands could change it; \
                 install attache elsewhere",
                self.helper.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(())
    }

    /// What is read may change before it is mounted: then everything is read once more.
    fn namespaces(&self, policy: &Policy, line: &ConfinedLine) -> io::Result<Confined> {
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
        let stage = HelperStage::Init { expected: Expected::of(&mounts)?, memory: self.memory };
        let caches = policy.cache_names();
        let (scratch, group_bit) = (policy.scratch.clone(), policy.group_bit());
        let request =
            HelperRequest { stage, scratch, caches, group_bit, writes: policy.writes, line: line.clone() };
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
            ..Confined::new(self.bubblewrap.clone().into(), building.arguments(), EndReporter::Init)
        })
    }

    fn restricted(&self, policy: &Policy, line: ConfinedLine) -> Confined {
        let caches = policy.caches.iter().map(|cache| &cache.path);
        let writable = policy.writable.iter().chain(caches).chain([&policy.scratch]).cloned().collect();
        let sockets = match policy.network {
            NetworkGrant::Withheld => Sockets::None,
            NetworkGrant::Granted | NetworkGrant::GrantedByName => Sockets::Ordinary,
        };
        let stage = HelperStage::Restricted { writable, hidden: policy.hidden.clone(), sockets };
        let caches = policy.cache_names();
        let (scratch, group_bit) = (policy.scratch.clone(), policy.group_bit());
        let request = HelperRequest { stage, scratch, caches, group_bit, writes: policy.writes, line };
        Confined {
            directory: Some(policy.directory.clone()),
            held: policy.notes.iter().cloned().chain(policy.lost_writes.clone().all_held()).collect(),
            told: policy.told.clone(),
            ..Confined::new(self.helper.clone().into(), request.to_arguments(), EndReporter::Helper)
        }
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

/// Whether no command may write a directory, by its real path, whatever was granted.
pub(crate) fn is_always_read_only(real: &Path) -> bool {
    places::covers_private(real).is_some()
}

/// Beside the scratch directories: what belongs to no session and no sandboxed command reaches.
const CLOSED: &str = ".sandbox";

/// That directory, by the scratch directory of one session.
pub fn closed_directory(scratch: &Path) -> PathBuf {
    scratch.parent().unwrap_or(scratch).join(CLOSED)
}

/// For the model: why a command could not write.
pub fn cautious(error: &io::Error) -> String {
    format!("the command ran read-only, because no safe sandbox could be built: {error}")
}
