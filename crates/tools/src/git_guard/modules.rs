//! Repositories that an index leads to, wherever they lie: `git status` goes into each and follows its configuration.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};

use super::state::{Piece, State, enter, names};
use crate::git_index;
use crate::limits::{GIT_GUARD_MODULES, GIT_INDEX_BYTES};

/// A repository and its work tree, both relative to the root.
type Tree = (PathBuf, PathBuf);

impl State {
    /// Adds what the indexes lead to, those of modules in modules included.
    pub(super) fn follow_modules(&mut self, root: &OwnedFd, real: &Path) {
        let own = self.repositories.keys().filter(|path| path.file_name() == Some(OsStr::new(".git")));
        let own = own.map(|path| (path.clone(), tree_of(path)));
        let led = self.pointers.iter().filter_map(|(path, piece)| led_to(real, path, piece));
        let (own, led): (Vec<Tree>, Vec<Tree>) = (own.collect(), led.collect());
        led.iter().for_each(|(git, _)| self.lead(root, real, git));
        let mut open: VecDeque<Tree> = own.into_iter().chain(led).collect();
        let mut left = GIT_GUARD_MODULES;
        while let Some((git, tree)) = open.pop_front() {
            for module in modules(root, &git) {
                // Names without a repository count for nothing: they must not push out others.
                if left > 0
                    && let Some(led) = self.follow(root, real, tree.join(module))
                {
                    left -= 1;
                    open.push_back(led);
                }
            }
        }
    }

    fn follow(&mut self, root: &OwnedFd, real: &Path, tree: PathBuf) -> Option<Tree> {
        let path = tree.join(".git");
        if self.repositories.contains_key(&path) || self.pointers.contains_key(&path) {
            return None;
        }
        let directory = enter(root, &tree).ok()?;
        let stat = fs::statat(&directory, ".git", AtFlags::SYMLINK_NOFOLLOW).ok()?;
        self.meet(&directory, OsStr::new(".git"), FileType::from_raw_mode(stat.st_mode), path.clone());
        match self.pointers.get(&path) {
            Some(piece) => {
                let led = led_to(real, &path, piece)?;
                self.lead(root, real, &led.0);
                Some(led)
            }
            None => Some((path, tree)),
        }
    }

    /// A repository that a pointer leads to, at any depth, and the one whose configuration it shares.
    fn lead(&mut self, root: &OwnedFd, real: &Path, git: &Path) {
        self.add_at(root, git);
        let shared = self.repositories.get(git).and_then(|found| found.control.get(OsStr::new("commondir")));
        let Some(Piece::Text(text)) = shared else { return };
        if let Some(shared) = inside(real, &real.join(git).join(path_in(text))) {
            self.add_at(root, &shared);
        }
    }

    fn add_at(&mut self, root: &OwnedFd, path: &Path) {
        if !self.repositories.contains_key(path)
            && let Ok(git) = enter(root, path)
        {
            self.add(path.to_owned(), &git);
        }
    }
}

fn tree_of(git: &Path) -> PathBuf {
    git.parent().unwrap_or(Path::new("")).to_path_buf()
}

/// Where a `.git` that is no directory leads, if that is in the root.
fn led_to(real: &Path, path: &Path, piece: &Piece) -> Option<Tree> {
    let tree = tree_of(path);
    let git = inside(real, &real.join(&tree).join(pointed_at(piece)?))?;
    Some((git, tree))
}

/// As git would come there, links included, relative to the root.
fn inside(real: &Path, path: &Path) -> Option<PathBuf> {
    Some(path.canonicalize().ok()?.strip_prefix(real).ok()?.to_path_buf())
}

/// What a `.git` that is no directory says, byte by byte as git reads it.
pub(super) fn pointed_at(piece: &Piece) -> Option<PathBuf> {
    match piece {
        Piece::Text(text) => Some(path_in(text.strip_prefix(b"gitdir: ")?)),
        Piece::Link(led) => Some(led.clone()),
        Piece::Other => None,
    }
}

/// A path that is the text of a file: git takes off line ends only, and stops at a NUL.
fn path_in(text: &[u8]) -> PathBuf {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    PathBuf::from(OsStr::from_bytes(&text[..end]))
}

/// The modules in the index of a repository and in the files that it may share with others.
fn modules(root: &OwnedFd, git: &Path) -> Vec<PathBuf> {
    let Ok(directory) = enter(root, git) else { return Vec::new() };
    let entries = names(&directory).unwrap_or_default();
    let is_index = |name: &OsStr| name == "index" || name.as_bytes().starts_with(b"sharedindex.");
    let mut found = Vec::new();
    for (name, _) in entries.iter().filter(|(name, kind)| *kind == FileType::RegularFile && is_index(name)) {
        let modules = read(&directory, name).map(|index| git_index::modules(&index));
        found.extend(modules.unwrap_or_default().iter().map(|name| PathBuf::from(OsStr::from_bytes(name))));
    }
    found.retain(|module| module.components().all(|part| matches!(part, Component::Normal(_))));
    found
}

fn read(directory: &OwnedFd, name: &OsStr) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(fs::openat(directory, name, flags, Mode::empty()).ok()?);
    let mut index = Vec::new();
    // One that is longer counts as far as it was read.
    file.take(GIT_INDEX_BYTES).read_to_end(&mut index).ok()?;
    Some(index)
}
