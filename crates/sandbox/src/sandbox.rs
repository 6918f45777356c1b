//! Confines commands by means of the operating system: what they may write, see and reach. Decides no
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

/// How strongly we confine commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// They have their own file system, processes and network.
    Full,
    /// They give up rights: nothing inside a writable directory can be excluded, and they see foreign
    /// processes.
    Reduced,
    /// Not at all.
    None,
}

/// Why a level does not work on this machine.
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
    /// Our own program, which becomes a helper in `run_if_asked`.
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

/// What a sandbox is for.
#[derive(Clone, Copy, Debug)]
enum Guest {
    Command,
    /// A program that we talk to, perhaps for days.
    Server,
}

/// The sandbox of this machine; we look for it when it is first needed.
pub type LazySandbox = Arc<LazyLock<Sandbox, Box<dyn FnOnce() -> Sandbox + Send>>>;

impl Sandbox {
    /// Commands run without a sandbox. `helper` is a program that calls `run_if_asked` first.
    pub fn none(helper: PathBuf) -> Self {
        Self { level: Level::None, helper, builder: PathBuf::new(), shortfalls: Vec::new(), memory: u64::MAX }
    }

    /// The best level that works here; tries each by starting a process in it. `helper` is a program that calls
    /// `run_if_asked` first.
    pub fn probe(helper: PathBuf) -> Self {
        system::best(helper)
    }

    /// The same with this builder (bubblewrap; on macOS `sandbox-exec`), for which the caller answers: it is
    /// started outside of any sandbox.
    pub fn probe_with(builder: PathBuf, helper: PathBuf) -> Self {
        system::with(Some(builder), helper)
    }

    /// The reduced level, or none, to treat all machines alike whatever is installed.
    pub fn probe_reduced(helper: PathBuf) -> Self {
        system::reduced(helper, Vec::new())
    }

    /// The same with another limit on the memory of all processes of one command together.
    pub fn with_memory(self, bytes: u64) -> Self {
        Self { memory: bytes, ..self }
    }

    /// What `look` finds; the first caller that needs it waits.
    pub fn found_lazily_by(look: impl FnOnce() -> Self + Send + 'static) -> LazySandbox {
        Arc::new(LazyLock::new(Box::new(look)))
    }

    /// Our own program.
    pub fn helper(&self) -> &Path {
        &self.helper
    }

    /// Whether this session's commands could replace our own program, which we start outside of their sandbox.
    pub fn is_exposed(&self, site: &Site) -> bool {
        // The closed directory is hidden, even inside a root, and some roots are never writable.
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

    /// Why it is no better level, the best level first.
    pub fn shortfalls(&self) -> &[Shortfall] {
        &self.shortfalls
    }

    /// What no command can remove in a directory, by its name there. Blocks: looks at the disk.
    pub fn held_below(&self, site: &Site, directory: &Path) -> io::Result<Vec<PathBuf>> {
        if self.level != Level::Full {
            return Ok(Vec::new());
        }
        let policy = Policy::of(site, NetworkGrant::Withheld, WriteGrant::Granted)?;
        Ok(Protection::of(&policy, &MachineTree).below(&Followed::of(directory)?.real))
    }

    /// The line that one of our process trees must start to run `line` inside the sandbox of this site. Blocks:
    /// looks at the disk.
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

    /// The same for a program that we talk to (`ProcessTree::start_talking`) and that may run for days. It gets
    /// the variables of these names from its tree's environment, and keeps its network where it may not write.
    /// We undo nothing after it, because its user works in the same directories meanwhile.
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

    /// `named` lists what else must not change.
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
                    // If nothing is writable, nothing can change meanwhile.
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

    /// A program that we start outside of the sandbox must not lie where commands could change it.
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

/// Beside the scratch directories: files that belong to no session, where no sandboxed command can reach.
const CLOSED: &str = ".sandbox";

/// That directory, found from the scratch directory of one session.
pub fn closed_directory(scratch: &Path) -> PathBuf {
    scratch.parent().unwrap_or(scratch).join(CLOSED)
}

/// Tells the model why a command could not write.
pub fn cautious(error: &io::Error) -> String {
    format!("the command ran read-only, because no safe sandbox could be built: {error}")
}
