//! Everywhere: the command's process group is what is left of it. A process that made a group of its own is not
//! found again, and nothing ends the command when the guard itself is killed.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_int, pid_t, sigset_t};

use super::super::CommandReport;
use super::{Reporter, Wiring, exit, mark, tell};

/// Who is abandoned becomes a child of the machine's first process.
pub(super) fn adopt_abandoned() -> io::Result<()> {
    Ok(())
}

/// No common way.
pub(super) fn die_with_guard() -> io::Result<()> {
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GuardPhase {
    Watching,
    Terminating,
    Killing,
}

/// Between two looks at a group whose first process is gone, and at one that was killed.
const GROUP_ROUND_MS: c_int = 10;

/// Ten seconds of rounds: what still lives then can't be killed (another user's, or stuck in the kernel).
const KILL_ROUNDS: u32 = 1000;

/// The command as the guard knows it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommandState {
    Running,
    /// It was waited for; others of its group may live. While they do, the number of the group is no one
    /// else's.
    Gone,
}

pub(super) fn stand_guard(command: pid_t, wiring: Wiring) -> ! {
    let Wiring { lifeline, report, reporter, marked, .. } = wiring;
    let deaths = Deaths::heard();
    close_all_but(&[lifeline, report, deaths.read, deaths.write], &marked);
    // SAFETY: a plain system call; the path ends with NUL.
    unsafe { libc::chdir(c"/".as_ptr()) };
    let (mut phase, mut state, mut rounds) = (GuardPhase::Watching, CommandState::Running, 0);
    loop {
        if state == CommandState::Running
            && let Some(status) = reaped(command)
        {
            state = CommandState::Gone;
            if reporter == Reporter::Guard {
                tell(report, CommandReport::Ended(status));
            }
        }
        if state == CommandState::Gone && !has_group(command) {
            mark(&marked);
            exit(0)
        }
        if phase == GuardPhase::Killing {
            if rounds == KILL_ROUNDS {
                exit(1)
            }
            // Who is left can't be counted here.
            if rounds == 0 && state == CommandState::Gone && reporter == Reporter::Guard {
                tell(report, CommandReport::LeftOver(1));
            }
            rounds += 1;
            signal_group(command, libc::SIGKILL);
        }
        phase = wait(phase, state, &deaths, lifeline, command);
    }
}

/// Waits for a death, a word, or the next round; returns the phase that follows.
fn wait(
    phase: GuardPhase,
    state: CommandState,
    deaths: &Deaths,
    lifeline: RawFd,
    command: pid_t,
) -> GuardPhase {
    let killing = phase == GuardPhase::Killing;
    let mut polled = [
        libc::pollfd { fd: deaths.read, events: libc::POLLIN, revents: 0 },
        // A negative descriptor is not polled: the end of the lifeline would be reported forever.
        libc::pollfd { fd: if killing { -1 } else { lifeline }, events: libc::POLLIN, revents: 0 },
    ];
    // Nobody tells of the deaths of a group's other processes.
    let looks = killing || deaths.read < 0 || state == CommandState::Gone;
    let timeout = if looks { GROUP_ROUND_MS } else { -1 };
    let mut buffer = [0u8; 64];
    // SAFETY: both point to arrays of the stated length.
    let heard = unsafe {
        if libc::poll(polled.as_mut_ptr(), 2, timeout) <= 0 {
            return phase;
        }
        if polled[0].revents != 0 {
            libc::read(deaths.read, buffer.as_mut_ptr().cast(), buffer.len());
        }
        if polled[1].revents == 0 { None } else { Some(libc::read(lifeline, buffer.as_mut_ptr().cast(), 1)) }
    };
    match heard {
        None => phase,
        Some(1) => {
            signal_group(command, libc::SIGTERM);
            GuardPhase::Terminating
        }
        Some(_) => GuardPhase::Killing,
    }
}

/// How the command ended, once it has.
fn reaped(command: pid_t) -> Option<c_int> {
    let mut status: c_int = 0;
    // SAFETY: `status` outlives the call.
    match unsafe { libc::waitpid(command, &mut status, libc::WNOHANG) } {
        0 => None,
        // Nobody else waits for it.
        -1 => Some(libc::SIGKILL),
        _ => Some(status),
    }
}

/// Whether a process of the group lives.
fn has_group(group: pid_t) -> bool {
    // SAFETY: a plain system call that signals nothing.
    unsafe { libc::kill(-group, 0) == 0 }
}

/// In one step, so that one that forks fast can't outrun it.
fn signal_group(group: pid_t, signal: c_int) {
    // SAFETY: plain system calls. Right after its fork the command is still in our own group; by its own number
    // it is found all the same, and that is no one else's until it was waited for.
    unsafe {
        if libc::kill(-group, signal) != 0 && libc::getpgid(group) == libc::getpgrp() {
            libc::kill(group, signal);
        }
    }
}

/// A pipe that a handler of signals writes to.
struct Deaths {
    read: RawFd,
    write: RawFd,
}

/// Where the handler writes: it gets no argument of ours.
static DEATHS: AtomicI32 = AtomicI32::new(-1);

impl Deaths {
    /// From now on. Negative descriptors where there is none: then the guard looks from time to time.
    fn heard() -> Self {
        let mut ends: [c_int; 2] = [-1, -1];
        // SAFETY: the array has room for two descriptors; everything else is on the stack.
        unsafe {
            if libc::pipe(ends.as_mut_ptr()) != 0 {
                return Self { read: -1, write: -1 };
            }
            for end in ends {
                libc::fcntl(end, libc::F_SETFL, libc::O_NONBLOCK);
            }
            DEATHS.store(ends[1], Ordering::Relaxed);
            let handler: extern "C" fn(c_int) = note_death;
            libc::signal(libc::SIGCHLD, handler as libc::sighandler_t);
            let mut set: sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut set);
            libc::sigdelset(&mut set, libc::SIGCHLD);
            libc::sigprocmask(libc::SIG_SETMASK, &set, ptr::null_mut());
        }
        Self { read: ends[0], write: ends[1] }
    }
}

extern "C" fn note_death(_signal: c_int) {
    // SAFETY: `write` may be called by a handler; a full pipe has told already.
    unsafe { libc::write(DEATHS.load(Ordering::Relaxed), [0u8].as_ptr().cast(), 1) };
}

/// More descriptors than this are not looked for where the system names no lower number.
const DESCRIPTORS: c_int = 65_536;

/// One more than the highest that can be open.
fn descriptors() -> c_int {
    // SAFETY: a plain library call that reads a number.
    let most = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    c_int::try_from(most).ok().filter(|most| *most > 0).map_or(DESCRIPTORS, |most| most.min(DESCRIPTORS))
}

pub(crate) fn close_on_exec_from(first: RawFd) {
    for descriptor in first..descriptors() {
        // SAFETY: a plain system call; it fails for numbers that are not open.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

fn close_all_but(kept: &[RawFd], more: &[RawFd]) {
    for descriptor in 0..descriptors() {
        if !kept.contains(&descriptor) && !more.contains(&descriptor) {
            // SAFETY: nothing of this process uses its descriptors but those that are left out.
            unsafe { libc::close(descriptor) };
        }
    }
}
