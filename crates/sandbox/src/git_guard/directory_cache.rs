//! Every directory of a root with the time of its last change, kept from one command to the next. So we know
//! each repository, wherever it lies, and list only directories in which something changed. Changes nothing on
//! disk.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rustix::fs;

use super::cached_directory::{CachedDirectory, DirectoryStamp, stamp};
use super::directory_watch::{DirectoryWatch, WatchedChanges};
use super::git_part::GitPart;
use super::git_paths::is_dot_git;
use super::unseen::NotSeen;
use crate::limits::{CACHED_DIRECTORIES, CACHED_ROOTS, STAT_BATCH, STAT_THREADS};

/// What a root contains, by paths below it.
#[derive(Clone, Debug, Default)]
pub(super) struct RootOverview {
    /// Entries `.git`, and directories that git takes for repositories.
    pub(super) repositories: BTreeSet<PathBuf>,
    /// Directories whose entries we do not know: most have a mode that keeps even their owner out.
    pub(super) unlisted: BTreeMap<PathBuf, NotSeen>,
    /// The first directory beyond our limits on number or depth.
    pub(super) unreached: Option<PathBuf>,
    /// Directories of repositories that contain links.
    pub(super) with_links: BTreeSet<PathBuf>,
    /// Directories of repositories with more subdirectories than we look at.
    pub(super) crowded: BTreeSet<PathBuf>,
}

/// What a root contains now. The first look lists every directory; later looks use the kernel's reports of
/// changes, or check each directory's time.
pub(super) fn overview(root: &OwnedFd) -> RootOverview {
    let Ok(stamp) = fs::fstat(root).map(|stat| DirectoryStamp::of(&stat)) else {
        let unlisted = BTreeMap::from([(PathBuf::new(), NotSeen::Failed)]);
        return RootOverview { unlisted, ..RootOverview::default() };
    };
    let cache = cache_of((stamp.device, stamp.inode));
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    cache.refresh(root, CACHED_DIRECTORIES);
    cache.overview()
}

type Caches = Vec<((u64, u64), Arc<Mutex<DirectoryCache>>)>;

/// One for all sessions of the process, whose commands may share a root; the root used last is at the end.
static CACHES: LazyLock<Mutex<Caches>> = LazyLock::new(Mutex::default);

fn cache_of(root: (u64, u64)) -> Arc<Mutex<DirectoryCache>> {
    let mut caches = CACHES.lock().unwrap_or_else(PoisonError::into_inner);
    let at = caches.iter().position(|(of, _)| *of == root);
    let cache = at.map(|at| caches.remove(at).1).unwrap_or_default();
    caches.push((root, Arc::clone(&cache)));
    let surplus = caches.len().saturating_sub(CACHED_ROOTS);
    caches.drain(..surplus);
    cache
}

#[derive(Debug, Default)]
pub(super) struct DirectoryCache {
    /// The root comes first, and each directory after its parent.
    directories: Vec<CachedDirectory>,
    watch: Option<DirectoryWatch>,
    /// Directories with a watch, by the kernel's numbers, and those whose time we must check each time.
    by_watch: HashMap<i32, usize>,
    unsure: Vec<usize>,
    /// The subdirectories of each directory.
    inner: HashMap<usize, Vec<usize>>,
    overview: RootOverview,
}

/// The longest path the kernel takes, including its final NUL.
const LONGEST_PATH: usize = 4_095;

/// The root itself has the empty path.
fn path_in(path: &[u8]) -> PathBuf {
    if path == b"." { PathBuf::new() } else { PathBuf::from(OsStr::from_bytes(path)) }
}

impl DirectoryCache {
    /// Updates the cache; keeps at most this many directories.
    pub(super) fn refresh(&mut self, root: &OwnedFd, limit: usize) {
        if self.directories.is_empty() {
            self.watch = DirectoryWatch::of(root);
            self.directories.push(CachedDirectory::new(CString::from(c"."), 0));
            self.number_all();
        }
        let changes = self.watch.as_mut().map_or(WatchedChanges::Unknown, DirectoryWatch::changes);
        if changes == WatchedChanges::Unknown {
            self.directories.iter_mut().filter(|at| !at.is_settled).for_each(|at| at.stamp = None);
        }
        let named = match &changes {
            WatchedChanges::In(changed) => {
                changed.iter().filter_map(|number| self.by_watch.get(number)).copied().collect()
            }
            WatchedChanges::Unknown => Vec::new(),
        };
        let asked: Vec<usize> = match changes {
            WatchedChanges::In(_) => self.unsure.clone(),
            WatchedChanges::Unknown => (0..self.directories.len()).collect(),
        };
        let now = stamps(root, &self.directories, &asked);
        let is_same = |(at, now): (&usize, &Option<DirectoryStamp>)| {
            let known = self.directories[*at].stamp;
            known.is_some() && known == *now
        };
        let are_same = asked.iter().zip(&now).all(is_same);
        if self.have_the_same_directories(root, &named) && are_same {
            return;
        }
        let mut found: Vec<Option<DirectoryStamp>> =
            self.directories.iter().map(|directory| directory.stamp).collect();
        asked.into_iter().zip(now).for_each(|(at, now)| found[at] = now);
        for at in named {
            self.directories[at].stamp = None;
            found[at] = stamp(root, &self.directories[at]);
        }
        let added = self.keep_those_still_there(root, found);
        let unreached = self.add(root, added, limit);
        self.number_all();
        self.overview = self.summary(unreached);
    }

    /// Lists these directories again, by number, because most changes concern only files. Returns whether they
    /// contain the same directories.
    fn have_the_same_directories(&mut self, root: &OwnedFd, named: &[usize]) -> bool {
        let mut is_other = false;
        for at in named {
            let directory = &mut self.directories[*at];
            let git = std::mem::take(&mut directory.git);
            let names = directory.list(root, self.watch.as_mut());
            is_other |= directory.git != git || directory.stamp.is_none();
            let inner = self.inner.get(at).map(Vec::as_slice).unwrap_or_default();
            let is_as_before = |at: &usize| {
                let inner = &self.directories[*at];
                let identity = |stamp: DirectoryStamp| (stamp.device, stamp.inode);
                names.contains(inner.name())
                    && inner.stamp.is_some()
                    && inner.stamp.map(identity) == stamp(root, inner).map(identity)
            };
            is_other |= names.len() != inner.len() || !inner.iter().all(is_as_before);
        }
        !is_other
    }

    /// Rebuilds everything that refers to numbers, after the directories got new ones.
    fn number_all(&mut self) {
        (self.by_watch, self.inner, self.unsure) = Default::default();
        for (at, directory) in self.directories.iter().enumerate() {
            match (directory.watched, directory.stamp) {
                (Some(number), Some(_)) => drop(self.by_watch.insert(number, at)),
                (Some(_) | None, _) => self.unsure.push(at),
            }
            if at > 0 {
                self.inner.entry(directory.parent).or_default().push(at);
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.keep(&self.by_watch);
        }
    }

    /// Lists what has changed; returns the new directories in those, each with its parent's number.
    fn keep_those_still_there(
        &mut self,
        root: &OwnedFd,
        stamps: Vec<Option<DirectoryStamp>>,
    ) -> VecDeque<(usize, OsString)> {
        let old = std::mem::take(&mut self.directories);
        let mut places: Vec<Option<usize>> = Vec::with_capacity(old.len());
        let mut listed: BTreeMap<usize, HashSet<OsString>> = BTreeMap::new();
        for (at, (mut directory, mut now)) in old.into_iter().zip(stamps).enumerate() {
            let parent = if at == 0 { Some(0) } else { places[directory.parent] };
            let names = parent.filter(|_| at > 0).and_then(|parent| listed.get_mut(&parent));
            let is_listed = match names {
                // Another directory may have replaced it.
                Some(names) => {
                    now = stamp(root, &directory);
                    names.remove(directory.name())
                }
                None => true,
            };
            let Some(parent) = parent.filter(|_| is_listed) else {
                places.push(None);
                continue;
            };
            if now.is_none() && at > 0 {
                // It is gone, and nothing reported that: the next look must not trust its parent's stamp.
                self.directories[parent].stamp = None;
                places.push(None);
                continue;
            }
            directory.parent = parent;
            let place = self.directories.len();
            places.push(Some(place));
            if directory.stamp.is_none() || directory.stamp != now {
                listed.insert(place, directory.list(root, self.watch.as_mut()));
            }
            self.directories.push(directory);
        }
        let added = listed.into_iter().flat_map(|(parent, names)| {
            let mut names: Vec<OsString> = names.into_iter().collect();
            names.sort();
            names.into_iter().map(move |name| (parent, name))
        });
        added.collect()
    }

    /// Breadth first, so that a limit leaves out what is far away.
    fn add(&mut self, root: &OwnedFd, mut open: VecDeque<(usize, OsString)>, limit: usize) -> Unreached {
        let mut unreached = Unreached::default();
        let mut of_git = self.directories.iter().filter(|known| is_in_git(known.path.as_bytes())).count();
        while let Some((parent, name)) = open.pop_front() {
            let path = self.directories[parent].path_of(&name);
            let is_in_git = is_in_git(path.as_bytes());
            // Each kind has its own limit, so that neither keeps us from seeing the other.
            let taken = if is_in_git { of_git } else { self.directories.len() - of_git };
            if taken >= limit || path.as_bytes().len() >= LONGEST_PATH {
                let above = &mut self.directories[parent];
                above.stamp = None;
                if is_in_git {
                    unreached.crowded.insert(path_in(above.path.as_bytes()));
                } else {
                    unreached.first.get_or_insert_with(|| path_in(path.as_bytes()));
                }
                continue;
            }
            of_git += usize::from(is_in_git);
            let mut directory = CachedDirectory::new(path, parent);
            let mut inner: Vec<OsString> = directory.list(root, self.watch.as_mut()).into_iter().collect();
            inner.sort();
            open.extend(inner.into_iter().map(|name| (self.directories.len(), name)));
            self.directories.push(directory);
        }
        unreached
    }

    /// Directories with links in which git may write.
    fn with_links(&self) -> BTreeSet<PathBuf> {
        let mut parts: Vec<GitPart> = Vec::with_capacity(self.directories.len());
        let mut found = BTreeSet::new();
        for directory in &self.directories {
            let above = parts.get(directory.parent).copied().unwrap_or(GitPart::Outside);
            let part = above.of_inner(directory.name(), &directory.git);
            if part != GitPart::Outside && directory.git.has_links {
                found.insert(path_in(directory.path.as_bytes()));
            }
            parts.push(part);
        }
        found
    }

    pub(super) fn overview(&self) -> RootOverview {
        self.overview.clone()
    }

    fn summary(&self, unreached: Unreached) -> RootOverview {
        let Unreached { first, crowded } = unreached;
        let mut found = RootOverview { unreached: first, crowded, ..RootOverview::default() };
        found.with_links = self.with_links();
        for directory in self.directories.iter().filter(|directory| directory.git.is_remarkable()) {
            let path = path_in(directory.path.as_bytes());
            found.unlisted.extend(directory.git.unlisted.map(|why| (path.clone(), why)));
            found.repositories.extend(directory.git.dot_git.iter().map(|name| path.join(name)));
            if directory.git.is_repository && !path.as_os_str().is_empty() {
                found.repositories.insert(path);
            }
        }
        found
    }
}

/// What exceeded the limits.
#[derive(Debug, Default)]
struct Unreached {
    first: Option<PathBuf>,
    /// Directories of repositories that contain such directories.
    crowded: BTreeSet<PathBuf>,
}

fn is_in_git(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|name| is_dot_git(OsStr::from_bytes(name)))
}

/// The stamps of many directories, by their numbers.
fn stamps(root: &OwnedFd, directories: &[CachedDirectory], numbers: &[usize]) -> Vec<Option<DirectoryStamp>> {
    let of_all = |part: &[usize]| part.iter().map(|at| stamp(root, &directories[*at])).collect::<Vec<_>>();
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(STAT_THREADS);
    let threads = cores.min(numbers.len().div_ceil(STAT_BATCH)).max(1);
    let mut parts = numbers.chunks(numbers.len().div_ceil(threads).max(1));
    std::thread::scope(|scope| {
        let own = parts.next().unwrap_or_default();
        let others: Vec<_> = parts.map(|part| (part, scope.spawn(move || of_all(part)))).collect();
        let mut found = of_all(own);
        for (part, other) in others {
            found.extend(other.join().unwrap_or_else(|_| of_all(part)));
        }
        found
    })
}
