//! What the helper is told to hold its command with, and how it does: as the first process of a namespace, or
//! by giving up its own rights.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use attache_core::ports::tool::WriteGrant;

use super::super::reexec::{HelperRequest, SupervisorPipes, begin};
use super::capabilities::drop_capabilities;
use super::filter::{self, FilterRules, GroupBit, Neighbours, Sockets};
use super::machine_memory::prefer_in_shortage;
use super::usage::UsageLimits;
use super::verify::{self, Expected};
use super::{init, kernel_rules};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum HelperStage {
    /// The first process of a namespace that is set up already.
    Init {
        /// What has to be mounted.
        expected: Vec<Expected>,
        /// Bytes that all processes may have in memory together.
        memory: u64,
        group_bit: GroupBit,
    },
    /// A process of this machine that gives up what it does not need.
    Restricted { writable: Vec<PathBuf>, hidden: Vec<PathBuf>, sockets: Sockets, group_bit: GroupBit },
}

impl HelperStage {
    pub(in super::super) fn to_words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        let group_bit = match self {
            Self::Init { expected, memory, group_bit } => {
                words.extend(["--init".into(), memory.to_string().into()]);
                for one in expected {
                    words.push("--mounted".into());
                    words.extend(one.to_words());
                }
                group_bit
            }
            Self::Restricted { writable, hidden, sockets, group_bit } => {
                for (option, paths) in [("--write", writable), ("--hide", hidden)] {
                    words.extend(paths.iter().flat_map(|path| [option.into(), path.clone().into()]));
                }
                match sockets {
                    Sockets::Ordinary => words.push("--sockets".into()),
                    Sockets::None => {}
                }
                group_bit
            }
        };
        match group_bit {
            GroupBit::Needed => words.push("--group-bit".into()),
            GroupBit::Refused => {}
        }
        words
    }

    #[cfg(test)]
    pub(in super::super) fn examples() -> Vec<Self> {
        use super::verify::{FoundMount, Identity};
        let expected = vec![
            Expected { at: "--".into(), what: FoundMount::Writable(Identity { device: 1, inode: 2 }) },
            Expected { at: "/w".into(), what: FoundMount::Cover },
        ];
        let (writable, hidden) = (vec!["/w".into(), "--".into()], vec!["/h/.ssh".into()]);
        vec![
            Self::Init { expected, memory: 5, group_bit: GroupBit::Refused },
            Self::Restricted { writable, hidden, sockets: Sockets::Ordinary, group_bit: GroupBit::Needed },
        ]
    }
}

/// What was read so far of a stage's words.
#[derive(Debug)]
pub(in super::super) struct StageWords {
    writable: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    sockets: Sockets,
    memory: Option<u64>,
    expected: Vec<Expected>,
    group_bit: GroupBit,
}

impl Default for StageWords {
    fn default() -> Self {
        let (writable, hidden, sockets) = (Vec::new(), Vec::new(), Sockets::None);
        Self { writable, hidden, sockets, memory: None, expected: Vec::new(), group_bit: GroupBit::Refused }
    }
}

impl StageWords {
    /// `None` for what we never write ourselves.
    pub(in super::super) fn read(
        &mut self,
        option: &str,
        arguments: &mut dyn Iterator<Item = OsString>,
    ) -> Option<()> {
        match option {
            "--write" => self.writable.push(arguments.next()?.into()),
            "--hide" => self.hidden.push(arguments.next()?.into()),
            "--sockets" => self.sockets = Sockets::Ordinary,
            "--group-bit" => self.group_bit = GroupBit::Needed,
            "--init" => self.memory = Some(arguments.next()?.to_str()?.parse().ok()?),
            "--mounted" => {
                let what = arguments.next()?;
                self.expected.push(Expected::from_words(&what, arguments.next()?)?);
            }
            _ => return None,
        }
        Some(())
    }

    pub(in super::super) fn stage(self) -> HelperStage {
        let Self { writable, hidden, sockets, memory, expected, group_bit } = self;
        match memory {
            Some(memory) => HelperStage::Init { expected, memory, group_bit },
            None => HelperStage::Restricted { writable, hidden, sockets, group_bit },
        }
    }
}

/// Holds this process and becomes the command, or the first process beside it.
pub(in super::super) fn enter(request: &HelperRequest, contact: &SupervisorPipes) -> io::Result<ExitCode> {
    prefer_in_shortage();
    match &request.stage {
        HelperStage::Init { expected, memory, group_bit } => {
            verify::verify(expected)?;
            // Before the fork: what the command could do to the first process, it could do with that one's
            // rights.
            let (sockets, neighbours) = (Sockets::Ordinary, Neighbours::Unseen);
            let wanted = FilterRules { sockets, neighbours, group_bit: *group_bit };
            let filter = filter::program(wanted).map_err(io::Error::other)?;
            seccompiler::apply_filter(&filter).map_err(io::Error::other)?;
            let scratch = match request.writes {
                WriteGrant::Granted => None,
                WriteGrant::Withheld => Some(request.scratch.as_path()),
            };
            let usage = UsageLimits { memory: *memory, scratch };
            init::run(contact, &usage, || begin(request, contact, || Ok(())))
        }
        HelperStage::Restricted { writable, hidden, sockets, group_bit } => {
            drop_capabilities();
            kernel_rules::restrict(writable, hidden).map_err(io::Error::other)?;
            let (sockets, neighbours) = (*sockets, Neighbours::Visible);
            let wanted = FilterRules { sockets, neighbours, group_bit: *group_bit };
            let filter = filter::program(wanted).map_err(io::Error::other)?;
            let apply = move || seccompiler::apply_filter(&filter).map_err(io::Error::other);
            Err(begin(request, contact, apply))
        }
    }
}
