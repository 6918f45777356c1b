//! Our end of a terminal: a thread that passes output to the relay and notices when the relay is gone. Does not
//! know the client.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use attache_sandbox::limits::KILL_TIME;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::directory::TerminalDirectory;
use super::queue::OutputQueue;
use crate::limits::TERMINAL_END_TIME;

/// The exit code of a command that never started, or whose call was given up.
const NEVER_BEGUN: u8 = 130;

/// A connection to a terminal. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct TerminalLink {
    pub(super) program: PathBuf,
    pub(super) queue: Arc<OutputQueue>,
    /// Resolves once the relay has started.
    pub(super) contact: oneshot::Receiver<()>,
    /// Cancelled when the relay has started and is gone.
    pub(super) lost: CancellationToken,
    /// Resolves when the relay has shown everything, or was given up.
    pub(super) done: oneshot::Receiver<()>,
}

impl TerminalLink {
    /// Makes the directory and starts a thread that waits for a relay. Blocks for a moment.
    pub(super) fn open(directory: &Path, helper: &Path) -> io::Result<Self> {
        let (place, presence) = TerminalDirectory::make(directory, helper)?;
        let (program, queue, lost) =
            (place.program(), Arc::new(OutputQueue::new()?), CancellationToken::new());
        let ((here, contact), (finish, done)) = (oneshot::channel(), oneshot::channel());
        let far = Far { place, presence, queue: Arc::clone(&queue), lost: lost.clone() };
        std::thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            if let Err(error) = far.serve(here) {
                tracing::warn!(%error, "a terminal was given up");
            }
            drop(finish);
        })?;
        Ok(Self { program, queue, contact, lost, done })
    }
}

impl Drop for TerminalLink {
    fn drop(&mut self) {
        self.queue.close(NEVER_BEGUN);
    }
}

struct Far {
    place: TerminalDirectory,
    presence: OwnedFd,
    queue: Arc<OutputQueue>,
    lost: CancellationToken,
}

/// Which pipes are ready.
struct ReadyPipes {
    presence: bool,
    output: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RelaySign {
    Here,
    Gone,
    Unchanged,
}

impl Far {
    fn serve(self, here: oneshot::Sender<()>) -> io::Result<()> {
        if !self.meets_the_relay()? {
            return Ok(());
        }
        let output = self.place.output()?;
        if here.send(()).is_err() {
            tracing::debug!("no call waits for a terminal any more");
        }
        match self.pass_on(&output)? {
            RelaySign::Gone => self.lost.cancel(),
            RelaySign::Here | RelaySign::Unchanged => {
                self.place.tell_exit(self.queue.end().unwrap_or(NEVER_BEGUN))?;
                drop(output);
                self.until_gone(Instant::now() + KILL_TIME)?;
            }
        }
        Ok(())
    }

    /// Whether a relay started before the queue was closed.
    fn meets_the_relay(&self) -> io::Result<bool> {
        while self.queue.end().is_none() {
            if self.poll(None, None)?.presence {
                match self.presence()? {
                    RelaySign::Here => return Ok(true),
                    RelaySign::Gone => return Ok(false),
                    RelaySign::Unchanged => {}
                }
            }
        }
        Ok(false)
    }

    /// Passes output on until all of it is written and the queue is closed, or the relay is gone, or too slow
    /// at the end.
    fn pass_on(&self, output: &OwnedFd) -> io::Result<RelaySign> {
        let mut rest = Vec::new();
        let mut give_up = None;
        loop {
            if rest.is_empty() {
                rest = self.queue.take();
            }
            if self.queue.end().is_some() {
                let deadline = *give_up.get_or_insert_with(|| Instant::now() + TERMINAL_END_TIME);
                // Output from before the end is in the queue by the time the end is.
                if rest.is_empty() {
                    rest = self.queue.take();
                }
                if rest.is_empty() || Instant::now() >= deadline {
                    return Ok(RelaySign::Here);
                }
            }
            let ready = self.poll((!rest.is_empty()).then_some(output), give_up)?;
            if ready.presence && self.presence()? == RelaySign::Gone {
                return Ok(RelaySign::Gone);
            }
            if ready.output {
                match rustix::io::write(output, &rest) {
                    Ok(count) => drop(rest.drain(..count)),
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(Errno::PIPE) => return Ok(RelaySign::Gone),
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    fn until_gone(&self, deadline: Instant) -> io::Result<()> {
        while Instant::now() < deadline {
            let mut polled = [PollFd::from_borrowed_fd(self.presence.as_fd(), PollFlags::IN)];
            wait(&mut polled, Some(deadline))?;
            let [presence] = polled;
            if !presence.revents().is_empty() && self.presence()? == RelaySign::Gone {
                break;
            }
        }
        Ok(())
    }

    fn poll(&self, output: Option<&OwnedFd>, deadline: Option<Instant>) -> io::Result<ReadyPipes> {
        let mut polled = vec![
            PollFd::from_borrowed_fd(self.presence.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.queue.news(), PollFlags::IN),
        ];
        polled.extend(output.map(|output| PollFd::from_borrowed_fd(output.as_fd(), PollFlags::OUT)));
        wait(&mut polled, deadline)?;
        let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        self.queue.heard();
        Ok(ReadyPipes { presence: ready[0], output: ready.get(2) == Some(&true) })
    }

    fn presence(&self) -> io::Result<RelaySign> {
        match rustix::io::read(&self.presence, &mut [0; 16]) {
            Ok(0) => Ok(RelaySign::Gone),
            Ok(_) => Ok(RelaySign::Here),
            Err(Errno::AGAIN | Errno::INTR) => Ok(RelaySign::Unchanged),
            Err(error) => Err(error.into()),
        }
    }
}

fn wait(polled: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<()> {
    let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
    let time = deadline.and_then(|deadline| Timespec::try_from(left(deadline)).ok());
    match poll(polled, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
