//! Protected names below the top of a root, with their content. Mounts protect those near the top while a
//! command runs. But one command can move their directory out of sight, the next can change them there, and a
//! third can move it back. So we remember what vanishes, and compare it when we see it again.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use attache_core::scope::{Guarded, Where};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::entries::{enter, names};
use super::lossless;

use crate::limits::{GIT_CONFIG_BYTES, PROTECTED_ENTRIES, PROTECTED_NAMES, PROTECTED_STAMPS};
use crate::platform::{changed_of, device_of, mode_of};

/// By path below the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Below(#[serde(with = "lossless::map")] pub(super) BTreeMap<PathBuf, ProtectedCopy>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProtectedCopy {
    /// Device and inode of its directory, which stay the same when the directory moves.
    directory: (u64, u64),
    /// By path below the name; the name itself has the empty path.
    #[serde(with = "lossless::map")]
    pub(super) entries: BTreeMap<PathBuf, ProtectedEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ProtectedEntry {
    Directory,
    File {
        mode: u32,
        #[serde(with = "lossless::contents")]
        text: Vec<u8>,
    },
    /// Too large to keep: its size and the time of its last change.
    Large(i64, i64, i64),
    #[serde(with = "lossless::path")]
    Link(PathBuf),
}

/// Names with several parts, without those of repositories, which have their own check.
static PARTED: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let rows = Guarded::protected().iter().filter(|row| row.place == Where::Anywhere);
    rows.filter_map(|row| row.name().split_once('/')).filter(|(first, _)| *first != ".git").collect()
});

impl Below {
    /// Adds the protected entries of a directory.
    pub(super) fn meet(&mut self, directory: &OwnedFd, path: &Path, entries: &[(OsString, FileType)]) {
        for (name, kind) in entries {
            if Guarded::is_protected_entry(name) {
                self.add(directory, path.join(name), name.into());
            } else if *kind == FileType::Directory && name.as_encoded_bytes().starts_with(b".") {
                let name = Path::new(name);
                let lower = name.to_string_lossy().to_lowercase();
                for (_, rest) in PARTED.iter().filter(|(first, _)| first.eq_ignore_ascii_case(&lower)) {
                    let inner = name.join(rest);
                    self.add(directory, path.join(&inner), inner);
                }
            }
        }
    }

    pub(super) fn add(&mut self, directory: &OwnedFd, path: PathBuf, name: PathBuf) {
        if self.0.len() < PROTECTED_NAMES
            && !self.0.contains_key(&path)
            && let Some(held) = ProtectedCopy::of(directory, &name)
        {
            self.0.insert(path, held);
        }
    }

    /// What is at this path now, or in the same directory wherever it is now.
    pub(super) fn find(&self, path: &Path, held: &ProtectedCopy) -> Option<(&PathBuf, &ProtectedCopy)> {
        let is_it = |(at, now): &(&PathBuf, &ProtectedCopy)| {
            now.directory == held.directory && at.file_name() == path.file_name()
        };
        self.0.get_key_value(path).or_else(|| self.0.iter().find(is_it))
    }

    /// The entries that we no longer see.
    pub(super) fn vanished_from(&self, now: &Below) -> Below {
        let gone = self.0.iter().filter(|(path, held)| now.find(path, held).is_none());
        Self(gone.map(|(path, held)| (path.clone(), held.clone())).collect())
    }
}

impl ProtectedCopy {
    /// `None` if there is nothing, or nothing but directories.
    pub(super) fn of(directory: &OwnedFd, name: &Path) -> Option<Self> {
        let whole = Self::read(directory, name, PROTECTED_ENTRIES, ProtectedEntry::of)?;
        if whole.is_whole() { Some(whole) } else { Self::stamps_of(directory, name) }
    }

    /// With sizes and times instead of contents.
    pub(super) fn stamps_of(directory: &OwnedFd, name: &Path) -> Option<Self> {
        Self::read(directory, name, PROTECTED_STAMPS, ProtectedEntry::stamp_of)
    }

    fn read(
        directory: &OwnedFd,
        name: &Path,
        limit: usize,
        entry_of: fn(&OwnedFd, &Path) -> Option<ProtectedEntry>,
    ) -> Option<Self> {
        let directory = enter(directory, name.parent().unwrap_or(Path::new(""))).ok()?;
        let stat = fs::fstat(&directory).ok()?;
        let mut entries = BTreeMap::new();
        let mut open = VecDeque::from([PathBuf::new()]);
        let base = Path::new(name.file_name()?);
        while let Some(path) = open.pop_front() {
            let at = base.join(&path);
            let Some(entry) = entry_of(&directory, &at) else { continue };
            if entry == ProtectedEntry::Directory {
                let inner = enter(&directory, &at).and_then(|directory| names(&directory));
                open.extend(inner.unwrap_or_default().iter().map(|(name, _)| path.join(name)));
            }
            entries.insert(path, entry);
            if entries.len() >= limit {
                break;
            }
        }
        let holds = entries.values().any(|entry| *entry != ProtectedEntry::Directory);
        holds.then_some(Self { directory: (device_of(&stat), stat.st_ino), entries })
    }

    /// Whether we know the contents of all files.
    pub(super) fn is_whole(&self) -> bool {
        self.entries.len() < PROTECTED_ENTRIES
    }

    /// Whether there may be more than we looked at.
    pub(super) fn is_cut(&self) -> bool {
        self.entries.len() >= PROTECTED_STAMPS
    }

    pub(super) fn is_directory(&self) -> bool {
        self.entries.get(Path::new("")) == Some(&ProtectedEntry::Directory)
    }

    pub(super) fn is_in_the_directory_of(&self, other: &Self) -> bool {
        self.directory == other.directory
    }
}

impl ProtectedEntry {
    /// `None` also for an entry that no program reads as a file.
    pub(super) fn of(directory: &OwnedFd, path: &Path) -> Option<Self> {
        Self::read(directory, path, small_text)
    }

    /// For a file, only its size and time.
    fn stamp_of(directory: &OwnedFd, path: &Path) -> Option<Self> {
        Self::read(directory, path, |_, _| None)
    }

    fn read(
        directory: &OwnedFd,
        path: &Path,
        text_of: fn(&OwnedFd, &OsStr) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let (parent, name) = (path.parent().unwrap_or(Path::new("")), path.file_name()?);
        let directory = enter(directory, parent).ok()?;
        let stat = fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Some(Self::Directory),
            FileType::Symlink => {
                let led = fs::readlinkat(&directory, name, Vec::new()).ok()?;
                Some(Self::Link(OsString::from_vec(led.into_bytes()).into()))
            }
            FileType::RegularFile => Some(match text_of(&directory, name) {
                Some(text) => Self::File { mode: mode_of(&stat) & 0o777, text },
                None => {
                    let (seconds, nanoseconds) = changed_of(&stat);
                    Self::Large(stat.st_size, seconds, nanoseconds)
                }
            }),
            _ => None,
        }
    }
}

fn small_text(directory: &OwnedFd, name: &OsStr) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(fs::openat(directory, name, flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    file.take(GIT_CONFIG_BYTES + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= GIT_CONFIG_BYTES).then_some(text)
}
