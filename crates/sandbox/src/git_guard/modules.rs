//! Repositories that indexes and pointers lead to, wherever in the roots they lie: `git status` enters each one
//! and obeys its configuration.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::configuration::work_trees;
use super::directory_cache::{RootOverview, overview};
use super::entries::{enter, names};
use super::known::KnownPaths;
use super::links::{hard_linked, note_links};
use super::named::{GovernedTree, NamedPaths, Names, general_files, governing};
use super::state::{ControlFile, RepositoryState, RootState};
use super::unseen::{NotSeen, not_seen, note_unseen};
use crate::git_index::{self, IndexParts};
use crate::limits::{GIT_GUARD_MODULES, GIT_INDEX_BYTES};
use crate::sandbox::is_always_read_only;

/// A root that we look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct RootPlace<'a> {
    pub(super) handle: &'a OwnedFd,
    /// Its real path.
    pub(super) real: &'a Path,
}

/// The number of a root, and a path relative to it.
type At = (usize, PathBuf);

/// A repository, and a work tree of it.
type WorkTree = (At, At);

/// The state of every root, including what leads from one root into another. `known` has one entry for each
/// root.
fn look(places: &[RootPlace<'_>], known: &[KnownPaths]) -> Vec<RootState> {
    look_by(places, known, RootState::of)
}

/// What concerns only git, without a search: earlier looks or the times of directories have found every
/// repository of the roots.
pub(super) fn look_at_repositories(places: &[RootPlace<'_>]) -> Vec<RootState> {
    let known = |place: &RootPlace<'_>| {
        KnownPaths::default().with_repositories(&overview(place.handle).repositories).0
    };
    let known: Vec<KnownPaths> = places.iter().map(known).collect();
    look_by(places, &known, RootState::of_repositories)
}

fn look_by(
    places: &[RootPlace<'_>],
    known: &[KnownPaths],
    state_of: fn(&OwnedFd, &KnownPaths) -> RootState,
) -> Vec<RootState> {
    let unknown = KnownPaths::default();
    let known = || known.iter().chain(std::iter::repeat(&unknown));
    let states = places.iter().zip(known()).map(|(place, known)| state_of(place.handle, known)).collect();
    let mut looking = Search { places, states, trees: Vec::new() };
    looking.follow();
    let general = general_files();
    let named: Vec<_> = (0..places.len()).map(|root| looking.named(root, &general)).collect();
    for (((place, known), state), named) in places.iter().zip(known()).zip(&mut looking.states).zip(named) {
        let cut = named.cut.into_iter().filter(|path| !path.as_os_str().is_empty());
        state.unseen.extend(cut.map(|path| (path, NotSeen::TooMany)));
        state.unread = named.unread;
        state.look_at_named(place.handle, known, named.origins);
    }
    looking.states
}

/// The same with every repository in the roots, however deep. Lists nothing of a root that no command can
/// write.
pub(super) fn look_everywhere(places: &[RootPlace<'_>], known: Vec<KnownPaths>) -> Vec<RootState> {
    let overviews = places.iter().map(|place| match is_always_read_only(place.real) {
        true => RootOverview::default(),
        false => overview(place.handle),
    });
    let overviews: Vec<RootOverview> = overviews.collect();
    let known = known.into_iter().zip(&overviews);
    let (known, too_many): (Vec<_>, Vec<_>) =
        known.map(|(known, overview)| known.with_repositories(&overview.repositories)).unzip();
    let mut states = look(places, &known);
    let overviews = overviews.into_iter().zip(too_many);
    for ((state, place), (overview, too_many)) in states.iter_mut().zip(places).zip(overviews) {
        // No project has so many. If a command adds one and only the search finds it, we set it aside.
        let is_unmet = |path: &PathBuf| {
            let is_aside = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b".git.disabled"));
            !is_aside && !state.repositories.contains_key(path) && !state.pointers.contains_key(path)
        };
        let too_many: Vec<PathBuf> = too_many.into_iter().filter(is_unmet).collect();
        state.unseen.extend(too_many.into_iter().map(|path| (path, NotSeen::TooMany)));
        state.unseen.extend(overview.unlisted);
        state.unreached = overview.unreached;
        state.unseen.extend(overview.crowded.into_iter().map(|path| (path, NotSeen::TooMany)));
        note_links(place.handle, &overview.with_links, state);
        state.hard_linked = hard_linked(place.handle, state);
    }
    states
}

struct Search<'a> {
    places: &'a [RootPlace<'a>],
    states: Vec<RootState>,
    /// All work trees that we found.
    trees: Vec<WorkTree>,
}

impl Search<'_> {
    /// Adds what pointers and indexes lead to, including modules within modules.
    fn follow(&mut self) {
        let mut open = self.trees();
        let mut left = GIT_GUARD_MODULES;
        for (root, path) in self.governed() {
            open.extend(self.visit(root, path, &mut left));
        }
        while let Some((git, (root, tree))) = open.pop_front() {
            self.trees.push((git.clone(), (root, tree.clone())));
            for module in self.modules(&git) {
                open.extend(self.visit(root, tree.join(module).join(".git"), &mut left));
            }
        }
    }

    /// What the user's git configuration names in a root.
    fn named(&self, root: usize, general: &[PathBuf]) -> NamedPaths {
        let absolute = |(root, path): &At| self.places[*root].real.join(path);
        let trees = self.trees.iter().map(|(git, tree)| {
            let shared = self.repository(git).and_then(|found| self.shared_by(git, found));
            let repositories = [Some(git), shared.as_ref()].into_iter().flatten();
            let repositories = repositories.filter_map(|at| Some((absolute(at), self.repository(at)?)));
            let repository = if tree.0 == root { tree.1.join(".git") } else { PathBuf::new() };
            GovernedTree { tree: absolute(tree), repositories: repositories.collect(), repository }
        });
        let gits: BTreeSet<&At> = self.trees.iter().map(|(git, _)| git).collect();
        let bare = self.states[root].repositories.iter().filter(|(path, _)| {
            // The others have work trees.
            !gits.contains(&(root, (*path).clone()))
        });
        let bare = bare.map(|(path, state)| {
            let git = self.places[root].real.join(path);
            GovernedTree { tree: git.clone(), repositories: vec![(git, state)], repository: path.clone() }
        });
        let trees: Vec<GovernedTree<'_>> = trees.chain(bare).collect();
        Names::of(self.places[root].real, &trees, general)
    }

    /// Adds the `.git` of a module, if there is one.
    fn visit(&mut self, root: usize, path: PathBuf, left: &mut usize) -> Vec<WorkTree> {
        // Names without a repository do not count, so that they cannot push out others.
        let Some(kind) = self.unmet(root, &path) else { return Vec::new() };
        if *left == 0 {
            self.states[root].unseen.insert(path, NotSeen::TooMany);
            return Vec::new();
        }
        *left -= 1;
        self.meet(root, path, kind)
    }

    /// The modules in the roots, each by its `.git`, of repositories outside: a root may be a part of a work
    /// tree, or a linked one.
    fn governed(&self) -> Vec<At> {
        // A pointer that we cannot read is reported where we look for its configuration.
        let trees = self.places.iter().flat_map(|place| governing(place.real));
        let mut trees: Vec<(&Path, PathBuf)> =
            trees.filter_map(|(tree, git)| Some((tree, git.ok()?))).collect();
        trees.retain(|(_, git)| !self.places.iter().any(|place| git.starts_with(place.real)));
        trees.sort();
        trees.dedup();
        let mut found = Vec::new();
        for (tree, git) in trees {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let Ok(git) = fs::open(&git, flags, Mode::empty()) else { continue };
            let modules = IndexedModules::of(&git).names.into_iter();
            let paths: Vec<PathBuf> = modules.map(|module| tree.join(module).join(".git")).collect();
            for (root, place) in self.places.iter().enumerate() {
                let below = paths.iter().filter_map(|path| path.strip_prefix(place.real).ok());
                found.extend(below.map(|path| (root, path.to_owned())));
            }
        }
        found
    }

    /// What the search found, with the work trees of each.
    fn trees(&mut self) -> VecDeque<WorkTree> {
        let mut found = VecDeque::new();
        for root in 0..self.states.len() {
            let repositories: Vec<PathBuf> = self.states[root].repositories.keys().cloned().collect();
            let pointers: Vec<PathBuf> = self.states[root].pointers.keys().cloned().collect();
            for path in repositories {
                self.share(&(root, path.clone()));
                found.extend(self.configured((root, path.clone())));
                if path.file_name() == Some(OsStr::new(".git")) {
                    found.push_back(((root, path.clone()), (root, tree_of(&path))));
                }
            }
            for path in pointers {
                found.extend(self.led(root, &path));
            }
        }
        found
    }

    /// The kind of a `.git` that we have not looked at yet.
    fn unmet(&self, root: usize, path: &Path) -> Option<FileType> {
        let state = &self.states[root];
        if state.repositories.contains_key(path) || state.pointers.contains_key(path) {
            return None;
        }
        let handle = self.places[root].handle;
        // Most names are files, which this tells at once.
        fs::statat(handle, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let directory = enter(handle, &tree_of(path)).ok()?;
        let stat = fs::statat(&directory, ".git", AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode))
    }

    fn meet(&mut self, root: usize, path: PathBuf, kind: FileType) -> Vec<WorkTree> {
        let directory = match enter(self.places[root].handle, &tree_of(&path)) {
            Ok(directory) => directory,
            Err(error) => {
                note_unseen(&mut self.states[root].unseen, &path, error);
                return Vec::new();
            }
        };
        self.states[root].meet(&directory, OsStr::new(".git"), kind, path.clone());
        if self.states[root].pointers.contains_key(&path) {
            return self.led(root, &path);
        }
        let git = (root, path.clone());
        self.share(&git);
        let mut trees = self.configured(git.clone());
        trees.push((git, (root, tree_of(&path))));
        trees
    }

    /// Where a `.git` that is no directory leads: the repository there, at any depth, and the one whose
    /// configuration it shares.
    fn led(&mut self, root: usize, path: &Path) -> Vec<WorkTree> {
        let tree = tree_of(path);
        let led = self.states[root].pointers.get(path).and_then(pointed_at);
        let Some(git) = led.and_then(|led| self.locate(root, &tree, &led)) else { return Vec::new() };
        self.add(&git);
        self.share(&git);
        let mut trees = self.configured(git.clone());
        trees.push((git, (root, tree)));
        trees
    }

    /// Adds the repository whose configuration another one shares.
    fn share(&mut self, git: &At) {
        if let Some(shared) = self.repository(git).and_then(|found| self.shared_by(git, found)) {
            self.add(&shared);
        }
    }

    fn shared_by(&self, git: &At, found: &RepositoryState) -> Option<At> {
        let text = found.control.get(OsStr::new("commondir"))?.text()?;
        self.locate(git.0, &git.1, &path_in(text))
    }

    /// The work trees that a repository's configuration names, where git looks for modules, or its `gitdir`:
    /// linked work trees may lie deeper than any search.
    fn configured(&self, git: At) -> Vec<WorkTree> {
        let Some(found) = self.repository(&git) else { return Vec::new() };
        let texts = ["config", "config.worktree"].map(|name| found.control.get(OsStr::new(name)));
        let texts =
            texts.into_iter().flatten().filter_map(|piece| Some(String::from_utf8_lossy(piece.text()?)));
        let named: Vec<String> = texts.flat_map(|text| work_trees(&text)).collect();
        let linked = found.control.get(OsStr::new("gitdir")).and_then(ControlFile::text);
        let linked = linked.and_then(|text| path_in(text).parent().map(Path::to_owned));
        let trees = named.iter().map(PathBuf::from).chain(linked);
        let trees = trees.filter_map(|tree| self.locate(git.0, &git.1, &tree));
        trees.map(|tree| (git.clone(), tree)).collect()
    }

    fn repository(&self, git: &At) -> Option<&RepositoryState> {
        self.states[git.0].repositories.get(&git.1)
    }

    fn add(&mut self, (root, path): &At) {
        if self.states[*root].repositories.contains_key(path) {
            return;
        }
        match enter(self.places[*root].handle, path) {
            Ok(git) => self.states[*root].add(path.clone(), &git),
            Err(error) => note_unseen(&mut self.states[*root].unseen, path, error),
        }
    }

    /// Where git gets from a directory of a root by a path, following links, if that is in this root or another
    /// one.
    fn locate(&self, root: usize, directory: &Path, path: &Path) -> Option<At> {
        let real = self.places[root].real.join(directory).join(path).canonicalize().ok()?;
        let in_root =
            |root: usize| Some((root, real.strip_prefix(self.places[root].real).ok()?.to_path_buf()));
        in_root(root).or_else(|| (0..self.places.len()).find_map(in_root))
    }

    fn modules(&mut self, (root, git): &At) -> Vec<PathBuf> {
        let unseen = &mut self.states[*root].unseen;
        match enter(self.places[*root].handle, git).map(|directory| IndexedModules::of(&directory)) {
            Ok(IndexedModules { names, unseen: parts }) => {
                let place = |name: OsString| if name.is_empty() { git.clone() } else { git.join(name) };
                unseen.extend(parts.into_iter().map(|(name, why)| (place(name), why)));
                names
            }
            Err(error) => {
                note_unseen(unseen, git, error);
                Vec::new()
            }
        }
    }
}

/// The modules in a repository's index and in the files that it may share with others.
struct IndexedModules {
    names: Vec<PathBuf>,
    /// Files that we did not read completely. Without a name if we could not list them.
    unseen: Vec<(OsString, NotSeen)>,
}

impl IndexedModules {
    fn of(git: &OwnedFd) -> Self {
        let listed = names(git);
        let unlisted = listed.as_ref().err().and_then(|error| not_seen(*error));
        let entries = listed.unwrap_or_default();
        let is_shared = |name: &OsStr| name.as_bytes().starts_with(b"sharedindex.");
        let shared = entries.iter().filter(|(name, kind)| *kind == FileType::RegularFile && is_shared(name));
        let shared: Vec<&OsStr> = shared.map(|(name, _)| name.as_os_str()).collect();
        let parts = if shared.is_empty() { IndexParts::One } else { IndexParts::Several };
        let unlisted = unlisted.map(|why| (OsString::new(), why));
        let mut found = Self { names: Vec::new(), unseen: unlisted.into_iter().collect() };
        for name in shared.into_iter().chain([OsStr::new("index")]) {
            let index = match read(git, name) {
                Ok(index) => index,
                Err(error) => {
                    // A file whose mode keeps us out keeps git out, too.
                    found.unseen.extend(not_seen(error).map(|_| (name.to_owned(), NotSeen::Failed)));
                    continue;
                }
            };
            if index.len() as u64 > GIT_INDEX_BYTES {
                found.unseen.push((name.to_owned(), NotSeen::TooMany));
            }
            let modules = git_index::modules(&index, parts);
            found.names.extend(modules.iter().map(|name| PathBuf::from(OsStr::from_bytes(name))));
        }
        found.names.retain(|module| module.components().all(|part| matches!(part, Component::Normal(_))));
        found
    }
}

fn tree_of(git: &Path) -> PathBuf {
    git.parent().unwrap_or(Path::new("")).to_path_buf()
}

/// The content of a `.git` that is no directory, byte by byte as git reads it.
pub(super) fn pointed_at(piece: &ControlFile) -> Option<PathBuf> {
    match piece {
        ControlFile::Text(text) => Some(path_in(text.strip_prefix(b"gitdir: ")?)),
        ControlFile::Link(led) => Some(led.clone()),
        ControlFile::Large(..) | ControlFile::Other => None,
    }
}

/// A path that is the whole text of a file: git removes only line ends, and stops at a NUL.
fn path_in(text: &[u8]) -> PathBuf {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    PathBuf::from(OsStr::from_bytes(&text[..end]))
}

/// A file beyond the limit is cut one byte after it.
fn read(directory: &OwnedFd, name: &OsStr) -> Result<Vec<u8>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(fs::openat(directory, name, flags, Mode::empty())?);
    let mut index = Vec::new();
    let read = file.take(GIT_INDEX_BYTES + 1).read_to_end(&mut index);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(index)
}
