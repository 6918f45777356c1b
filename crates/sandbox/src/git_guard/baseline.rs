//! Keeps on disk the state before a command until we have compared it: in a directory that no command can
//! reach. If our process is killed, the next one compares what it left there. Does not know what the state
//! means.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime};

use rustix::fs::{self, AtFlags, FileType, FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::below::Below;
use super::known::KnownPaths;
use super::lossless;
use super::state::RootState;
use crate::limits::{BASELINE_BEAT, KILLED_COMMAND_TIME};
use crate::platform::{birth, changed_of, device_of};
use crate::process::MARK;
use crate::sandbox::Level;

/// What we keep of one root.
#[derive(Debug)]
pub(super) struct Baselines {
    directory: PathBuf,
    root: String,
}

/// A baseline that we compare when its command has ended. Its lock says that this is still to come: we hold it,
/// and so does the guard of the command, which outlives us.
#[derive(Debug)]
pub(super) struct PendingBaseline {
    path: PathBuf,
    lock: Arc<File>,
    /// Do not remove it: the next command tries again.
    is_left: AtomicBool,
    /// A thread renews the file's time until this is dropped.
    _beat: Option<Sender<()>>,
}

#[derive(Serialize, Deserialize)]
struct BaselineFile {
    #[serde(with = "lossless::path")]
    root: PathBuf,
    started: SystemTime,
    is_held: bool,
    state: RootState,
    /// After the comparison: what we could not undo. `None` before it.
    #[serde(default)]
    left: Option<Leftovers>,
}

/// Entries that remain although a command made them, each as it was when we tried to undo it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Leftovers(#[serde(with = "lossless::map")] pub(super) BTreeMap<PathBuf, EntryStamp>);

/// Identifies an entry. If the user changes or replaces it, this differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryStamp {
    device: u64,
    inode: u64,
    /// The time of its last change. For a directory, which changes with every entry in it, the time of its
    /// creation, if known.
    time: Option<(i64, i64)>,
}

impl Leftovers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl EntryStamp {
    pub(super) fn of(directory: &OwnedFd, name: &OsStr) -> Result<Self, Errno> {
        let stat = fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let changed = Some(changed_of(&stat));
        let time = if is_directory { birth(directory, name) } else { changed };
        Ok(Self { device: device_of(&stat), inode: stat.st_ino, time })
    }
}

/// Of a command that was never looked after, or not with success.
#[derive(Debug)]
pub(super) struct UnfinishedBaseline {
    pub(super) state: RootState,
    pub(super) author: Authorship,
    path: PathBuf,
    /// Keeps other processes from settling it meanwhile.
    _lock: File,
}

impl UnfinishedBaseline {
    /// Nothing of it is left to do.
    pub(super) fn settled(&self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "what was kept for a command stays");
        }
    }
}

/// How to tell what a command left from what the user made since.
#[derive(Clone, Debug)]
pub(super) enum Authorship {
    /// It died with us: tell by time.
    Killed(LatestChange),
    /// We compared it: only these entries are the command's.
    Left(Leftovers),
}

/// What a command that died with us cannot have done.
#[derive(Clone, Copy, Debug)]
pub(super) struct LatestChange {
    /// It changed nothing after this time.
    pub(super) until: SystemTime,
    /// Mounts protected hooks and configuration of the root's own repository.
    pub(super) is_held: bool,
}

/// What other processes have kept of the same root.
#[derive(Debug, Default)]
pub(super) struct Others {
    pub(super) left: Vec<UnfinishedBaseline>,
    /// The state before the command that has run longest.
    pub(super) oldest: Option<RootState>,
}

/// Whether a session hears of something that does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announced {
    Before,
    Now,
}

const MOVED: &str = "moved";
const KNOWN: &str = "known";
const TOLD: &str = "told";

/// Ten years, which is later than any time.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

impl Baselines {
    /// `scratch` is the session's; its neighbours belong to us.
    pub(super) fn of(scratch: &Path, root: &Path) -> io::Result<Self> {
        let directory = directory_beside(scratch);
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let mut hasher = DefaultHasher::new();
        root.hash(&mut hasher);
        Ok(Self { directory, root: format!("{:016x}", hasher.finish()) })
    }

    /// Takes over what no process holds any more.
    pub(super) fn others(&self) -> Others {
        let (mut others, mut since) = (Others::default(), None::<SystemTime>);
        for path in files(&self.directory).filter(|path| is_of(path, &self.root)) {
            match claimed(&path) {
                Claim::Left(written, until, lock) => {
                    let BaselineFile { is_held, state, left, .. } = written;
                    let killed = Authorship::Killed(LatestChange { until, is_held });
                    let author = left.map_or(killed, Authorship::Left);
                    others.left.push(UnfinishedBaseline { state, author, path, _lock: lock });
                }
                Claim::Running(written) => {
                    if since.is_none_or(|since| written.started < since) {
                        (since, others.oldest) = (Some(written.started), Some(written.state));
                    }
                }
                Claim::Nothing => {}
            }
        }
        others
    }

    pub(super) fn keep(&self, root: &Path, level: Level, state: &RootState) -> io::Result<PendingBaseline> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{number}", self.root, std::process::id());
        let (new, path) = (self.directory.join(format!("new-{name}")), self.directory.join(name));
        let mut file = File::options().create(true).truncate(true).write(true).open(&new)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let started = SystemTime::now();
        let is_held = level == Level::Full;
        let written =
            BaselineFile { root: root.to_owned(), started, is_held, state: state.clone(), left: None };
        file.write_all(&serde_json::to_vec(&written)?)?;
        // It gets its name only after it is locked and complete.
        std::fs::rename(&new, &path)?;
        let beat = file.try_clone().and_then(beating);
        if let Err(error) = &beat {
            tracing::warn!(%error, "when a killed command ends will not be known");
            file.set_modified(started + NEVER)?;
        }
        Ok(PendingBaseline { path, lock: Arc::new(file), is_left: AtomicBool::new(false), _beat: beat.ok() })
    }

    /// Protected names that a command has moved out of our sight.
    pub(super) fn moved(&self) -> io::Result<Below> {
        remembered(&self.path_of(MOVED))
    }

    pub(super) fn set_moved(&self, moved: &Below) -> io::Result<()> {
        if moved.0.is_empty() {
            return match std::fs::remove_file(self.path_of(MOVED)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        self.replace(MOVED, &serde_json::to_vec(moved)?)
    }

    /// Where we saw repositories and names when the last command ended. It says where to look first; without it
    /// we still look into every directory.
    pub(super) fn known(&self) -> KnownPaths {
        remembered(&self.path_of(KNOWN)).unwrap_or_else(|error| {
            tracing::warn!(%error, "known repositories are looked for anew");
            KnownPaths::default()
        })
    }

    pub(super) fn set_known(&self, known: &KnownPaths) -> io::Result<()> {
        self.replace(KNOWN, &serde_json::to_vec(known)?)
    }

    /// Whether a session has heard that we cannot look through everything here; from now on it has.
    pub(super) fn tell_once(&self, session: &[u8]) -> io::Result<Announced> {
        if std::fs::read(self.path_of(TOLD)).is_ok_and(|told| told == session) {
            return Ok(Announced::Before);
        }
        self.replace(TOLD, session).map(|()| Announced::Now)
    }

    fn replace(&self, kind: &str, text: &[u8]) -> io::Result<()> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let new = self.path_of(&format!("new-{kind}-{}-{number}", std::process::id()));
        std::fs::write(&new, text)?;
        std::fs::rename(&new, self.path_of(kind))
    }

    fn path_of(&self, kind: &str) -> PathBuf {
        self.directory.join(format!("{kind}-{}", self.root))
    }
}

/// A missing file means that nothing was remembered.
fn remembered<T: Default + serde::de::DeserializeOwned>(file: &Path) -> io::Result<T> {
    match std::fs::read(file) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(error),
    }
}

/// Renews the file's time again and again, so that the next process knows until when we lived.
fn beating(file: File) -> io::Result<Sender<()>> {
    let (beat, ended) = channel::<()>();
    let run = move || {
        while ended.recv_timeout(BASELINE_BEAT) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = file.set_modified(SystemTime::now()) {
                tracing::warn!(%error, "when a killed command ends will not be known");
            }
        }
    };
    std::thread::Builder::new().name("baseline".to_owned()).spawn(run)?;
    Ok(beat)
}

impl PendingBaseline {
    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.lock)
    }

    /// Leaves it to the next command: we could not undo the entries in `left`.
    pub(super) fn leave(&self, root: &Path, state: &RootState, left: &Leftovers) {
        let (root, state, left) = (root.to_owned(), state.clone(), Some(left.clone()));
        // Its command has ended, so no process may hold the new file's lock.
        let written = BaselineFile { root, started: SystemTime::now(), is_held: false, state, left };
        let new = self.path.with_extension("left");
        let kept = serde_json::to_vec(&written).map_err(io::Error::from);
        let kept =
            kept.and_then(|text| std::fs::write(&new, text)).and_then(|()| std::fs::rename(&new, &self.path));
        match kept {
            Ok(()) => self.is_left.store(true, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "what could not be undone is not tried again"),
        }
    }
}

impl Drop for PendingBaseline {
    fn drop(&mut self) {
        if self.is_left.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "what was kept for a command stays");
        }
    }
}

/// The roots whose commands no process has compared, below the directory of all scratches.
pub(super) fn left_roots(scratches: &Path) -> Vec<PathBuf> {
    let directory = directory_beside(&scratches.join("any"));
    let is_kept = |path: &PathBuf| name_of(path).starts_with(|first: char| first.is_ascii_hexdigit());
    let mut roots: Vec<PathBuf> = files(&directory)
        .filter(is_kept)
        .filter_map(|path| {
            let file = File::open(&path).ok()?;
            flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
            let written: BaselineFile = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
            Some(written.root)
        })
        .collect();
    roots.sort();
    roots.dedup();
    roots
}

fn directory_beside(scratch: &Path) -> PathBuf {
    scratch.parent().unwrap_or(scratch).join(".sandbox").join("baselines")
}

fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path())
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn is_of(path: &Path, root: &str) -> bool {
    name_of(path).strip_prefix(root).is_some_and(|rest| rest.starts_with('-'))
}

enum Claim {
    /// With the time until which its command may have written.
    Left(BaselineFile, SystemTime, File),
    Running(BaselineFile),
    Nothing,
}

fn claimed(path: &Path) -> Claim {
    // A file that we cannot read stays for the next command; only a damaged one goes.
    let opened = File::open(path).and_then(|file| {
        let is_left = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        Ok((file, is_left, std::fs::read(path)?))
    });
    let (file, is_left, text) = match opened {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Claim::Nothing,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "what was kept for a command can't be read now");
            return Claim::Nothing;
        }
    };
    let read = serde_json::from_slice::<BaselineFile>(&text).ok();
    match (read, is_left) {
        (Some(written), false) => Claim::Running(written),
        (Some(written), true) => {
            let until = file.metadata().and_then(|found| ended(&found)).unwrap_or_else(|_| SystemTime::now());
            Claim::Left(written, until, file)
        }
        (None, true) => {
            if let Err(error) = std::fs::remove_file(path) {
                tracing::warn!(path = %path.display(), %error, "what was kept for a command stays");
            }
            Claim::Nothing
        }
        (None, false) => Claim::Nothing,
    }
}

/// When its command wrote last at the latest: its guard recorded that, or we were alive until shortly before.
fn ended(found: &Metadata) -> io::Result<SystemTime> {
    let is_marked = found.permissions().mode() & 0o777 == MARK;
    let time = found.modified()?;
    Ok(if is_marked { time } else { time + KILLED_COMMAND_TIME })
}
