//! Our own program run again between the sandbox and the command: sets what only a process itself can set, then
//! starts the command. Reads its arguments and its pipes; nothing of the session's settings.
#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use attache_core::ports::tool::WriteGrant;
use seccompiler::BpfProgram;

use super::filter::{self, FilterRules, GroupBit, Neighbours, Sockets};
use super::usage::UsageLimits;
use super::verify::{self, Expected};
use super::{init, kernel_rules, resources};
use crate::environment;
use crate::process::{CommandReport, Pipes, guard};
use crate::relay;

/// The hidden first argument.
const FLAG: &str = "__sandboxed";

/// What a command must not be given, as the helper is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HelperRequest {
    pub(super) stage: HelperStage,
    /// Where temporary files and caches go.
    pub(super) scratch: PathBuf,
    /// Names of the user's caches that can be written.
    pub(super) caches: Vec<String>,
    pub(super) group_bit: GroupBit,
    /// Without the right to write, the scratch takes less, too.
    pub(super) writes: WriteGrant,
    pub(super) line: ConfinedLine,
}

/// A program with its arguments, and what it gets beside what every command gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConfinedLine {
    pub(super) words: Vec<OsString>,
    /// Variables that it gets whatever they are called; `environment::on_arrival` finds their values.
    pub(super) kept: Vec<OsString>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HelperStage {
    /// The first process of a namespace that is set up already.
    Init {
        /// What has to be mounted.
        expected: Vec<Expected>,
        /// Bytes that all processes may have in memory together.
        memory: u64,
    },
    /// A process of this machine that gives up what it does not need.
    Restricted { writable: Vec<PathBuf>, hidden: Vec<PathBuf>, sockets: Sockets },
}

impl HelperRequest {
    pub(super) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![FLAG.into(), "--scratch".into(), self.scratch.clone().into()];
        arguments.extend(self.caches.iter().flat_map(|name| ["--cache".into(), OsString::from(name)]));
        match self.group_bit {
            GroupBit::Needed => arguments.push("--group-bit".into()),
            GroupBit::Refused => {}
        }
        match self.writes {
            WriteGrant::Granted => {}
            WriteGrant::Withheld => arguments.push("--unasked".into()),
        }
        match &self.stage {
            HelperStage::Init { expected, memory } => {
                arguments.extend(["--init".into(), memory.to_string().into()]);
                for one in expected {
                    arguments.push("--mounted".into());
                    arguments.extend(one.to_words());
                }
            }
            HelperStage::Restricted { writable, hidden, sockets } => {
                for (option, paths) in [("--write", writable), ("--hide", hidden)] {
                    arguments.extend(paths.iter().flat_map(|path| [option.into(), path.clone().into()]));
                }
                match sockets {
                    Sockets::Ordinary => arguments.push("--sockets".into()),
                    Sockets::None => {}
                }
            }
        }
        arguments.extend(self.line.kept.iter().flat_map(|name| ["--keep".into(), name.clone()]));
        arguments.push("--".into());
        arguments.extend(self.line.words.iter().cloned());
        arguments
    }

    /// `None` for what we never write ourselves.
    fn from_arguments(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let (mut writable, mut hidden) = (Vec::new(), Vec::new());
        let (mut scratch, mut sockets, mut caches) = (None, Sockets::None, Vec::new());
        let (mut memory, mut expected, mut group_bit) = (None, Vec::new(), GroupBit::Refused);
        let mut writes = WriteGrant::Granted;
        let mut line = ConfinedLine::default();
        loop {
            let option = arguments.next()?;
            match option.to_str()? {
                "--scratch" => scratch = Some(arguments.next()?.into()),
                "--cache" => caches.push(arguments.next()?.into_string().ok()?),
                "--write" => writable.push(arguments.next()?.into()),
                "--hide" => hidden.push(arguments.next()?.into()),
                "--sockets" => sockets = Sockets::Ordinary,
                "--group-bit" => group_bit = GroupBit::Needed,
                "--unasked" => writes = WriteGrant::Withheld,
                "--init" => memory = Some(arguments.next()?.to_str()?.parse().ok()?),
                "--mounted" => {
                    let what = arguments.next()?;
                    expected.push(Expected::from_words(&what, arguments.next()?)?);
                }
                "--keep" => line.kept.push(arguments.next()?),
                "--" => break,
                _ => return None,
            }
        }
        let stage = match memory {
            Some(memory) => HelperStage::Init { expected, memory },
            None => HelperStage::Restricted { writable, hidden, sockets },
        };
        line.words = arguments.collect();
        (!line.words.is_empty()).then_some(Self { stage, scratch: scratch?, caches, group_bit, writes, line })
    }
}

/// Does the helper's work if this process was started for it; must be asked before anything else in `main`,
/// since it may replace the process. `None`: the process is an ordinary one.
pub fn run_if_asked() -> Option<ExitCode> {
    if let Some(code) = relay::run_if_asked() {
        return Some(code);
    }
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(FLAG)) {
        return None;
    }
    let (Some(request), Some(contact)) =
        (HelperRequest::from_arguments(arguments), SupervisorPipes::inherited())
    else {
        eprintln!("attache: {FLAG} is for attache itself");
        return Some(ExitCode::FAILURE);
    };
    let code = match enter(&request, &contact) {
        Ok(code) => code,
        Err(error) => {
            tell_failure(&contact, &error);
            ExitCode::FAILURE
        }
    };
    Some(code)
}

/// The pipes to the process that supervises the call.
#[derive(Debug)]
pub(super) struct SupervisorPipes {
    pub(super) lifeline: OwnedFd,
    pub(super) report: OwnedFd,
    output: OwnedFd,
    /// Where errors are told apart.
    error_output: Option<OwnedFd>,
}

impl SupervisorPipes {
    fn inherited() -> Option<Self> {
        let (numbers, errors) = Pipes::numbers(&std::env::var_os(crate::process::PIPES)?)?;
        // SAFETY: the process that started this one opened them for it, each another one, and nothing here has
        // opened anything yet.
        let taken = |number| unsafe { OwnedFd::from_raw_fd(number) };
        let [lifeline, report, output] = numbers.map(taken);
        Some(Self { lifeline, report, output, error_output: errors.map(taken) })
    }

    pub(super) fn tell(&self, report: CommandReport) {
        if let Err(error) = rustix::io::write(&self.report, &report.to_bytes()) {
            tracing::debug!(%error, "nobody to report to");
        }
    }
}

fn enter(request: &HelperRequest, contact: &SupervisorPipes) -> io::Result<ExitCode> {
    resources::limit(request.writes);
    match &request.stage {
        HelperStage::Init { expected, memory } => {
            verify::verify(expected)?;
            // Before the fork: what the command could do to the first process, it could do with that one's
            // rights.
            let wanted = FilterRules {
                sockets: Sockets::Ordinary,
                neighbours: Neighbours::Unseen,
                group_bit: request.group_bit,
            };
            let filter = filter::program(wanted).map_err(io::Error::other)?;
            seccompiler::apply_filter(&filter).map_err(io::Error::other)?;
            let scratch = match request.writes {
                WriteGrant::Granted => None,
                WriteGrant::Withheld => Some(request.scratch.as_path()),
            };
            let usage = UsageLimits { memory: *memory, scratch };
            init::run(contact, &usage, || begin(request, contact, None))
        }
        HelperStage::Restricted { writable, hidden, sockets } => {
            kernel_rules::drop_capabilities();
            kernel_rules::restrict(writable, hidden).map_err(io::Error::other)?;
            let wanted = FilterRules {
                sockets: *sockets,
                neighbours: Neighbours::Visible,
                group_bit: request.group_bit,
            };
            let filter = filter::program(wanted).map_err(io::Error::other)?;
            Err(begin(request, contact, Some(filter)))
        }
    }
}

/// Becomes the command, under a filter unless this process has one; returns only if that fails.
fn begin(request: &HelperRequest, contact: &SupervisorPipes, filter: Option<BpfProgram>) -> io::Error {
    match prepare(request, contact, filter) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn prepare(
    request: &HelperRequest,
    contact: &SupervisorPipes,
    filter: Option<BpfProgram>,
) -> io::Result<Command> {
    let ConfinedLine { words, kept } = &request.line;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env_clear().envs(environment::for_confined(
        std::env::vars_os(),
        &request.scratch,
        &request.caches,
    ));
    let get = |name: &OsStr| std::env::var_os(name);
    command.envs(kept.iter().filter_map(|name| Some((name, environment::on_arrival(name, get)?))));
    let errors = contact.error_output.as_ref().unwrap_or(&contact.output);
    command.stdout(contact.output.try_clone()?).stderr(errors.try_clone()?);
    let writes = request.writes;
    // SAFETY: runs in this process of one thread, right before it is replaced.
    unsafe {
        command.pre_exec(move || {
            guard::reset_signals();
            // Programs say that a file is too large instead of dying without a word.
            if writes == WriteGrant::Withheld {
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            }
            guard::close_on_exec_from(3);
            filter
                .as_ref()
                .map_or(Ok(()), |filter| seccompiler::apply_filter(filter).map_err(io::Error::other))
        });
    }
    Ok(command)
}

/// Where the supervisor reads it: what is at descriptor 2 now may be the command's output.
pub(super) fn tell_failure(contact: &SupervisorPipes, error: &io::Error) {
    let text = format!("the sandbox could not be entered: {error}\n");
    if let Err(unwritten) = io::stderr().write_all(text.as_bytes()) {
        tracing::debug!(%unwritten, "nobody reads why");
    }
    contact.tell(CommandReport::NotStarted);
}

/// Lets go of everything but the two pipes, so that the end of the output can be seen.
pub(super) fn release_all_but(contact: &SupervisorPipes) -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    let errors = contact.error_output.as_ref().map(AsRawFd::as_raw_fd);
    for released in [0, 1, 2, contact.output.as_raw_fd()].into_iter().chain(errors) {
        // SAFETY: a plain system call; none of these is used by this process after this.
        if unsafe { libc::dup2(null.as_raw_fd(), released) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::directory_tree::Identity;
    use super::super::verify::FoundMount;
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let words: Vec<OsString> = ["bash", "-c", "-- --init"].map(OsString::from).to_vec();
        let plain = ConfinedLine { words, ..ConfinedLine::default() };
        let keeping = ConfinedLine { kept: vec!["--".into(), "A".into()], ..plain.clone() };
        let restricted = HelperStage::Restricted {
            writable: vec!["/w".into(), "--".into()],
            hidden: vec!["/h/.ssh".into()],
            sockets: Sockets::Ordinary,
        };
        let identity = Identity { device: 1, inode: 2 };
        let expected = vec![
            Expected { at: "--".into(), what: FoundMount::Writable(identity) },
            Expected { at: "/w".into(), what: FoundMount::Cover },
        ];
        let stages = [HelperStage::Init { expected, memory: 5 }, restricted];
        let others = [(GroupBit::Refused, plain), (GroupBit::Needed, keeping)];
        for (stage, (group_bit, line)) in stages.into_iter().zip(others) {
            let (scratch, caches) = ("/s".into(), vec!["pip".into()]);
            let writes = match group_bit {
                GroupBit::Refused => WriteGrant::Withheld,
                GroupBit::Needed => WriteGrant::Granted,
            };
            let request = HelperRequest { stage, scratch, caches, group_bit, writes, line };
            let arguments = request.to_arguments();
            assert_eq!(arguments[0], FLAG);
            assert_eq!(HelperRequest::from_arguments(arguments.into_iter().skip(1)), Some(request));
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for wrong in [
            &["--init", "1"][..],
            &["--scratch", "/s", "--"],
            &["--init", "1", "--", "ls"],
            &["--what", "--", "ls"],
        ] {
            assert_eq!(HelperRequest::from_arguments(wrong.iter().map(OsString::from)), None, "{wrong:?}");
        }
    }
}
