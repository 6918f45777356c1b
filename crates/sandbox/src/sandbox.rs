//! Holds commands by the means of the operating system: what they may write, see and reach. Decides no
//! permission.
//!
//! How is the system's own: `linux` has two levels, `portable` has Seatbelt on macOS and nothing elsewhere.
//! Which level this machine can do is found out once, by doing it. See `docs/sandbox.md`.

mod confined;
mod directory_tree;
mod kept_places;
mod led_to;
mod links;
#[cfg(all(target_os = "linux", not(attache_portable)))]
mod linux;
mod lost_writes;
mod own_program;
mod places;
mod plan;
mod policy;
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
mod portable;
mod protection;
mod reexec;
mod resources;
mod trial;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use attache_core::ports::tool::{NetworkGrant, Site, WriteGrant};

use crate::git_guard::GitGuard;
use crate::process::EndReporter;
use crate::programs::Programs;

use directory_tree::MachineTree;
#[cfg(all(target_os = "linux", not(attache_portable)))]
use linux as system;
use places::Followed;
use policy::Policy;
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
use portable as system;
use protection::Protection;
use reexec::ConfinedLine;

pub use confined::{Aftermath, Confined};
pub(crate) use directory_tree::is_place_holder_in;
pub use kept_places::{check_places, forget_places};
pub use own_program::own_program;
pub use reexec::run_if_asked;
#[cfg(test)]
pub(crate) use system::drop_capabilities;
pub use system::{FULL_BY, REDUCED_BY, remove_left_behind};

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
    /// The system's program that builds it and starts the helper inside; empty where none is needed.
    builder: PathBuf,
    shortfalls: Vec<Shortfall>,
    /// Bytes that all processes of one command may have in memory together.
    #[cfg_attr(
        not(all(target_os = "linux", not(attache_portable))),
        allow(dead_code, reason = "nothing counts memory there")
    )]
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
        Self { level: Level::None, helper, builder: PathBuf::new(), shortfalls: Vec::new(), memory: u64::MAX }
    }

    /// The best level that works here; starts a process in each. `helper` is a program that calls
    /// `run_if_asked` first.
    pub fn probe(helper: PathBuf) -> Self {
        system::best(helper)
    }

    /// The same with this builder (bubblewrap; on macOS `sandbox-exec`), for which the caller answers: it is
    /// started outside of any sandbox.
    pub fn probe_with(builder: PathBuf, helper: PathBuf) -> Self {
        system::with(Some(builder), helper)
    }

    /// The reduced level, or none; for machines that shall be treated alike whatever is installed.
    pub fn probe_reduced(helper: PathBuf) -> Self {
        system::reduced(helper, Vec::new())
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
            Level::Reduced => self.restricted(&policy(writes)?, line)?,
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
        let is_used = self.level != Level::None && !self.builder.as_os_str().is_empty();
        if is_used && programs.is_own(&self.builder) {
            let text = format!(
                "{} lies in the workspace, where commands could change it; install it elsewhere",
                self.builder.display()
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
