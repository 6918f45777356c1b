//! Who asks for SQLite's lock when somebody else has it: one process at a time, the others stand in line. The
//! lock itself has no order, so of many that ask for it again and again some never get it. Protects nothing.
//!
//! A turn is the right to ask, not the lock: whoever finds the lock free takes it without one, so that it is
//! never idle while a process in the line is woken. The line is the kernel's, of those who wait for a lock on a
//! file beside the database; the turn of a process that was killed ends with it. Where there is no such file
//! (a directory that can't be written to, a file system without locks) all of them ask at once.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Instant;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::{Errno, retry_on_intr};

use crate::connection::{Connector, beside};
use crate::limits;

/// What SQLite would call a file of its own beside the database.
const SUFFIX: &str = "-queue";

/// One writer's way into the queue.
#[derive(Debug)]
pub(crate) struct WriterQueue {
    database: PathBuf,
    file: QueueFile,
    /// Alive while a thread still stands in the queue for somebody who went on without a turn.
    left: Weak<()>,
}

#[derive(Debug)]
enum QueueFile {
    /// Not asked for yet: beside a file that turns out to be none of ours nothing is made.
    Unopened(Missing),
    Open(Arc<File>),
    /// There is none, or the file system has no locks.
    Nowhere,
}

/// What is done about a missing file.
#[derive(Clone, Copy, Debug)]
enum Missing {
    Make,
    Leave,
}

/// Others come after it was dropped, which is as soon as the lock was had.
#[derive(Debug)]
pub(crate) struct WriterTurn {
    /// `None` when it was gone on without one.
    file: Option<Arc<File>>,
}

/// What shows that others write: the log and the database change with every commit.
type WriteMarks = [Option<(u64, u64, i64, i64)>; 2];

impl WriterQueue {
    /// For who writes.
    pub(crate) fn of(connector: &Connector) -> Self {
        Self::with(connector, Missing::Make)
    }

    /// Makes no file: for who only looks whether it could write.
    pub(crate) fn found(connector: &Connector) -> Self {
        Self::with(connector, Missing::Leave)
    }

    fn with(connector: &Connector, missing: Missing) -> Self {
        Self { database: connector.path.clone(), file: QueueFile::Unopened(missing), left: Weak::new() }
    }

    /// Waits as long as others make progress. When nobody does, it is left to SQLite to say who is in the way.
    pub(crate) fn turn(&mut self) -> WriterTurn {
        if let QueueFile::Unopened(missing) = self.file {
            let file = open(&self.database, missing);
            self.file = file.map_or(QueueFile::Nowhere, |file| QueueFile::Open(Arc::new(file)));
        }
        let QueueFile::Open(file) = &self.file else { return WriterTurn::NONE };
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => WriterTurn { file: Some(Arc::clone(file)) },
            Err(Errno::WOULDBLOCK) => self.wait(),
            Err(error) => {
                tracing::debug!(%error, "no queue of writers on this file system");
                self.file = QueueFile::Nowhere;
                WriterTurn::NONE
            }
        }
    }

    fn wait(&mut self) -> WriterTurn {
        if self.left.strong_count() > 0 {
            return WriterTurn::NONE;
        }
        let alive = Arc::new(());
        self.left = Arc::downgrade(&alive);
        let Some(place) = line_up(&self.database, alive) else { return WriterTurn::NONE };
        let since = Instant::now();
        let mut seen = progress(&self.database);
        loop {
            match place.recv_timeout(limits::BUSY_TIMEOUT) {
                Ok(file) => return WriterTurn { file: Some(Arc::new(file)) },
                Err(RecvTimeoutError::Disconnected) => return WriterTurn::NONE,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = progress(&self.database);
            if now == seen || since.elapsed() >= limits::QUEUE_PATIENCE {
                tracing::warn!(waited = ?since.elapsed(), "another process does not end its turn to write");
                return WriterTurn::NONE;
            }
            seen = now;
        }
    }
}

impl WriterTurn {
    const NONE: Self = Self { file: None };
}

impl Drop for WriterTurn {
    fn drop(&mut self) {
        // Not by closing: a child that is being started has the file for a moment too.
        if let Some(file) = &self.file
            && let Err(error) = flock(&**file, FlockOperation::Unlock)
        {
            tracing::warn!(%error, "a turn to write was not given back");
        }
    }
}

/// A thread waits, because the kernel knows no time-out here. When nobody wants its turn any more, it is over
/// as soon as it has begun.
fn line_up(database: &Path, alive: Arc<()>) -> Option<Receiver<File>> {
    // Opened anew: who has the same opening of the file has the same lock.
    let file = open(database, Missing::Leave)?;
    let (sender, place) = mpsc::channel();
    let wait = move || {
        match retry_on_intr(|| flock(&file, FlockOperation::LockExclusive)) {
            Ok(()) => drop(sender.send(file)),
            Err(error) => tracing::debug!(%error, "the place in the queue of writers was lost"),
        }
        drop(alive);
    };
    match thread::Builder::new().name("store-queue".into()).spawn(wait) {
        Ok(_) => Some(place),
        Err(error) => {
            tracing::debug!(%error, "no thread to wait with");
            None
        }
    }
}

fn open(database: &Path, missing: Missing) -> Option<File> {
    let path = beside(database, SUFFIX);
    // A link that others planted there would have its target made; a pipe would be waited for.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = match missing {
        Missing::Make => flags | OFlags::CREATE,
        Missing::Leave => flags,
    };
    match retry_on_intr(|| rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600))) {
        Ok(handle) => Some(File::from(handle)).filter(is_plain),
        Err(error) => {
            tracing::debug!(path = %path.display(), %error, "no queue of writers");
            None
        }
    }
}

fn is_plain(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.is_file())
}

fn progress(database: &Path) -> WriteMarks {
    [database.to_owned(), beside(database, "-wal")].map(|path| {
        let found = fs::metadata(path).ok()?;
        Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;
    use crate::connection::Durability;

    struct Place {
        _directory: tempfile::TempDir,
        connector: Connector,
    }

    fn place() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let connector = Connector::new(directory.path().join("sessions.db"), Durability::Normal);
        fs::write(&connector.path, "").unwrap();
        Place { _directory: directory, connector }
    }

    /// How many of this process stand in a queue, as the kernel tells.
    #[cfg(target_os = "linux")]
    fn waiting() -> usize {
        let pid = format!(" {} ", std::process::id());
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks.lines().filter(|line| line.contains("-> FLOCK") && line.contains(&pid)).count()
    }

    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let since = Instant::now();
        while !holds() {
            assert!(since.elapsed() < Duration::from_secs(60), "{what}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_turn_that_nobody_else_has_is_had_at_once_again_and_again() {
        let place = place();
        let (mut ours, mut theirs) = (WriterQueue::of(&place.connector), WriterQueue::of(&place.connector));
        for _ in 0..3 {
            for queue in [&mut ours, &mut theirs] {
                let turn = queue.turn();
                assert!(turn.file.is_some());
            }
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_asked_first_is_first() {
        let place = place();
        let mut first = WriterQueue::of(&place.connector);
        let held = first.turn();
        let (sender, order) = mpsc::channel();
        let mut threads = Vec::new();
        for number in 0..6 {
            let (connector, sender) = (place.connector.clone(), sender.clone());
            threads.push(thread::spawn(move || {
                let turn = WriterQueue::of(&connector).turn();
                sender.send((number, turn.file.is_some())).unwrap();
            }));
            until("it lines up", || waiting() == number + 1);
        }
        drop(held);
        for number in 0..6 {
            assert_eq!(order.recv().unwrap(), (number, true));
        }
        for thread in threads {
            thread.join().unwrap();
        }
    }

    #[test]
    fn the_turn_of_a_killed_process_is_over() {
        let place = place();
        let mut queue = WriterQueue::of(&place.connector);
        let file = open(&place.connector.path, Missing::Make).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        // What a process has open is what holds the lock: from here on it is that one alone.
        let mut holder = Command::new("sleep").arg("1000").stdin(Stdio::from(file)).spawn().unwrap();
        let waiting = thread::spawn(move || {
            until("the turn comes", || queue.turn().file.is_some());
        });
        thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished());
        holder.kill().unwrap();
        holder.wait().unwrap();
        waiting.join().unwrap();
    }

    #[test]
    fn who_does_nothing_in_its_turn_is_passed_by_and_who_works_is_waited_for() {
        let place = place();
        let mut queue = WriterQueue::of(&place.connector);
        let mut theirs = WriterQueue::of(&place.connector);
        let held = theirs.turn();
        let since = Instant::now();
        assert!(queue.turn().file.is_none(), "nobody makes progress");
        assert!(since.elapsed() >= limits::BUSY_TIMEOUT);
        // Its place is kept by a thread, and one is enough.
        let since = Instant::now();
        assert!(queue.turn().file.is_none());
        assert!(since.elapsed() < limits::BUSY_TIMEOUT);
        drop(held);
        until("the place is given up", || queue.left.strong_count() == 0);
        assert!(queue.turn().file.is_some());

        let held = theirs.turn();
        let path = place.connector.path.clone();
        let works = thread::spawn(move || {
            for round in 0..4 {
                thread::sleep(limits::BUSY_TIMEOUT / 3);
                fs::write(&path, format!("{round}")).unwrap();
            }
            drop(held);
        });
        assert!(queue.turn().file.is_some());
        works.join().unwrap();
    }

    #[test]
    fn a_link_or_a_pipe_in_its_place_is_no_queue() {
        let place = place();
        let queue = beside(&place.connector.path, SUFFIX);
        let target = place.connector.path.with_file_name("planted");
        std::os::unix::fs::symlink(&target, &queue).unwrap();
        assert!(WriterQueue::of(&place.connector).turn().file.is_none());
        assert!(!target.exists(), "nothing is made behind a link");
        fs::remove_file(&queue).unwrap();
        assert!(Command::new("mkfifo").arg(&queue).status().unwrap().success());
        assert!(WriterQueue::of(&place.connector).turn().file.is_none());
        fs::remove_file(&queue).unwrap();
        assert!(WriterQueue::of(&place.connector).turn().file.is_some());
    }

    #[test]
    fn without_a_file_it_is_gone_on_without_turns() {
        let place = place();
        assert!(WriterQueue::found(&place.connector).turn().file.is_none(), "who looks makes nothing");
        assert!(!beside(&place.connector.path, SUFFIX).exists());
        let nowhere = place.connector.path.join("no/directory/sessions.db");
        let mut queue = WriterQueue::of(&Connector::new(nowhere, Durability::Normal));
        assert!(queue.turn().file.is_none());
    }
}
