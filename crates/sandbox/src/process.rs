//! The only place that starts processes: each as a tree under its own guard. Knows no tool.
//!
//! Between us and the command is a small process, the guard (`process/guard.rs`). Whatever the command starts
//! and abandons becomes the guard's child, so we can find and end the whole tree; if we die, the guard ends it.
//! In a sandbox the first process inside is ours, too (`sandbox/init.rs`): it talks to us over its own pipes.

pub mod guard;
mod report;
mod watch;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::environment;
use crate::limits::ERROR_BYTES;
use crate::platform::pipe;

pub(crate) use guard::MARK;
pub(crate) use report::{CommandReport, PIPES, Pipes};
use watch::OutputStream;
pub use watch::{CommandEnd, ExitCause, Gone, Sink, TimeLimits, watch, watch_with};

/// A program with its arguments, and which process reports how the command in it ended.
#[derive(Clone, Debug)]
pub struct Launch {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub contact: EndReporter,
    /// Files that the guard holds open, and marks when nothing of the tree is left, even if we are gone by
    /// then.
    pub marked: Vec<Arc<File>>,
    pub streams: StandardStreams,
}

/// The standard input, output and error of a command.
#[derive(Clone, Debug, Default)]
pub enum StandardStreams {
    /// An empty input; output and errors in one stream, in the order they were written.
    #[default]
    Together,
    /// This input from its beginning; output and errors in separate streams.
    Apart { input: Arc<File> },
}

/// Which process tells the guard how the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReporter {
    /// The guard itself.
    Direct,
    /// Our helper, which becomes the command: it reports only a failure to start it.
    Helper,
    /// Our helper as the first process of a namespace: it reports everything, and receives the request to end.
    Init,
}

/// A running command and everything it started.
#[derive(Debug)]
pub struct ProcessTree {
    /// Taken once we have waited for the guard.
    guard: Option<Child>,
    /// Standard output, and standard error in the order they were written unless that has its own pipe. Does
    /// not block.
    output: File,
    /// Standard error, if it has its own pipe. Does not block.
    error_output: Option<File>,
    /// A byte asks the tree to end; closing it kills the tree. If we die, the kernel closes it.
    lifeline: Option<File>,
    /// The same for the first process of a namespace, which alone can ask everything inside to end.
    inner_lifeline: Option<File>,
    /// Reports how the command ended, and closes when nothing of the tree is left.
    report: File,
    /// The processes between us and the command write here why they could not start it. Does not block.
    errors: Option<File>,
}

/// Our ends of the standard streams of a program that we talk to. None of them blocks.
#[derive(Debug)]
pub struct TalkPipes {
    pub input: OwnedFd,
    pub output: OwnedFd,
    pub errors: OwnedFd,
}

fn wiring(
    line: &Launch,
    inherited: Option<[RawFd; report::PIPE_COUNT]>,
    lifeline: &OwnedFd,
    report: &OwnedFd,
) -> guard::Wiring {
    guard::Wiring {
        lifeline: lifeline.as_raw_fd(),
        report: report.as_raw_fd(),
        inherited,
        reporter: match line.contact {
            EndReporter::Direct | EndReporter::Helper => guard::Reporter::Guard,
            EndReporter::Init => guard::Reporter::Inside,
        },
        marked: std::array::from_fn(|at| line.marked.get(at).map_or(-1, |file| file.as_raw_fd())),
    }
}

/// The program that builds a sandbox is not inside yet, so it gets none of the inner program's settings.
fn command_of(
    line: &Launch,
    directory: &Path,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Command {
    let mut command = Command::new(&line.program);
    command.args(&line.arguments).current_dir(directory).env_clear();
    match line.contact {
        EndReporter::Direct => command.envs(environment),
        EndReporter::Helper | EndReporter::Init => command.envs(environment::for_builder(environment)),
    };
    command
}

impl ProcessTree {
    /// Starts a program in `directory`; it inherits nothing but its standard streams.
    pub fn start(
        line: &Launch,
        directory: &Path,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        let (output, output_end) = pipe()?;
        let (input, error_output) = match &line.streams {
            StandardStreams::Together => (Stdio::null(), None),
            StandardStreams::Apart { input } => {
                let (read, write) = pipe()?;
                set_nonblocking(&read)?;
                (input.try_clone()?.into(), Some((read, write)))
            }
        };
        let error_end = error_output.as_ref().map(|(_, end)| end);
        let (lifeline_end, lifeline) = pipe()?;
        let (inner_lifeline_end, inner_lifeline) = pipe()?;
        let (report, report_end) = pipe()?;
        let (errors, errors_end) = pipe()?;
        set_nonblocking(&output)?;
        set_nonblocking(&errors)?;
        let mut command = command_of(line, directory, environment);
        command.stdin(input);
        let inherited = match line.contact {
            EndReporter::Direct => {
                let errors = error_end.unwrap_or(&output_end);
                command.stdout(output_end.try_clone()?).stderr(errors.try_clone()?);
                None
            }
            // A foreign process in between would hold the output open until it ends, so only our helper gets it
            // and passes it on.
            EndReporter::Helper | EndReporter::Init => {
                command.stdout(errors_end.try_clone()?).stderr(errors_end);
                let pipes = Pipes {
                    lifeline: &inner_lifeline_end,
                    report: &report_end,
                    output: &output_end,
                    error_output: error_end,
                };
                command.env(PIPES, pipes.to_text());
                Some(pipes.descriptors())
            }
        };
        guard::install(&mut command, wiring(line, inherited, &lifeline_end, &report_end));
        let guard = command.spawn()?;
        // `command` holds our copies of the output's write end until here; with them the output would never
        // end.
        drop(command);
        Ok(Self {
            guard: Some(guard),
            output: output.into(),
            error_output: error_output.map(|(read, _)| read.into()),
            lifeline: Some(lifeline.into()),
            inner_lifeline: (line.contact == EndReporter::Init).then(|| inner_lifeline.into()),
            report: report.into(),
            errors: (line.contact != EndReporter::Direct).then(|| errors.into()),
        })
    }

    /// Starts a program and returns its standard streams to talk over, whatever its line says about them. The
    /// tree itself then has no output: `watch` only waits for its end.
    pub fn start_talking(
        line: &Launch,
        directory: &Path,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> io::Result<(Self, TalkPipes)> {
        let (input_end, input) = pipe()?;
        let (ended, _) = pipe()?;
        set_nonblocking(&input)?;
        let streams = StandardStreams::Apart { input: Arc::new(input_end.into()) };
        let mut tree = Self::start(&Launch { streams, ..line.clone() }, directory, environment)?;
        let output = std::mem::replace(&mut tree.output, ended.into()).into();
        let errors =
            tree.error_output.take().ok_or_else(|| io::Error::other("its errors are not told apart"))?;
        Ok((tree, TalkPipes { input, output, errors: errors.into() }))
    }

    /// Asks everything to end.
    fn terminate(&mut self) {
        if let Some(lifeline) = self.inner_lifeline.as_mut().or(self.lifeline.as_mut())
            && let Err(error) = lifeline.write_all(b"T")
        {
            // The guard is gone, and with it the command; the report will say so, too.
            tracing::debug!(%error, "no guard to tell");
        }
    }

    fn kill(&mut self) {
        self.inner_lifeline = None;
        self.lifeline = None;
    }

    /// Waits for a guard that has nothing left to do and exits.
    fn finish(mut self) -> io::Result<()> {
        match self.guard.take() {
            Some(mut guard) => guard.wait().map(drop),
            None => Ok(()),
        }
    }

    /// One read of an output: `None` if there is nothing to read now, 0 at its end.
    fn read_output(&mut self, stream: OutputStream, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let output = match (stream, &mut self.error_output) {
            (OutputStream::Output, _) => &mut self.output,
            (OutputStream::Errors, Some(errors)) => errors,
            (OutputStream::Errors, None) => return Ok(Some(0)),
        };
        match output.read(buffer) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next report about the command, or `None` if the whole tree is gone.
    fn read_report(&mut self) -> io::Result<Option<CommandReport>> {
        let mut record = [0; 4];
        match self.report.read_exact(&mut record) {
            Ok(()) => Ok(Some(CommandReport::from_bytes(record))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a process other than the guard has to report the start.
    fn needs_word_of_start(&self) -> bool {
        self.inner_lifeline.is_some()
    }

    /// Why the command did not start, as far as a process reported it.
    fn start_error(&mut self) -> io::Error {
        let mut text = vec![0; ERROR_BYTES];
        let length = match &mut self.errors {
            Some(errors) => errors.read(&mut text).unwrap_or(0),
            None => 0,
        };
        match String::from_utf8_lossy(&text[..length]).trim() {
            "" => io::Error::other("the sandbox ended before the command began"),
            text => io::Error::other(text.to_owned()),
        }
    }
}

impl Drop for ProcessTree {
    /// Whatever happens to the call, kills the tree and waits for the guard, so that no process and no zombie
    /// is left.
    fn drop(&mut self) {
        self.kill();
        let Some(mut guard) = self.guard.take() else { return };
        // An unkillable child (a hung disk) would block the caller, so another thread waits.
        let waiting = std::thread::Builder::new().name("guard-wait".to_owned()).spawn(move || guard.wait());
        if let Err(error) = waiting {
            tracing::warn!(%error, "a guard could not be waited for");
        }
    }
}

fn set_nonblocking(pipe: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(pipe)?;
    Ok(rustix::fs::fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_builds_a_sandbox_loads_nothing_that_its_guest_names() {
        let names = |contact: EndReporter| -> Vec<OsString> {
            let line = Launch {
                program: "/usr/bin/bwrap".into(),
                arguments: Vec::new(),
                contact,
                marked: Vec::new(),
                streams: StandardStreams::Together,
            };
            let given = [("LD_PRELOAD", "/w/evil.so"), ("PATH", "/usr/bin")];
            let given = given.into_iter().map(|(name, value)| (name.into(), value.into()));
            let command = command_of(&line, Path::new("/"), given);
            command.get_envs().map(|(name, _)| name.to_owned()).collect()
        };
        for contact in [EndReporter::Helper, EndReporter::Init] {
            let names = names(contact);
            assert!(names.contains(&"PATH".into()) && !names.contains(&"LD_PRELOAD".into()), "{names:?}");
        }
        assert!(names(EndReporter::Direct).contains(&"LD_PRELOAD".into()), "nothing is built");
    }

    #[derive(Default)]
    struct Collected(Vec<u8>);

    impl Sink for Collected {
        fn output(&mut self, bytes: &[u8]) {
            self.0.extend(bytes);
        }
        fn show(&mut self) {}
    }

    fn started(script: &str) -> ProcessTree {
        let line = Launch {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            contact: EndReporter::Direct,
            marked: Vec::new(),
            streams: StandardStreams::Together,
        };
        ProcessTree::start(&line, Path::new("/"), std::env::vars_os()).unwrap()
    }

    /// The end, the output, and how long it took.
    fn ended(tree: ProcessTree, time: Duration) -> (CommandEnd, String, Duration) {
        let (never, _open) = pipe().unwrap();
        let (begun, mut output) = (Instant::now(), Collected::default());
        let end = watch(tree, &never, time, &mut output).unwrap();
        (end, String::from_utf8(output.0).unwrap(), begun.elapsed())
    }

    fn lives(pid: &str) -> bool {
        let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        rustix::process::test_kill_process(pid).is_ok()
    }

    fn is_gone_soon(pid: &str) -> bool {
        (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            !lives(pid)
        })
    }

    #[test]
    fn a_command_ends_with_its_code_and_all_its_output() {
        let (end, output, _) = ended(started("echo one; echo two >&2; exit 3"), Duration::from_secs(60));
        assert_eq!((end.how, end.left_over, end.tree), (ExitCause::Exited(3), 0, Gone::Seen));
        assert_eq!(output, "one\ntwo\n");
        let (end, ..) = ended(started("kill -9 $$"), Duration::from_secs(60));
        assert_eq!(end.how, ExitCause::Signalled(9));
    }

    #[test]
    fn what_a_command_leaves_behind_is_ended() {
        let (end, output, _) = ended(started("sleep 1000 & echo $!"), Duration::from_secs(60));
        assert_eq!((end.how, end.left_over, end.tree), (ExitCause::Exited(0), 1, Gone::Seen));
        assert!(is_gone_soon(&output));
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended_although_it_hears_no_signal() {
        let script = "trap '' TERM; echo $$; while :; do sleep 1; done";
        let (end, output, time) = ended(started(script), Duration::from_millis(200));
        assert_eq!((end.how, end.tree), (ExitCause::TimedOut, Gone::Seen));
        assert!(time < Duration::from_secs(30) && is_gone_soon(&output), "{time:?}");
    }

    #[test]
    fn a_tree_that_nobody_watches_any_more_dies() {
        let mut tree = started("sleep 1000 & echo $!; wait");
        let mut buffer = [0; 64];
        let length = loop {
            if let Some(length) = tree.read_output(OutputStream::Output, &mut buffer).unwrap() {
                break length;
            }
        };
        let pid = String::from_utf8_lossy(&buffer[..length]).into_owned();
        assert!(lives(&pid));
        drop(tree);
        assert!(is_gone_soon(&pid));
    }
}
