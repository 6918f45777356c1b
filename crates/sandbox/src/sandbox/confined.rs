//! A command line that runs inside the sandbox, and what to report and restore after it.

use std::ffi::OsString;
use std::path::PathBuf;

use super::links::Links;
use super::system::PlaceHolders;
use crate::git_guard::GitGuard;
use crate::process::{EndReporter, Launch, StandardStreams};

/// A program with arguments that run a command inside the sandbox. Keep it until the command has ended: it
/// keeps the place-holders in the roots.
#[derive(Debug)]
pub struct Confined {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    /// Where to start it, if not in the workspace's root, which a command may have closed to itself.
    pub directory: Option<PathBuf>,
    pub(super) contact: EndReporter,
    pub(super) links: Links,
    pub(super) held: Vec<String>,
    pub(super) protected: Vec<String>,
    pub(super) absent: Vec<String>,
    pub(super) told: Vec<String>,
    pub(super) git: GitGuard,
    pub(super) _place_holders: Vec<PlaceHolders>,
}

/// What the model must know about the sandbox after its command has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aftermath {
    /// Why the command could not write something that was granted.
    pub held: Vec<String>,
    /// What no command may change here, by paths below the roots, to explain a failure.
    pub protected: Vec<String>,
    /// What no command may create here, by paths below the roots.
    pub absent: Vec<String>,
    /// What was not as requested, or what we undid.
    pub told: Vec<String>,
}

impl Confined {
    pub(super) fn new(program: OsString, arguments: Vec<OsString>, contact: EndReporter) -> Self {
        let (directory, links, _place_holders) = (None, Links::default(), Vec::new());
        let (held, protected, absent, told) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let git = GitGuard::default();
        Self {
            program,
            arguments,
            directory,
            contact,
            links,
            held,
            protected,
            absent,
            told,
            git,
            _place_holders,
        }
    }

    /// After the command and everything it started are gone: restores what no mount could protect, undoes what
    /// would make git run something, and reports both. Blocks.
    pub fn aftermath(&self) -> Aftermath {
        let told = self.told.iter().cloned().chain(self.links.restore()).chain(self.git.after()).collect();
        Aftermath {
            held: self.held.clone(),
            protected: self.protected.clone(),
            absent: self.absent.clone(),
            told,
        }
    }

    pub fn line(&self) -> Launch {
        let (program, arguments) = (self.program.clone(), self.arguments.clone());
        let streams = StandardStreams::Together;
        Launch { program, arguments, contact: self.contact, marked: self.git.kept(), streams }
    }
}
