//! Our own program, run again between the sandbox and the command: makes the settings that only the process
//! itself can make, then starts the command. Reads its arguments and its pipes, but none of the session's
//! settings.
#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use attache_core::ports::tool::WriteGrant;

use super::policy::Policy;
use super::resources;
use super::system::{HelperStage, StageWords, enter};
use crate::environment;
use crate::process::{CommandReport, Pipes, guard};
use crate::relay;

/// The hidden first argument.
const FLAG: &str = "__sandboxed";

/// What the command must not get, for the helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HelperRequest {
    pub(super) stage: HelperStage,
    /// The directory for temporary files and caches.
    pub(super) scratch: PathBuf,
    /// Names of the user's caches that are writable.
    pub(super) caches: Vec<String>,
    /// Without the right to write, the scratch takes less, too.
    pub(super) writes: WriteGrant,
    pub(super) line: ConfinedLine,
}

/// A program with its arguments, and what it gets in addition to every command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConfinedLine {
    pub(super) words: Vec<OsString>,
    /// Variables that it gets whatever their names are; `environment::on_arrival` finds their values.
    pub(super) kept: Vec<OsString>,
}

impl HelperRequest {
    pub(super) fn of(policy: &Policy, stage: HelperStage, line: ConfinedLine) -> Self {
        let (scratch, caches) = (policy.scratch.clone(), policy.cache_names());
        Self { stage, scratch, caches, writes: policy.writes, line }
    }

    pub(super) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![FLAG.into(), "--scratch".into(), self.scratch.clone().into()];
        arguments.extend(self.caches.iter().flat_map(|name| ["--cache".into(), OsString::from(name)]));
        match self.writes {
            WriteGrant::Granted => {}
            WriteGrant::Withheld => arguments.push("--unasked".into()),
        }
        arguments.extend(self.stage.to_words());
        arguments.extend(self.line.kept.iter().flat_map(|name| ["--keep".into(), name.clone()]));
        arguments.push("--".into());
        arguments.extend(self.line.words.iter().cloned());
        arguments
    }

    /// `None` for arguments that we never write ourselves.
    fn from_arguments(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let (mut scratch, mut caches, mut stage) = (None, Vec::new(), StageWords::default());
        let (mut writes, mut line) = (WriteGrant::Granted, ConfinedLine::default());
        loop {
            let option = arguments.next()?;
            match option.to_str()? {
                "--scratch" => scratch = Some(arguments.next()?.into()),
                "--cache" => caches.push(arguments.next()?.into_string().ok()?),
                "--unasked" => writes = WriteGrant::Withheld,
                "--keep" => line.kept.push(arguments.next()?),
                "--" => break,
                option => stage.read(option, &mut arguments)?,
            }
        }
        let stage = stage.stage();
        line.words = arguments.collect();
        (!line.words.is_empty()).then_some(Self { stage, scratch: scratch?, caches, writes, line })
    }
}

/// Does the helper's work if this process was started for it. `main` must call it before anything else, because
/// it may replace the process. `None` if the process is an ordinary one.
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
    resources::limit(request.writes);
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
    #[cfg_attr(
        not(all(target_os = "linux", not(attache_portable))),
        allow(dead_code, reason = "the guard alone ends a tree there")
    )]
    pub(super) lifeline: OwnedFd,
    pub(super) report: OwnedFd,
    pub(super) output: OwnedFd,
    /// Where errors are told apart.
    pub(super) error_output: Option<OwnedFd>,
}

impl SupervisorPipes {
    fn inherited() -> Option<Self> {
        let (numbers, errors) = Pipes::numbers(&std::env::var_os(crate::process::PIPES)?)?;
        // SAFETY: the process that started this one opened them for it, each a different one, and nothing here
        // has opened anything yet.
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

/// Becomes the command, after `last` in the process that does; returns only if that fails.
pub(super) fn begin(
    request: &HelperRequest,
    contact: &SupervisorPipes,
    last: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) -> io::Error {
    match prepare(request, contact, last) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn prepare(
    request: &HelperRequest,
    contact: &SupervisorPipes,
    mut last: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
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
    // SAFETY: runs in this process of one thread, right before the command replaces it.
    unsafe {
        command.pre_exec(move || {
            guard::reset_signals();
            // This makes programs report that a file is too large instead of dying without a message.
            if writes == WriteGrant::Withheld {
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            }
            guard::close_on_exec_from(3);
            last()
        });
    }
    Ok(command)
}

/// Writes to the pipe that the supervisor reads: descriptor 2 may be the command's output now.
pub(super) fn tell_failure(contact: &SupervisorPipes, error: &io::Error) {
    let text = format!("the sandbox could not be entered: {error}\n");
    if let Err(unwritten) = io::stderr().write_all(text.as_bytes()) {
        tracing::debug!(%unwritten, "nobody reads why");
    }
    contact.tell(CommandReport::NotStarted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let words: Vec<OsString> = ["bash", "-c", "-- --init"].map(OsString::from).to_vec();
        let plain = ConfinedLine { words, ..ConfinedLine::default() };
        let keeping = ConfinedLine { kept: vec!["--".into(), "A".into()], ..plain.clone() };
        let others = [(WriteGrant::Withheld, plain), (WriteGrant::Granted, keeping)];
        for (stage, (writes, line)) in HelperStage::examples().into_iter().zip(others.into_iter().cycle()) {
            let (scratch, caches) = ("/s".into(), vec!["pip".into()]);
            let request = HelperRequest { stage, scratch, caches, writes, line };
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
            &["--keep", "A", "--", "ls"],
            &["--scratch", "/s", "--what", "--", "ls"],
        ] {
            assert_eq!(HelperRequest::from_arguments(wrong.iter().map(OsString::from)), None, "{wrong:?}");
        }
    }
}
