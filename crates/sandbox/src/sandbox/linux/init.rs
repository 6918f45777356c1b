//! The first process of a sandbox's namespace: reaps processes, passes on requests to end, and ends everything
//! by its own end. Starts one command, but does not choose it.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use libc::{c_int, pid_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::reexec::{SupervisorPipes, tell_failure};
use super::usage::{UsageCount, UsageLimits};
use crate::limits::{COMMAND_PROCESSES, PROCESS_COUNT_INTERVAL};
use crate::process::CommandReport;

/// Starts the command by `begin`, which returns only if it fails. Stays until nothing of it is left, or until
/// the lifeline is cut: the end of this process ends everything in its namespace.
pub(super) fn run(
    contact: &SupervisorPipes,
    limits: &UsageLimits<'_>,
    begin: impl FnOnce() -> io::Error,
) -> io::Result<ExitCode> {
    // It signals every process it can see, which without its own namespace would be the whole machine.
    if std::process::id() != 1 {
        return Err(io::Error::other("the sandbox has no PID namespace"));
    }
    let deaths = deaths()?;
    // The command runs as the same user: otherwise it could write into our memory by `/proc/1/mem`.
    set_others_access(OthersAccess::Refused)?;
    // SAFETY: this process has one thread.
    let command = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            tell_failure(contact, &begin_command(begin));
            return Ok(ExitCode::FAILURE);
        }
        command => command,
    };
    let mut code = 0;
    let mut counted = Instant::now();
    let usage = UsageCount::start(limits);
    contact.tell(CommandReport::Started);
    release_all_but(contact)?;
    loop {
        match reap(command) {
            InitReaped::Nothing => {}
            InitReaped::Command(status) => {
                code = exit_code(status);
                contact.tell(CommandReport::Ended(status));
                continue;
            }
            InitReaped::All => return Ok(ExitCode::from(code)),
        }
        if let LifelineState::Cut = listen(&deaths, contact)? {
            if let InitReaped::Nothing = reap(command) {
                contact.tell(CommandReport::LeftOver(living()));
            }
            return Ok(ExitCode::from(code));
        }
        // Not at every death: a command may start and abandon thousands of short-lived processes.
        if counted.elapsed() >= PROCESS_COUNT_INTERVAL {
            if let Some(excess) = usage.excess() {
                contact.tell(excess);
                signal_all(libc::SIGKILL);
            }
            counted = Instant::now();
        }
    }
}

/// Runs in the forked process, which becomes the command; returns only if that fails.
fn begin_command(begin: impl FnOnce() -> io::Error) -> io::Error {
    // Makes the command an ordinary process again, as after `exec`.
    if let Err(error) = set_others_access(OthersAccess::Allowed) {
        return error;
    }
    // SAFETY: a plain system call; it does not fail in a process that was just forked.
    unsafe { libc::setsid() };
    begin()
}

/// Whether processes of the same user may look into this one and write its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OthersAccess {
    Refused,
    Allowed,
}

fn set_others_access(access: OthersAccess) -> io::Result<()> {
    let dumpable = libc::c_ulong::from(access == OthersAccess::Allowed);
    // SAFETY: a plain system call on a number.
    match unsafe { libc::prctl(libc::PR_SET_DUMPABLE, dumpable) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Readable when a child has died. Blocks every signal: none from inside may end the namespace's first process.
fn deaths() -> io::Result<OwnedFd> {
    // SAFETY: system calls on values of the stack; the descriptor is new and ours.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        match libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

enum InitReaped {
    Nothing,
    Command(c_int),
    All,
}

fn reap(command: pid_t) -> InitReaped {
    loop {
        let mut status: c_int = 0;
        // SAFETY: `status` outlives the call.
        match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
            0 => return InitReaped::Nothing,
            -1 => return InitReaped::All,
            pid if pid == command => return InitReaped::Command(status),
            _ => {}
        }
    }
}

enum LifelineState {
    Nothing,
    /// The lifeline is cut.
    Cut,
}

/// Waits for a death, a message, or the next count.
fn listen(deaths: &OwnedFd, contact: &SupervisorPipes) -> io::Result<LifelineState> {
    let mut polled = [
        PollFd::from_borrowed_fd(deaths.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(contact.lifeline.as_fd(), PollFlags::IN),
    ];
    match poll(&mut polled, Some(&timespec(PROCESS_COUNT_INTERVAL))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_told = !polled[1].revents().is_empty();
    let mut buffer = [0u8; 1024];
    // This only empties the pipe; `waitpid` tells which process died.
    if let Err(error) = rustix::io::read(deaths, &mut buffer)
        && error != rustix::io::Errno::AGAIN
    {
        return Err(error.into());
    }
    if !is_told {
        return Ok(LifelineState::Nothing);
    }
    match rustix::io::read(&contact.lifeline, &mut buffer[..1]) {
        Ok(1) => {
            signal_all(libc::SIGTERM);
            Ok(LifelineState::Nothing)
        }
        Ok(_) | Err(_) => Ok(LifelineState::Cut),
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec: duration.subsec_nanos().into() }
}

/// Signals everything in the namespace except this process, in one step, so that nothing can outrun it by
/// forking.
fn signal_all(signal: c_int) {
    // SAFETY: a plain system call; it fails when there is no process.
    unsafe { libc::kill(-1, signal) };
}

/// The other processes of the namespace, without git's own maintenance, which runs again with the next commit.
fn living() -> u32 {
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let own = std::ffi::OsString::from("1");
    let is_alive = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let is_process = name.as_encoded_bytes().iter().all(u8::is_ascii_digit) && name != own;
        // `PID (NAME) STATE …`
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        is_process
            && stat
                .rsplit_once(") ")
                .is_some_and(|(start, rest)| !rest.starts_with('Z') && !start.ends_with("(git)"))
    };
    u32::try_from(entries.flatten().filter(is_alive).take(COMMAND_PROCESSES).count()).unwrap_or(u32::MAX)
}

/// Lets go of everything but the two pipes, so that the end of the output can be seen.
fn release_all_but(contact: &SupervisorPipes) -> io::Result<()> {
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

/// As shells write it.
fn exit_code(status: c_int) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let status = std::process::ExitStatus::from_raw(status);
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
