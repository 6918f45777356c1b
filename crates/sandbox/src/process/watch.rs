//! Follows a running tree to its end: output, time-out, cancellation. Does not decide what the output is for.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{CommandReport, ProcessTree};
use crate::limits::{COUNT_TIME, DRAIN_TIME, KILL_TIME, LIVE_INTERVAL, PIPE_BYTES, TERM_TIME};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    Cancelled,
    /// The client closed the terminal that showed it.
    TerminalClosed,
    /// It had too many processes.
    TooManyProcesses,
    /// It used too much memory.
    TooMuchMemory,
    /// It ran unasked and wrote more to the scratch than such a command may.
    TooMuchScratch,
    /// Its guard was killed, so we do not know how it ended.
    Lost,
}

/// The end of a command and of what it left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    pub how: ExitCause,
    /// Processes that outlived the command, which we then killed.
    pub left_over: u32,
    pub tree: Gone,
}

/// Whether the command and everything it started are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    Seen,
    /// Killed processes did not die in time.
    NotSeen,
}

/// Takes a command's output.
pub trait Sink {
    fn output(&mut self, bytes: &[u8]);
    /// Standard error, if it has its own pipe.
    fn errors(&mut self, bytes: &[u8]) {
        self.output(bytes);
    }
    /// Called when output has come, at least `LIVE_INTERVAL` after the last time.
    fn show(&mut self);
}

/// How long a command may run, and how long it may take to end after we ask it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    pub time: Duration,
    pub to_end: Duration,
}

/// Which of a command's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputStream {
    Output,
    /// Standard error, if it has its own pipe.
    Errors,
}

impl OutputStream {
    const ALL: [Self; 2] = [Self::Output, Self::Errors];
}

/// `watch_with` the default time to end.
pub fn watch(
    tree: ProcessTree,
    cancel: &OwnedFd,
    timeout: Duration,
    sink: &mut dyn Sink,
) -> io::Result<CommandEnd> {
    watch_with(tree, cancel, TimeLimits { time: timeout, to_end: TERM_TIME }, sink)
}

/// Returns when the command and everything it started are gone, or could not be killed in time; an error if the
/// command never started. `cancel` fires when it is readable or closed.
///
/// Blocks its thread. Uses real time, because processes know no other.
pub fn watch_with(
    mut tree: ProcessTree,
    cancel: &OwnedFd,
    limits: TimeLimits,
    sink: &mut dyn Sink,
) -> io::Result<CommandEnd> {
    let mut watched = Watched::new(limits);
    watched.open[OutputStream::Errors as usize] = tree.error_output.is_some();
    let mut buffer = vec![0; PIPE_BYTES];
    loop {
        let ready = watched.poll(&tree, cancel)?;
        let now = Instant::now();
        for stream in OutputStream::ALL {
            if ready.outputs[stream as usize] {
                watched.read_output(stream, &mut tree, &mut buffer, sink)?;
            }
        }
        if ready.report {
            match tree.read_report()? {
                Some(report) => watched.hear(report, now),
                None => watched.tree_gone = true,
            }
        }
        if watched.tree_gone {
            // Everything written before the last process died is in the pipe by now.
            for stream in OutputStream::ALL {
                while watched.read_output(stream, &mut tree, &mut buffer, sink)? == PipeRead::Some {}
            }
            if watched.is_without_start(&tree) {
                return Err(tree.start_error());
            }
            tree.finish()?;
            return Ok(watched.end_with(Gone::Seen));
        }
        if ready.cancel {
            watched.end(&mut tree, ExitCause::Cancelled, now);
        }
        watched.advance(&mut tree, now);
        if let WatchPhase::Killed { give_up } = watched.phase
            && now >= give_up
        {
            tracing::warn!("a process could not be killed in time");
            return Ok(watched.end_with(Gone::NotSeen));
        }
        watched.show(sink, now);
    }
}

#[derive(Clone, Copy, Debug)]
enum WatchPhase {
    Running {
        deadline: Instant,
    },
    /// The command has exited; a process that it started still holds the output.
    Draining {
        deadline: Instant,
    },
    Terminating {
        deadline: Instant,
    },
    /// The command has ended by itself: the first process of its namespace counts what is left there and ends
    /// it by its own end. The guard would end that process before it has reported the number.
    Counting {
        deadline: Instant,
    },
    Killed {
        give_up: Instant,
    },
}

/// What the processes that start the command for us reported about its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Unknown,
    Happened,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PipeRead {
    Some,
    None,
}

#[derive(Debug)]
struct WatchedPipes {
    outputs: [bool; 2],
    report: bool,
    cancel: bool,
}

#[derive(Debug)]
struct Watched {
    phase: WatchPhase,
    ended: Option<ExitCause>,
    left_over: u32,
    start: Start,
    /// Indexed by the number of the stream.
    open: [bool; 2],
    to_end: Duration,
    tree_gone: bool,
    /// There is output that we have not shown yet.
    unshown: bool,
    shown_at: Instant,
}

impl Watched {
    fn new(limits: TimeLimits) -> Self {
        let now = Instant::now();
        Self {
            phase: WatchPhase::Running { deadline: now + limits.time },
            to_end: limits.to_end,
            ended: None,
            left_over: 0,
            start: Start::Unknown,
            open: [true, false],
            tree_gone: false,
            unshown: false,
            shown_at: now,
        }
    }

    fn poll(&self, tree: &ProcessTree, cancel: &OwnedFd) -> io::Result<WatchedPipes> {
        let cancellable = matches!(self.phase, WatchPhase::Running { .. } | WatchPhase::Draining { .. });
        let mut polled = vec![PollFd::from_borrowed_fd(tree.report.as_fd(), PollFlags::IN)];
        let outputs = [Some(&tree.output), tree.error_output.as_ref()];
        let mut is_polled = [false; 2];
        for (at, output) in outputs.into_iter().enumerate() {
            if let Some(output) = output.filter(|_| self.open[at]) {
                polled.push(PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN));
                is_polled[at] = true;
            }
        }
        if cancellable {
            polled.push(PollFd::from_borrowed_fd(cancel.as_fd(), PollFlags::IN));
        }
        let wake = match self.unshown {
            true => self.deadline().min(self.shown_at + LIVE_INTERVAL),
            false => self.deadline(),
        };
        let timeout = Timespec::try_from(wake.saturating_duration_since(Instant::now())).ok();
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = polled.iter().map(|polled| !polled.revents().is_empty());
        let mut next = |is_polled: bool| is_polled && ready.next() == Some(true);
        let report = next(true);
        Ok(WatchedPipes { report, outputs: is_polled.map(&mut next), cancel: next(cancellable) })
    }

    fn deadline(&self) -> Instant {
        match self.phase {
            WatchPhase::Running { deadline }
            | WatchPhase::Draining { deadline }
            | WatchPhase::Terminating { deadline }
            | WatchPhase::Counting { deadline } => deadline,
            WatchPhase::Killed { give_up } => give_up,
        }
    }

    fn read_output(
        &mut self,
        stream: OutputStream,
        tree: &mut ProcessTree,
        buffer: &mut [u8],
        sink: &mut dyn Sink,
    ) -> io::Result<PipeRead> {
        match tree.read_output(stream, buffer)? {
            Some(0) => self.open[stream as usize] = false,
            Some(count) => {
                match stream {
                    OutputStream::Output => sink.output(&buffer[..count]),
                    OutputStream::Errors => sink.errors(&buffer[..count]),
                }
                self.unshown = true;
                return Ok(PipeRead::Some);
            }
            None => {}
        }
        Ok(PipeRead::None)
    }

    fn hear(&mut self, report: CommandReport, now: Instant) {
        match report {
            CommandReport::Started => self.start = Start::Happened,
            CommandReport::NotStarted => self.start = Start::Failed,
            CommandReport::TooManyProcesses => self.command_ended(ExitCause::TooManyProcesses, now),
            CommandReport::TooMuchMemory => self.command_ended(ExitCause::TooMuchMemory, now),
            CommandReport::TooMuchScratch => self.command_ended(ExitCause::TooMuchScratch, now),
            CommandReport::Ended(status) => self.command_ended(ended(status), now),
            CommandReport::LeftOver(count) => self.left_over = count,
        }
    }

    fn end_with(&self, tree: Gone) -> CommandEnd {
        CommandEnd { how: self.ended.unwrap_or(ExitCause::Lost), left_over: self.left_over, tree }
    }

    fn command_ended(&mut self, how: ExitCause, now: Instant) {
        if let WatchPhase::Running { .. } = self.phase {
            self.ended = Some(how);
            self.phase = WatchPhase::Draining { deadline: now + DRAIN_TIME };
        }
    }

    /// A command that was cancelled before its start has ended by that.
    fn is_without_start(&self, tree: &ProcessTree) -> bool {
        match self.start {
            Start::Failed => true,
            Start::Unknown => self.ended.is_none() && tree.needs_word_of_start(),
            Start::Happened => false,
        }
    }

    fn end(&mut self, tree: &mut ProcessTree, reason: ExitCause, now: Instant) {
        // If the command ended by itself, that stays the reason; this concerns only its leftovers.
        self.ended.get_or_insert(reason);
        self.phase = WatchPhase::Terminating { deadline: now + self.to_end };
        tree.terminate();
    }

    fn advance(&mut self, tree: &mut ProcessTree, now: Instant) {
        match self.phase {
            WatchPhase::Running { deadline } if now >= deadline => self.end(tree, ExitCause::TimedOut, now),
            // Without the output, leftover processes do not matter.
            WatchPhase::Draining { deadline } if now >= deadline || self.open == [false; 2] => {
                self.kill(tree, now)
            }
            WatchPhase::Terminating { deadline } if now >= deadline => self.kill(tree, now),
            WatchPhase::Counting { deadline } if now >= deadline => self.kill_by_guard(tree, now),
            WatchPhase::Running { .. }
            | WatchPhase::Draining { .. }
            | WatchPhase::Terminating { .. }
            | WatchPhase::Counting { .. }
            | WatchPhase::Killed { .. } => {}
        }
    }

    fn kill(&mut self, tree: &mut ProcessTree, now: Instant) {
        let was_told_to_end = !matches!(self.phase, WatchPhase::Draining { .. });
        match tree.inner_lifeline.take() {
            // It was dropped: the first process of the namespace notices, and gets its time.
            Some(_) if !was_told_to_end => self.phase = WatchPhase::Counting { deadline: now + COUNT_TIME },
            Some(_) | None => self.kill_by_guard(tree, now),
        }
    }

    fn kill_by_guard(&mut self, tree: &mut ProcessTree, now: Instant) {
        tree.kill();
        self.phase = WatchPhase::Killed { give_up: now + KILL_TIME };
    }

    fn show(&mut self, sink: &mut dyn Sink, now: Instant) {
        if self.unshown && now >= self.shown_at + LIVE_INTERVAL {
            sink.show();
            self.unshown = false;
            self.shown_at = now;
        }
    }
}

fn ended(status: i32) -> ExitCause {
    use std::os::unix::process::ExitStatusExt;
    let status = std::process::ExitStatus::from_raw(status);
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCause::Exited(code),
        (None, Some(signal)) => ExitCause::Signalled(signal),
        (None, None) => ExitCause::Lost,
    }
}
