//! The one place that starts processes: each as a tree under a guard of its own. Knows no tool.
//!
//! Between us and the command stands a small process, the guard (`process/guard.rs`). Whatever the command starts and
//! abandons becomes the guard's child, so the whole tree can be found and ended; when we die, the guard ends it.

mod guard;
mod watch;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};

pub(crate) use watch::{Ended, Sink, watch};

/// A running command and everything it started.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Taken when the guard has been waited for.
    guard: Option<Child>,
    /// Standard output and standard error in the order they were written. Does not block.
    output: File,
    /// A byte asks the tree to end; closing it kills the tree. Closed by the kernel when we die.
    lifeline: Option<File>,
    /// The guard writes how the command ended, and closes it when nothing of the tree is left.
    report: File,
}

impl Tree {
    /// Starts `program` in `directory`, with standard input empty and nothing inherited.
    pub(crate) fn start(
        program: &OsStr,
        arguments: &[&OsStr],
        directory: &Path,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        let (output, output_end) = pipe_with(PipeFlags::CLOEXEC)?;
        let (lifeline_end, lifeline) = pipe_with(PipeFlags::CLOEXEC)?;
        let (report, report_end) = pipe_with(PipeFlags::CLOEXEC)?;
        set_nonblocking(&output)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(output_end.try_clone()?)
            .stderr(output_end);
        guard::install(&mut command, lifeline_end.as_raw_fd(), report_end.as_raw_fd());
        let guard = command.spawn()?;
        // `command` holds our copies of the output's end until here; with them the output would never end.
        drop(command);
        Ok(Self {
            guard: Some(guard),
            output: output.into(),
            lifeline: Some(lifeline.into()),
            report: report.into(),
        })
    }

    /// Asks everything to end.
    fn terminate(&mut self) {
        if let Some(lifeline) = &mut self.lifeline
            && let Err(error) = lifeline.write_all(b"T")
        {
            // The guard is gone, and with it the command; the report says so, too.
            tracing::debug!(%error, "no guard to tell");
        }
    }

    fn kill(&mut self) {
        self.lifeline = None;
    }

    /// Waits for a guard that has nothing left to guard and exits.
    fn finish(mut self) -> io::Result<()> {
        match self.guard.take() {
            Some(mut guard) => guard.wait().map(drop),
            None => Ok(()),
        }
    }

    /// One read of the output: `None` when there is nothing to read now, 0 at its end.
    fn read_output(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.output.read(buffer) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The command's wait status, or `None` when the whole tree is gone.
    fn read_report(&mut self) -> io::Result<Option<i32>> {
        let mut status = [0; 4];
        match self.report.read_exact(&mut status) {
            Ok(()) => Ok(Some(i32::from_ne_bytes(status))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Tree {
    /// Whatever happens to the call, the tree dies and the guard is waited for: no process, no zombie.
    fn drop(&mut self) {
        self.kill();
        let Some(mut guard) = self.guard.take() else { return };
        // An unkillable child (a hung disk) would hold up the caller; the wait goes on beside it.
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
