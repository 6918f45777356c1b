//! The guard: a forked process that is the command's parent, and ends what the command has started.
//!
//! It runs between `fork` and `exec` in a copy of a process that had other threads, so it must not allocate,
//! lock or unwind: system calls and the stack only. That is why this module is written against libc, with
//! unsafe code. A re-executed helper was rejected here: this needs no second program to be found at run time.
//!
//! How it finds what is left of the command is the system's own: on Linux whatever was abandoned becomes the
//! guard's child (`linux`); elsewhere it knows the command's process group (`portable`).
#![allow(unsafe_code)]

#[cfg(all(target_os = "linux", not(attache_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
mod portable;

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use libc::{c_int, pid_t, sigset_t};

use super::CommandReport;
use super::report::PIPE_COUNT;
#[cfg(all(target_os = "linux", not(attache_portable)))]
use linux as system;
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
use portable as system;

pub(crate) use system::close_on_exec_from;

/// What a guard listens to and what it passes on. All of it must stay open until `spawn` returns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wiring {
    pub(super) lifeline: RawFd,
    pub(super) report: RawFd,
    /// Descriptors that the command's program inherits besides the standard ones; a negative number means none.
    pub(super) inherited: Option<[RawFd; PIPE_COUNT]>,
    pub(super) reporter: Reporter,
    /// Files that the guard marks when nothing of the tree is left; a negative number means none.
    pub(super) marked: [RawFd; MARKED],
}

/// How many files one guard can mark: enough for each root of most sessions.
pub(super) const MARKED: usize = 16;

/// The mode of a marked file. Its time of modification then tells when the tree ended.
pub(crate) const MARK: u32 = 0o400;

/// Which process reports how the command ended. In any case the guard's end closes the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reporter {
    Guard,
    /// One of our processes, below the guard's child.
    Inside,
}

/// Makes a guard start `command`. The process that `spawn` returns is the guard.
pub(super) fn install(command: &mut Command, wiring: Wiring) {
    // SAFETY: the closure and all it calls make system calls on values of the stack; none allocates or takes a
    // lock.
    unsafe {
        command.pre_exec(move || fork_guard(wiring));
    }
}

/// Returns in the command's process, which its program then replaces. The calling process becomes the guard.
fn fork_guard(wiring: Wiring) -> io::Result<()> {
    // SAFETY: plain system calls; `fork` is called in a process of one thread.
    unsafe {
        // Nothing a terminal or the command sends may end the guard; it learns of deaths in its own way.
        let mut all: sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, ptr::null_mut());
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        // Its own session: killing our process group must not kill the guard.
        libc::setsid();
        system::adopt_abandoned()?;
        let guard = libc::getpid();
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => enter_command(guard, wiring.inherited),
            command => system::stand_guard(command, wiring),
        }
    }
}

fn enter_command(guard: pid_t, inherited: Option<[RawFd; PIPE_COUNT]>) -> io::Result<()> {
    // SAFETY: plain system calls.
    unsafe {
        libc::setsid();
        system::die_with_guard()?;
        if libc::getppid() != guard {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
    }
    reset_signals();
    close_on_exec_from(3);
    for descriptor in inherited.into_iter().flatten() {
        // SAFETY: a plain system call.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) };
    }
    Ok(())
}

/// Makes sure that no signal is ignored, blocked or caught, whatever the caller's own program did.
pub(crate) fn reset_signals() {
    // SAFETY: plain system calls on values of the stack.
    unsafe {
        for signal in 1..=64 {
            // Fails for the two signals that cannot be changed and the two that the C library keeps; none of
            // them is ignored.
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
    }
}

fn tell(pipe: RawFd, report: CommandReport) {
    let bytes = report.to_bytes();
    // SAFETY: a plain system call. Four bytes fit into an empty pipe; if no process reads them, none needs
    // them.
    unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) };
}

/// Says when the tree ended, also to those who come after us.
fn mark(files: &[RawFd]) {
    for file in files.iter().filter(|file| **file >= 0) {
        // SAFETY: plain system calls; no time at all means now.
        unsafe {
            libc::futimens(*file, ptr::null());
            libc::fchmod(*file, MARK as libc::mode_t);
        }
    }
}

fn exit(code: c_int) -> ! {
    // SAFETY: ends the process without running anything of the copied program.
    unsafe { libc::_exit(code) }
}
