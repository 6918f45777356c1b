//! Holds commands by the means of the operating system: what they may write, see and reach. Decides no permission.
//!
//! Full: bubblewrap builds namespaces, our own program is the first process inside and starts the command behind a filter
//! of system calls. Reduced: our own program gives up rights through Landlock and the filter, then becomes the command.
//! Which one this machine can do is found out once, by doing it. See `docs/sandbox.md`.

mod bubblewrap;
mod filter;
mod init;
mod kernel_rules;
mod place_holders;
mod policy;
mod probe;
mod protection;
mod reexec;
mod resources;
pub mod seatbelt;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use attache_core::ports::tool::{NetworkGrant, Site, WriteGrant};

use crate::environment;
use crate::process::{Contact, Line};

use bubblewrap::Plan;
use filter::Sockets;
use place_holders::PlaceHolders;
use policy::Policy;
use protection::Protection;
use reexec::{Request, Stage};

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
}

/// The sandbox of this machine, looked for when it is first needed.
pub type Found = Arc<LazyLock<Sandbox, Box<dyn FnOnce() -> Sandbox + Send>>>;

/// A program with arguments that run a command inside the sandbox. Keep it until the command has ended: place-holders
/// in the roots last as long as it does.
#[derive(Debug)]
pub struct Confined {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    contact: Contact,
    _place_holders: Vec<PlaceHolders>,
}

/// Who starts what `Sandbox` has confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starter {
    /// This process, with a clean environment and pipes.
    Ourselves,
    /// Somebody with an environment and a terminal of their own.
    Another,
}

impl Sandbox {
    /// Commands run as they are.
    pub fn none() -> Self {
        Self {
            level: Level::None,
            helper: PathBuf::new(),
            bubblewrap: PathBuf::new(),
            shortfalls: Vec::new(),
        }
    }

    /// The best level that works here; starts a process in each. `helper` is a program that calls `run_if_asked` first.
    pub fn probe(helper: PathBuf) -> Self {
        probe::best(helper)
    }

    /// The reduced level, or none; for machines that shall be treated alike whatever is installed.
    pub fn probe_reduced(helper: PathBuf) -> Self {
        probe::reduced(helper, Vec::new())
    }

    /// What `look` finds; the first who needs it waits.
    pub fn found_by(look: impl FnOnce() -> Self + Send + 'static) -> Found {
        Arc::new(LazyLock::new(Box::new(look)))
    }

    pub fn level(&self) -> Level {
        self.level
    }

    /// Why it is not better, the best level first.
    pub fn shortfalls(&self) -> &[Shortfall] {
        &self.shortfalls
    }

    /// The line that another process (the terminal of an editor) has to start in any directory to run `line` inside the
    /// sandbox of this site. It cleans the environment by itself. Blocks: looks at the disk.
    pub fn confine_for_another(
        &self,
        site: &Site,
        network: NetworkGrant,
        writes: WriteGrant,
        line: Vec<OsString>,
    ) -> io::Result<Confined> {
        self.confine(site, network, writes, line, Starter::Another)
    }

    /// The same for a tree of our own.
    pub(crate) fn confine_for_us(
        &self,
        site: &Site,
        network: NetworkGrant,
        writes: WriteGrant,
        line: Vec<OsString>,
    ) -> io::Result<Confined> {
        self.confine(site, network, writes, line, Starter::Ourselves)
    }

    fn confine(
        &self,
        site: &Site,
        network: NetworkGrant,
        writes: WriteGrant,
        line: Vec<OsString>,
        starter: Starter,
    ) -> io::Result<Confined> {
        match self.level {
            Level::Full => self.namespaces(&Policy::of(site, network, writes)?, line, starter),
            Level::Reduced => Ok(self.restricted(&Policy::of(site, network, writes)?, line)),
            Level::None => {
                let mut words = line.into_iter();
                let program = words.next().unwrap_or_default();
                Ok(Confined {
                    program,
                    arguments: words.collect(),
                    contact: Contact::Direct,
                    _place_holders: vec![],
                })
            }
        }
    }

    fn namespaces(&self, policy: &Policy, line: Vec<OsString>, starter: Starter) -> io::Result<Confined> {
        let (locks, empty) = place_holders::prepare(&policy.scratch)?;
        let protection = Protection::of(policy);
        let mut held = Vec::new();
        for root in policy.writable.iter().rev() {
            let others = |path: &std::path::Path| {
                policy
                    .writable
                    .iter()
                    .any(|other| other.starts_with(root) && other != root && path.starts_with(other))
            };
            let own = protection
                .missing
                .iter()
                .filter(|missing| missing.path.starts_with(root) && !others(&missing.path));
            held.push(PlaceHolders::make(&locks, root, own.cloned())?);
        }
        let request = Request { stage: Stage::Init, scratch: policy.scratch.clone(), line };
        let environment = match starter {
            Starter::Ourselves => None,
            Starter::Another => {
                Some(environment::for_confined(std::env::vars_os(), &policy.scratch).collect())
            }
        };
        let plan = Plan {
            policy,
            protection: &protection,
            empty: &empty,
            helper: &self.helper,
            request: request.to_arguments(),
            environment,
        };
        Ok(Confined {
            program: self.bubblewrap.clone().into(),
            arguments: plan.arguments(),
            contact: Contact::Init,
            _place_holders: held,
        })
    }

    fn restricted(&self, policy: &Policy, line: Vec<OsString>) -> Confined {
        let writable = policy.writable.iter().chain([&policy.scratch]).cloned().collect();
        let sockets = match policy.network {
            NetworkGrant::Withheld => Sockets::None,
            NetworkGrant::Granted | NetworkGrant::GrantedByName => Sockets::Ordinary,
        };
        let stage = Stage::Restricted { writable, hidden: policy.hidden.clone(), sockets };
        let request = Request { stage, scratch: policy.scratch.clone(), line };
        Confined {
            program: self.helper.clone().into(),
            arguments: request.to_arguments(),
            contact: Contact::Helper,
            _place_holders: vec![],
        }
    }
}

impl Confined {
    pub(crate) fn line(&self) -> Line {
        Line { program: self.program.clone(), arguments: self.arguments.clone(), contact: self.contact }
    }
}
