//! Drives one process line by line over its pipes, and counts what comes back. Looks into no message on the hot
//! path.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use memchr::{memchr, memchr_iter, memmem, memrchr};

use super::aims::READ_BYTES;
use super::usage::Usage;

/// The first update a user sees.
const SHOWN: &[u8] = b"agent_message_chunk";

/// Programs of others may take their time to end.
const GOING: Duration = Duration::from_secs(5);

/// A process that answers lines with lines.
#[derive(Debug)]
pub(crate) struct Driven {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    buffer: Vec<u8>,
    /// Bytes in the buffer that no line has ended yet.
    filled: usize,
    started: Instant,
}

/// When an exchange is over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until<'a> {
    /// A line that holds these bytes.
    Line(&'a [u8]),
    /// So many lines.
    Count(u64),
}

/// What came back for one line.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) time: Duration,
    /// When the first shown update was there; the whole time if there was none.
    pub(crate) first_shown: Duration,
    /// Lines before the last one.
    pub(crate) updates: u64,
    pub(crate) bytes: u64,
    /// The line that ended it.
    pub(crate) last_line: Vec<u8>,
}

impl Driven {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("a process without stdout")?;
        Ok(Self { child, stdin, stdout, buffer: vec![0; READ_BYTES], filled: 0, started })
    }

    /// Since before the process was started.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn usage(&self) -> Result<Usage> {
        Usage::of(self.child.id())
    }

    pub(crate) fn exchange(&mut self, line: &[u8], until: Until<'_>) -> Result<Exchange> {
        self.exchange_kept(line, until, None)
    }

    /// As `exchange`, and keeps every byte: for runs that are not timed.
    pub(crate) fn exchange_recorded(
        &mut self,
        line: &[u8],
        until: Until<'_>,
        record: &mut Vec<u8>,
    ) -> Result<Exchange> {
        self.exchange_kept(line, until, Some(record))
    }

    fn exchange_kept(
        &mut self,
        line: &[u8],
        until: Until<'_>,
        mut record: Option<&mut Vec<u8>>,
    ) -> Result<Exchange> {
        let mut exchange = Exchange::default();
        let mut first_shown = None;
        let started = Instant::now();
        self.stdin.as_mut().context("stdin is closed")?.write_all(line)?;
        loop {
            let end = self.read_lines()?;
            let lines = &self.buffer[..end];
            if first_shown.is_none() && memmem::find(lines, SHOWN).is_some() {
                first_shown = Some(started.elapsed());
            }
            let over = find_end(lines, until, exchange.updates);
            let taken = &lines[..over.as_ref().map_or(end, |line| line.end)];
            exchange.bytes += taken.len() as u64;
            exchange.updates += memchr_iter(b'\n', taken).count() as u64;
            if let Some(record) = record.as_deref_mut() {
                record.extend_from_slice(taken);
            }
            if let Some(line) = over {
                exchange.time = started.elapsed();
                exchange.first_shown = first_shown.unwrap_or(exchange.time);
                exchange.updates -= 1;
                exchange.last_line = lines[line].to_vec();
                self.forget(end);
                return Ok(exchange);
            }
            self.forget(end);
        }
    }

    /// Reads until at least one line is complete; gives the end of the last complete one.
    fn read_lines(&mut self) -> Result<usize> {
        loop {
            let read = self.stdout.read(&mut self.buffer[self.filled..])?;
            if read == 0 {
                bail!("the process closed its output, or wrote a line above {READ_BYTES} bytes");
            }
            let before = self.filled;
            self.filled += read;
            if let Some(at) = memrchr(b'\n', &self.buffer[before..self.filled]) {
                return Ok(before + at + 1);
            }
        }
    }

    fn forget(&mut self, end: usize) {
        self.buffer.copy_within(end..self.filled, 0);
        self.filled -= end;
    }

    /// Closes its input and waits until it has gone.
    pub(crate) fn finish(mut self) -> Result<()> {
        drop(self.stdin.take());
        let status = self.child.wait()?;
        match status.success() {
            true => Ok(()),
            false => bail!("the process ended with {status}"),
        }
    }

    /// Closes its input and waits until it has gone, however it went; one that stays is killed.
    pub(crate) fn end(mut self) -> Result<()> {
        drop(self.stdin.take());
        let started = Instant::now();
        while self.child.try_wait()?.is_none() {
            if started.elapsed() > GOING {
                return self.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// As `finish`, with the bytes written until the very end: a process that has gone can be looked at until
    /// it is waited for.
    pub(crate) fn finish_measured(mut self) -> Result<u64> {
        drop(self.stdin.take());
        while self.stdout.read(&mut self.buffer)? > 0 {}
        let written = Usage::written_by(self.child.id())?;
        self.finish()?;
        Ok(written)
    }

    /// Ends it at once, with SIGKILL.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Driven {
    /// Only for exchanges that failed: nothing may be left running behind an error.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait()
            && let Err(error) = self.child.kill().and_then(|()| self.child.wait())
        {
            eprintln!("cannot end process {}: {error}", self.child.id());
        }
    }
}

/// The line that ends the exchange, if it is among these complete lines.
fn find_end(lines: &[u8], until: Until<'_>, seen: u64) -> Option<std::ops::Range<usize>> {
    let inside = match until {
        Until::Line(needle) => memmem::find(lines, needle)?,
        Until::Count(count) => memchr_iter(b'\n', lines).nth(usize::try_from(count - seen - 1).ok()?)?,
    };
    let start = memrchr(b'\n', &lines[..inside]).map_or(0, |at| at + 1);
    let end = inside + memchr(b'\n', &lines[inside..])? + 1;
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo() -> Driven {
        Driven::start(&mut Command::new("cat")).unwrap()
    }

    #[test]
    fn lines_before_the_answer_are_updates_and_what_follows_it_is_dropped() {
        let mut cat = echo();
        let line = b"{\"agent_message_chunk\":1}\n{}\n{\"id\":\"bench-1\"}\n{\"late\":1}\n";
        let exchange = cat.exchange(line, Until::Line(b"bench-1")).unwrap();
        assert_eq!(exchange.updates, 2);
        assert_eq!(exchange.last_line, b"{\"id\":\"bench-1\"}\n");
        assert_eq!(exchange.bytes, line.len() as u64 - 11);
        assert!(exchange.first_shown <= exchange.time);
        let next = cat.exchange(b"bench-2\n", Until::Line(b"bench-2")).unwrap();
        assert_eq!(next.updates, 0);
        cat.finish().unwrap();
    }

    #[test]
    fn a_number_of_lines_ends_it_in_the_middle_of_a_read() {
        let mut cat = echo();
        let mut record = Vec::new();
        let exchange = cat.exchange_recorded(b"1\n2\n3\n", Until::Count(2), &mut record).unwrap();
        assert_eq!((exchange.updates, exchange.last_line.as_slice()), (1, b"2\n".as_slice()));
        assert_eq!(record, b"1\n2\n");
        cat.finish().unwrap();
    }

    #[test]
    fn a_process_that_goes_away_is_an_error() {
        let mut gone = Driven::start(Command::new("head").arg("-n1")).unwrap();
        assert!(gone.exchange(b"1\n", Until::Count(2)).is_err());
    }
}
