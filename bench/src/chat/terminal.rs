//! A program in a pseudo-terminal: types into it and sees when something is drawn. Answers what programs ask a
//! terminal; draws nothing itself.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use memchr::memmem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::aims::READ_BYTES;
use crate::usage::Usage;

/// What is asked of a terminal, and what a plain one answers. Without an answer some programs wait.
const ASKED: [(&[u8], &[u8]); 5] = [
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[c", b"\x1b[?62;c"),
    (b"\x1b[?u", b"\x1b[?0u"),
    (b"\x1b]10;?", b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
    (b"\x1b]11;?", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
];

/// A program that does not get there in this time is given up.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Terminal {
    child: Child,
    master: File,
    buffer: Vec<u8>,
}

impl Terminal {
    pub(crate) fn start(command: &mut Command, columns: u16, rows: u16) -> Result<Self> {
        let (master, slave) = pair(columns, rows)?;
        let stream = || slave.try_clone().map(Stdio::from);
        command.stdin(stream()?).stdout(stream()?).stderr(stream()?).env("TERM", "xterm-256color");
        // SAFETY: two plain system calls between fork and exec.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { child, master: master.into(), buffer: vec![0; READ_BYTES] })
    }

    pub(crate) fn usage(&self) -> Result<Usage> {
        Usage::of(self.child.id())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.master.write_all(bytes)?)
    }

    /// What is drawn within this time, be it nothing.
    fn drawn_within(&mut self, time: Duration) -> Result<&[u8]> {
        let time = Timespec::try_from(time)?;
        let mut watched = [PollFd::new(&self.master, PollFlags::IN)];
        if poll(&mut watched, Some(&time))? == 0 {
            return Ok(&[]);
        }
        let count = self.master.read(&mut self.buffer).context("the program has ended")?;
        for (asked, answer) in ASKED {
            if memmem::find(&self.buffer[..count], asked).is_some() {
                self.master.write_all(answer)?;
            }
        }
        Ok(&self.buffer[..count])
    }

    /// Until these words are drawn: what was drawn until then, and when.
    pub(crate) fn until(&mut self, words: &str) -> Result<Drawn> {
        let started = Instant::now();
        let (mut seen, mut longest, mut last) = (Vec::new(), Duration::ZERO, started);
        while started.elapsed() < PATIENCE {
            let piece = self.drawn_within(Duration::from_millis(100))?;
            if piece.is_empty() {
                continue;
            }
            seen.extend_from_slice(piece);
            longest = longest.max(last.elapsed());
            last = Instant::now();
            // What is new, and what a piece may have cut.
            let from = seen.len().saturating_sub(READ_BYTES + words.len());
            if memmem::find(&seen[from..], words.as_bytes()).is_some() {
                return Ok(Drawn { time: started.elapsed(), longest_pause: longest });
            }
        }
        let tail = String::from_utf8_lossy(&seen[seen.len().saturating_sub(2_000)..]).into_owned();
        bail!("{words:?} is not drawn; at the end there was {tail:?}")
    }

    /// Until nothing is drawn for this time.
    pub(crate) fn quiet_for(&mut self, time: Duration) -> Result<()> {
        let started = Instant::now();
        while !self.drawn_within(time)?.is_empty() {
            if started.elapsed() > PATIENCE {
                bail!("it draws all the time");
            }
        }
        Ok(())
    }

    /// Lets go of what was drawn in this time.
    pub(crate) fn pass(&mut self, time: Duration) -> Result<()> {
        let started = Instant::now();
        while let Some(rest) = time.checked_sub(started.elapsed()).filter(|rest| !rest.is_zero()) {
            self.drawn_within(rest)?;
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// How long something took to be drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) time: Duration,
    /// Between two pieces of what was drawn meanwhile.
    pub(crate) longest_pause: Duration,
}

fn pair(columns: u16, rows: u16) -> io::Result<(OwnedFd, OwnedFd)> {
    let (mut master, mut slave) = (-1, -1);
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the pointers are those of two numbers and of a size; name and modes are not wanted.
    let opened = unsafe {
        libc::openpty(
            &raw mut master,
            &raw mut slave,
            std::ptr::null_mut(),
            std::ptr::null(),
            &raw const size,
        )
    };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were opened just now, and nobody else has them.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    for end in [&master, &slave] {
        rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok((master, slave))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_and_drawn_is_seen_with_its_time() {
        let mut command = Command::new("sh");
        command.args(["-c", "stty size; read line; sleep 0.2; echo \"heard $line\""]);
        let mut terminal = Terminal::start(&mut command, 81, 25).unwrap();
        // It has the other end of the terminal, whose end would not be seen.
        drop(command);
        terminal.until("25 81").unwrap();
        terminal.write(b"a word\n").unwrap();
        let drawn = terminal.until("heard a word").unwrap();
        assert!(drawn.time >= Duration::from_millis(200) && drawn.longest_pause <= drawn.time, "{drawn:?}");
        assert!(terminal.until("nothing more").is_err(), "its end is seen");
    }
}
