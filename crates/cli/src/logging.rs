//! Logging: to stderr or to a file under `logs/`, never to stdout. If the reader stalls or leaves, we only lose
//! log lines: a separate thread writes them from a bounded queue.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use attache_core::legible::legible;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::args::Args;
use crate::config::ProcessEnvironment;
use crate::dirs::{Dirs, append_private_file, create_private_directory};

/// Lines that wait for the writing thread; while the queue is full, we count further lines and drop them.
const QUEUE_LINES: usize = 1024;

/// A larger log file is renamed when the next process starts; one older file stays.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// How long the end of the process waits for the last lines.
const FLUSH_WAIT: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Stderr,
    /// `attache.log` in this directory.
    Directory(PathBuf),
}

impl Destination {
    /// Editors rarely show stderr, so the agent logs to a file; a person who types `-v`, or another command,
    /// reads stderr.
    pub(crate) fn of(args: &Args, dirs: &Dirs) -> Self {
        match args.runs_an_agent() && args.global.verbosity == 0 {
            true => Self::Directory(dirs.logs.clone()),
            false => Self::Stderr,
        }
    }
}

/// Keeps the log running. Dropping it writes the waiting lines, but never hangs.
#[derive(Debug)]
pub(crate) struct Logging {
    sender: Option<SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
    /// Why the lines do not go to the requested place.
    warning: Option<String>,
}

impl Logging {
    pub(crate) fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }
}

/// Starts logging for this process, panics included. `ATTACHE_LOG` (`debug`, `attache_core=trace,warn` …)
/// overrides the number of `-v`.
pub(crate) fn start(
    destination: Destination,
    verbosity: u8,
    environment: &ProcessEnvironment,
) -> anyhow::Result<Logging> {
    let (output, warning) = open(&destination);
    // A person will now read what was meant for a file.
    let destination = if warning.is_some() { Destination::Stderr } else { destination };
    let filter = match environment.text("ATTACHE_LOG") {
        Some(directives) => EnvFilter::try_new(directives).map_err(|error| {
            anyhow::anyhow!("environment ATTACHE_LOG: {error}; give a level such as `debug`")
        })?,
        None => EnvFilter::new(level(&destination, verbosity)),
    };
    let (queue, mut logging) = queue(output)?;
    logging.warning = warning;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(queue)
        .with_ansi(false)
        .log_internal_errors(false)
        .try_init()
        .map_err(|error| anyhow::anyhow!("logging can't start: {error}"))?;
    // The default hook writes to stderr directly and would block on a reader that stalls.
    std::panic::set_hook(Box::new(|panic| tracing::error!(target: PANIC, "panic: {panic}")));
    Ok(logging)
}

/// The log target of a panic.
const PANIC: &str = "panic";

/// For people the command itself writes what matters, in sentences; the log needs `-v`.
fn level(destination: &Destination, verbosity: u8) -> &'static str {
    match (verbosity, destination) {
        (0, Destination::Stderr) => "off,panic=error",
        (0, Destination::Directory(_)) => "warn",
        (1, _) => "info",
        (2, _) => "debug",
        (_, Destination::Stderr | Destination::Directory(_)) => "trace",
    }
}

/// A log that cannot be opened does not stop the work: stderr replaces it, and the warning says why.
fn open(destination: &Destination) -> (Box<dyn Write + Send>, Option<String>) {
    match destination {
        Destination::Stderr => (Box::new(io::stderr()), None),
        Destination::Directory(directory) => match open_file(directory) {
            Ok(file) => (Box::new(file), None),
            Err(error) => {
                (Box::new(io::stderr()), Some(format!("no log file in {}: {error}", directory.display())))
            }
        },
    }
}

fn open_file(directory: &Path) -> io::Result<File> {
    create_private_directory(directory)?;
    let path = directory.join("attache.log");
    if path.metadata().is_ok_and(|metadata| metadata.len() > MAX_FILE_BYTES) {
        std::fs::rename(&path, directory.join("attache.log.1"))?;
    }
    append_private_file(&path)
}

fn queue(output: Box<dyn Write + Send>) -> io::Result<(LogQueue, Logging)> {
    let (sender, receiver) = sync_channel(QUEUE_LINES);
    let left_out = Arc::new(AtomicU64::new(0));
    let queue = LogQueue { sender: sender.clone(), left_out: left_out.clone() };
    let thread = std::thread::Builder::new()
        .name("attache-log".to_owned())
        .stack_size(64 * 1024)
        .spawn(move || write_lines(&receiver, output, &left_out))?;
    Ok((queue, Logging { sender: Some(sender), thread: Some(thread), warning: None }))
}

/// Writes lines until an empty one, which tells it to stop: the channel closes too late, because the subscriber
/// keeps a sender.
fn write_lines(lines: &Receiver<Vec<u8>>, mut output: Box<dyn Write + Send>, left_out: &AtomicU64) {
    for line in lines {
        if line.is_empty() {
            return;
        }
        let missing = left_out.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let note = format!("({missing} log lines left out: their reader was too slow)\n");
            ignore(output.write_all(note.as_bytes()));
        }
        // People look at log files in a terminal, too.
        ignore(output.write_all(legible(&String::from_utf8_lossy(&line)).as_bytes()));
    }
}

/// If the log's reader is gone (closed stderr, full disk), there is nowhere to report that.
fn ignore(result: io::Result<()>) {
    drop(result);
}

impl Drop for Logging {
    fn drop(&mut self) {
        let deadline = Instant::now() + FLUSH_WAIT;
        let (Some(sender), Some(thread)) = (self.sender.take(), self.thread.take()) else { return };
        while !thread.is_finished() && Instant::now() < deadline {
            // The queue is full: the thread is still at work or stuck; wait until the deadline.
            if sender.try_send(Vec::new()).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Hands each event to the writing thread; never waits.
#[derive(Clone, Debug)]
struct LogQueue {
    sender: SyncSender<Vec<u8>>,
    left_out: Arc<AtomicU64>,
}

impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !line.is_empty() && self.sender.try_send(line.to_vec()).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Blocks on its lock at every write, like a pipe without a reader.
    struct Stalled(Arc<Mutex<()>>, Shared);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _held = self.0.lock().unwrap();
            self.1.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct PipeWithoutReader;

    impl Write for PipeWithoutReader {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_arrive_in_order_before_the_end() {
        let shared = Shared::default();
        let (mut queue, logging) = queue(Box::new(shared.clone())).unwrap();
        for number in 0..100 {
            queue.write_all(format!("{number}\n").as_bytes()).unwrap();
        }
        drop(logging);
        let expected: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(String::from_utf8(shared.0.lock().unwrap().clone()).unwrap(), expected);
    }

    #[test]
    fn a_stalled_reader_costs_lines_and_is_told_how_many() {
        let (gate, shared) = (Arc::new(Mutex::new(())), Shared::default());
        let held = gate.lock().unwrap();
        let (mut queue, logging) = queue(Box::new(Stalled(gate.clone(), shared.clone()))).unwrap();
        for _ in 0..QUEUE_LINES + 500 {
            queue.write_all(b"x\n").unwrap();
        }
        let lost = queue.left_out.load(Ordering::Relaxed);
        assert!((499..=500).contains(&lost), "{lost}");
        drop(held);
        drop(logging);
        let text = String::from_utf8(shared.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains(&format!("({lost} log lines left out")), "{text}");
        assert_eq!(text.matches("x\n").count() as u64, QUEUE_LINES as u64 + 500 - lost);
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_that_never_comes() {
        let gate = Arc::new(Mutex::new(()));
        let _held = gate.lock().unwrap();
        let (mut queue, logging) = queue(Box::new(Stalled(gate.clone(), Shared::default()))).unwrap();
        queue.write_all(b"x\n").unwrap();
        let start = Instant::now();
        drop(logging);
        assert!(start.elapsed() < FLUSH_WAIT * 5);
    }

    #[test]
    fn a_closed_reader_is_no_error() {
        let (mut queue, logging) = queue(Box::new(PipeWithoutReader)).unwrap();
        for _ in 0..10 {
            queue.write_all(b"x\n").unwrap();
        }
        drop(logging);
    }

    #[test]
    fn a_large_log_file_is_set_aside_and_the_new_one_is_private() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("attache.log");
        File::create(&path).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        drop(open_file(place.path()).unwrap());
        assert_eq!(path.metadata().unwrap().len(), 0);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(place.path().join("attache.log.1").metadata().unwrap().len(), MAX_FILE_BYTES + 1);
    }

    #[test]
    fn a_log_file_that_can_not_be_opened_gives_way_to_stderr_with_a_warning() {
        let (_, warning) = open(&Destination::Directory(PathBuf::from("/dev/null/logs")));
        assert!(warning.unwrap().starts_with("no log file in /dev/null/logs: "));
    }
}
