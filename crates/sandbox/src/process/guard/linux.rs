//! Linux: a subreaper's children are all that is left of the tree, and `/proc` lists them.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

use libc::{c_int, c_uint, pid_t, sigset_t};

use super::super::CommandReport;
use super::{Reporter, Wiring, exit, mark, tell};

/// Whatever the command abandons becomes the guard's child.
pub(super) fn adopt_abandoned() -> io::Result<()> {
    // SAFETY: a plain system call.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Should the guard be killed, the command goes too. The guard has one thread, which lives as long as it does.
pub(super) fn die_with_guard() -> io::Result<()> {
    // SAFETY: a plain system call.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GuardPhase {
    Watching,
    Terminating,
    Killing,
}

/// Ten seconds of rounds: what still lives then can't be killed (another user's, or stuck in the kernel).
const KILL_ROUNDS: u32 = 1000;
const KILL_ROUND_MS: c_int = 10;

pub(super) fn stand_guard(command: pid_t, wiring: Wiring) -> ! {
    let Wiring { lifeline, report, reporter, marked, .. } = wiring;
    close_all_but(lifeline, report, &marked);
    // SAFETY: plain system calls; the name and the path end with NUL.
    let deaths = unsafe {
        // Not our own name: what kills us by name must leave the guards to do their work.
        libc::prctl(libc::PR_SET_NAME, c"command-guard".as_ptr(), 0, 0, 0);
        libc::chdir(c"/".as_ptr());
        let mut set: sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
    };
    let mut phase = GuardPhase::Watching;
    let mut rounds = 0;
    loop {
        let reaped = match reap(command, report, reporter) {
            GuardReaped::NoChildren => {
                mark(&marked);
                exit(0)
            }
            GuardReaped::Some => true,
            GuardReaped::None => false,
        };
        match phase {
            GuardPhase::Watching => {}
            // Whoever a dying parent has left to us hears it, too.
            GuardPhase::Terminating if reaped => signal_children(libc::SIGTERM),
            GuardPhase::Terminating => {}
            GuardPhase::Killing if rounds == KILL_ROUNDS => exit(1),
            GuardPhase::Killing => {
                if rounds == 0 && reporter == Reporter::Guard {
                    tell(report, CommandReport::LeftOver(for_each_child(|_| ())));
                }
                rounds += 1;
                signal_children(libc::SIGKILL);
            }
        }
        phase = wait(phase, deaths, lifeline);
    }
}

/// Waits for a death, a word, or the next round; returns the phase that follows.
fn wait(phase: GuardPhase, deaths: RawFd, lifeline: RawFd) -> GuardPhase {
    let killing = phase == GuardPhase::Killing;
    let mut polled = [
        libc::pollfd { fd: deaths, events: libc::POLLIN, revents: 0 },
        // A negative descriptor is not polled: the end of the lifeline would be reported forever.
        libc::pollfd { fd: if killing { -1 } else { lifeline }, events: libc::POLLIN, revents: 0 },
    ];
    // Without a descriptor for deaths they are found by looking from time to time.
    let timeout = if killing || deaths < 0 { KILL_ROUND_MS } else { -1 };
    let mut buffer = [0u8; 1024];
    // SAFETY: both point to arrays of the stated length.
    let heard = unsafe {
        libc::poll(polled.as_mut_ptr(), 2, timeout);
        libc::read(deaths, buffer.as_mut_ptr().cast(), buffer.len());
        if polled[1].revents == 0 { None } else { Some(libc::read(lifeline, buffer.as_mut_ptr().cast(), 1)) }
    };
    match heard {
        None => phase,
        Some(1) => {
            signal_children(libc::SIGTERM);
            GuardPhase::Terminating
        }
        Some(_) => GuardPhase::Killing,
    }
}

enum GuardReaped {
    Some,
    None,
    NoChildren,
}

fn reap(command: pid_t, report: RawFd, reporter: Reporter) -> GuardReaped {
    let mut reaped = GuardReaped::None;
    loop {
        let mut status: c_int = 0;
        // SAFETY: `status` outlives both calls.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        match pid {
            0 => return reaped,
            -1 => return GuardReaped::NoChildren,
            _ => reaped = GuardReaped::Some,
        }
        if pid == command && reporter == Reporter::Guard {
            tell(report, CommandReport::Ended(status));
        }
    }
}

/// Signals our children and their process groups. Deeper ones become our children when their parents die.
///
/// The groups are the tree's own: the command began a session, and none can leave it but into a new one. A
/// group is signalled in one step, so that one that forks faster than we read can't outrun it.
fn signal_children(signal: c_int) {
    for_each_child(|pid| signal_child(pid, signal));
}

/// Returns how many there are.
fn for_each_child(act: impl Fn(pid_t)) -> u32 {
    let mut text = [0u8; 4096];
    // SAFETY: the path ends with NUL, the buffer has the stated length.
    let length = unsafe {
        let file = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        usize::try_from(length).unwrap_or(0)
    };
    // A number that the buffer's end may have cut is not taken for a process: each one is followed by a space.
    let (mut pid, mut count): (pid_t, u32) = (0, 0);
    for byte in text.iter().take(length) {
        match byte {
            b'0'..=b'9' => pid = pid.wrapping_mul(10).wrapping_add(pid_t::from(byte - b'0')),
            _ => {
                act(pid);
                (pid, count) = (0, count.saturating_add(1));
            }
        }
    }
    count
}

fn signal_child(pid: pid_t, signal: c_int) {
    if pid <= 1 {
        return;
    }
    // SAFETY: plain system calls. The child is not waited for yet, so neither its number nor its group's is
    // reused.
    unsafe {
        let group = libc::getpgid(pid);
        // Right after its fork the command is still in our own session.
        if group > 1 && group != libc::getpgrp() {
            libc::kill(-group, signal);
        }
        libc::kill(pid, signal);
    }
}

/// More descriptors than this only exist where `close_range` does.
const DESCRIPTORS: c_int = 65_536;

pub(crate) fn close_on_exec_from(first: RawFd) {
    if close_range(first, c_int::MAX, libc::CLOSE_RANGE_CLOEXEC) {
        return;
    }
    for descriptor in first..DESCRIPTORS {
        // SAFETY: a plain system call; it fails for numbers that are not open.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

fn close_all_but(one: RawFd, other: RawFd, more: &[RawFd]) {
    let mut first = 0;
    loop {
        let kept = more.iter().chain([&one, &other]).copied().filter(|kept| *kept >= first).min();
        let last = kept.map_or(c_int::MAX, |kept| kept - 1);
        if first <= last && !close_range(first, last, 0) {
            for descriptor in first..=last.min(DESCRIPTORS) {
                // SAFETY: nothing of this process uses its descriptors but those that are left out.
                unsafe { libc::close(descriptor) };
            }
        }
        match kept {
            Some(kept) => first = kept + 1,
            None => return,
        }
    }
}

/// By number, since not every C library has the function.
fn close_range(first: c_int, last: c_int, flags: c_uint) -> bool {
    // SAFETY: a plain system call; see the callers for what it closes.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) == 0 }
}
