//! Our own program in a terminal of the client: prints there what a command of ours prints, and ends with it.
//! The command itself runs under our guard like any other, so it does not depend on how a client starts and
//! ends processes.
//!
//! The relay finds what it needs beside the name it was started by; `bash/terminal/place.rs` makes that
//! directory. Its arguments are only for people to read.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::limits::PIPE_BYTES;

/// The name that the client starts, so that it shows `bash -c COMMAND`.
pub const PROGRAM: &str = "bash";

/// A pipe with the output of the command. It ends with the command, and if we die.
pub const OUTPUT: &str = "output";

/// A pipe that the relay holds open: when it closes, the terminal is gone. One byte says that the relay is
/// there.
pub const PRESENCE: &str = "presence";

/// A file with the exit code, written before the output ends.
pub const EXIT: &str = "exit";

/// The base of the exit code that a shell gives for a signal; also for a lost command.
const SIGNALLED: u8 = 128;
const LOST: u8 = SIGNALLED + 9;

/// `None` if the process was started by another name, for something else.
pub fn run_if_asked() -> Option<ExitCode> {
    let program = PathBuf::from(std::env::args_os().next()?);
    if program.file_name()? != PROGRAM {
        return None;
    }
    let code = match program.parent().map_or(Err(io::ErrorKind::NotFound.into()), show) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("attache: the command has ended, or was never begun here: {error}");
            1
        }
    };
    Some(ExitCode::from(code))
}

fn show(place: &Path) -> io::Result<u8> {
    let open = |name, how: OFlags| {
        rustix::fs::open(place.join(name), how | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
    };
    // In this order: our supervisor must find an open reader when it learns that we are there.
    let output = open(OUTPUT, OFlags::RDONLY)?;
    let presence = open(PRESENCE, OFlags::WRONLY)?;
    rustix::io::write(&presence, b"!")?;
    let mut output = File::from(output);
    let mut buffer = vec![0; PIPE_BYTES];
    loop {
        match wait(&output, &presence)? {
            // The terminal that would show it is gone.
            RelayEvent::HungUp => return Ok(SIGNALLED + 1),
            RelayEvent::Abandoned => return Ok(LOST),
            RelayEvent::Output => {}
        }
        match output.read(&mut buffer) {
            Ok(0) => return Ok(exit_code(&std::fs::read(place.join(EXIT)).unwrap_or_default())),
            Ok(count) => print(&buffer[..count])?,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
}

enum RelayEvent {
    /// There is output, or it has ended.
    Output,
    /// The terminal is gone.
    HungUp,
    /// attache is gone.
    Abandoned,
}

fn wait(output: &File, presence: &OwnedFd) -> io::Result<RelayEvent> {
    let screen = rustix::stdio::stdout();
    loop {
        // Without requested events, poll reports only errors and hang-ups.
        let mut polled = [
            PollFd::from_borrowed_fd(screen, PollFlags::empty()),
            PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(presence.as_fd(), PollFlags::empty()),
        ];
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [screen, output, presence] = polled.map(|polled| !polled.revents().is_empty());
        match (screen, output, presence) {
            (true, ..) => return Ok(RelayEvent::HungUp),
            (false, true, _) => return Ok(RelayEvent::Output),
            (false, false, true) => return Ok(RelayEvent::Abandoned),
            (false, false, false) => {}
        }
    }
}

/// Writes everything, also to a non-blocking terminal.
fn print(mut bytes: &[u8]) -> io::Result<()> {
    let screen = rustix::stdio::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(screen, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut polled = [PollFd::from_borrowed_fd(screen, PollFlags::OUT)];
                if let Err(error) = poll(&mut polled, None)
                    && error != Errno::INTR
                {
                    return Err(error.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The code in `EXIT`; any other text means that it is unknown.
fn exit_code(text: &[u8]) -> u8 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(LOST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn any_text_is_an_exit_code_and_ours_is_the_one_we_wrote() {
        for code in 0..=u8::MAX {
            assert_eq!(exit_code(code.to_string().as_bytes()), code);
        }
        proptest!(|(bytes: Vec<u8>)| {
            let code = exit_code(&bytes);
            prop_assert!(code == LOST || bytes.ends_with(code.to_string().as_bytes()));
        });
    }
}
