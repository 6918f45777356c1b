//! Applies `.gitignore` and similar files to the names that a walk finds. Reads them itself: only small regular
//! files below the searched place or in the directories above it, never through a link (git does not follow one
//! there either). The library that walks would open anything with their name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use attache_sandbox::paths::normal;
use attache_sandbox::regular_file;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};

use super::search_root::SearchRoot;
use crate::limits::{GIT_POINTER_BYTES, IGNORE_FILE_BYTES};

/// What a walk may skip, directory by directory.
#[derive(Debug)]
pub(super) struct IgnoreFiles<'place> {
    place: &'place SearchRoot,
    /// The user's own rules for all repositories.
    global: Gitignore,
    /// Rules of the directories seen so far. Why a lock: the threads of a walk share them.
    levels: Mutex<HashMap<PathBuf, Arc<IgnoreLevel>>>,
}

/// The rules of one directory; a directory without any uses those of the one above.
#[derive(Debug)]
struct IgnoreLevel {
    /// `.ignore`, which applies everywhere and takes precedence.
    plain: Gitignore,
    git: Gitignore,
    /// `info/exclude` of the repository with this top directory.
    exclude: Gitignore,
    top: RepositoryTop,
    above: Option<Arc<IgnoreLevel>>,
}

/// Whether a directory is the top of a repository: git's rules from above end there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RepositoryTop {
    No,
    Yes,
}

/// The lookup of one thread: most names are in the same directory as the previous one.
#[derive(Debug)]
pub(super) struct IgnoreLook<'files> {
    files: &'files IgnoreFiles<'files>,
    directory: PathBuf,
    level: Arc<IgnoreLevel>,
}

impl<'place> IgnoreFiles<'place> {
    /// Includes the rules of the directories above the place.
    pub(super) fn of(place: &'place SearchRoot) -> Self {
        let real = place.real();
        let mut above: Vec<&Path> = real.ancestors().skip(1).collect();
        above.reverse();
        let read = |path: &Path, most: usize| small(regular_file::read_real(path, most as u64), most);
        let mut level = None;
        for directory in above {
            level = IgnoreLevel::below(level, directory, &read);
        }
        let files = Self { place, global: global(real), levels: Mutex::default() };
        let root = files.read_level(level, real);
        files.levels.lock().unwrap_or_else(PoisonError::into_inner).insert(real.to_owned(), root);
        files
    }

    pub(super) fn look(&self) -> IgnoreLook<'_> {
        let directory = self.place.real().to_owned();
        let level = self.level(&directory);
        IgnoreLook { files: self, directory, level }
    }

    /// The walk has visited every directory above before.
    fn level(&self, directory: &Path) -> Arc<IgnoreLevel> {
        let known =
            |path: &Path| self.levels.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some(level) = known(directory) {
            return level;
        }
        let above = directory.ancestors().skip(1).find_map(known);
        let level = self.read_level(above, directory);
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        levels.entry(directory.to_owned()).or_insert(level).clone()
    }

    /// Reads the rules of a directory of the place, through its handle.
    fn read_level(&self, above: Option<Arc<IgnoreLevel>>, directory: &Path) -> Arc<IgnoreLevel> {
        let read = |path: &Path, most: usize| {
            small(self.place.read_small(self.place.relative(path), most as u64), most)
        };
        IgnoreLevel::below(above, directory, &read).unwrap_or_default()
    }
}

/// Whether git and similar tools ignore a directory, or one above it, up to a root. Both are real paths.
pub(crate) fn is_ignored(root: &Path, directory: &Path) -> bool {
    let read = |path: &Path, most: usize| small(regular_file::read_real(path, most as u64), most);
    let global = global(root);
    let mut above: Vec<&Path> = directory.ancestors().collect();
    above.reverse();
    let mut level: Option<Arc<IgnoreLevel>> = None;
    for directory in above {
        let is_below = directory != root && directory.starts_with(root);
        let passed_by = |level: &Arc<IgnoreLevel>| level.passes_by(directory, WalkedKind::Directory, &global);
        if is_below && level.as_ref().is_some_and(passed_by) {
            return true;
        }
        level = IgnoreLevel::below(level, directory, &read);
    }
    false
}

/// The type of an entry: some patterns match only directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkedKind {
    Directory,
    Other,
}

impl IgnoreLook<'_> {
    /// Whether to skip a name. `path` is the walk's path.
    pub(super) fn passes_by(&mut self, path: &Path, kind: WalkedKind) -> bool {
        let directory = path.parent().unwrap_or(path);
        if self.directory.as_os_str() != directory.as_os_str() {
            self.level = self.files.level(directory);
            directory.clone_into(&mut self.directory);
        }
        self.level.passes_by(path, kind, &self.files.global)
    }
}

impl Default for IgnoreLevel {
    fn default() -> Self {
        let (plain, git, exclude) = (Gitignore::empty(), Gitignore::empty(), Gitignore::empty());
        Self { plain, git, exclude, top: RepositoryTop::No, above: None }
    }
}

impl IgnoreLevel {
    /// The rules of the directory above, if this one adds nothing. `read` returns the content of a small file.
    fn below(
        above: Option<Arc<Self>>,
        directory: &Path,
        read: &dyn Fn(&Path, usize) -> Option<Vec<u8>>,
    ) -> Option<Arc<Self>> {
        let git = directory.join(".git").metadata().ok();
        let is_top = git.is_some() || directory.join(".jj").exists();
        let exclude = match &git {
            Some(found) if found.is_dir() => read(&directory.join(".git/info/exclude"), IGNORE_FILE_BYTES),
            Some(_) => excluded_elsewhere(directory, read),
            None => None,
        };
        let of_file = |name: &str| rules(directory, read(&directory.join(name), IGNORE_FILE_BYTES));
        let level = Self {
            plain: of_file(".ignore"),
            git: of_file(".gitignore"),
            exclude: rules(directory, exclude),
            top: if is_top { RepositoryTop::Yes } else { RepositoryTop::No },
            above: None,
        };
        let is_empty = level.plain.is_empty() && level.git.is_empty() && level.exclude.is_empty();
        match is_empty && !is_top {
            true => above,
            false => Some(Arc::new(Self { above, ..level })),
        }
    }

    fn passes_by(&self, path: &Path, kind: WalkedKind, global: &Gitignore) -> bool {
        let is_directory = kind == WalkedKind::Directory;
        let chain = || std::iter::successors(Some(self), |level| level.above.as_deref());
        let is_in_repository = chain().any(|level| level.top == RepositoryTop::Yes);
        let (mut plain, mut git, mut exclude) = (Match::None, Match::None, Match::None);
        let mut counts_git = is_in_repository;
        for level in chain() {
            if plain.is_none() {
                plain = level.plain.matched(path, is_directory);
            }
            if counts_git && git.is_none() {
                git = level.git.matched(path, is_directory);
            }
            if counts_git && exclude.is_none() {
                exclude = level.exclude.matched(path, is_directory);
            }
            counts_git &= level.top == RepositoryTop::No;
        }
        let everywhere = match is_in_repository {
            true => global.matched(path, is_directory),
            false => Match::None,
        };
        plain.or(git).or(exclude).or(everywhere).is_ignore()
    }
}

/// `info/exclude` of a work tree or submodule, whose `.git` is a file with the path of its repository. Follows
/// links up to the repository, not within it.
fn excluded_elsewhere(directory: &Path, read: &dyn Fn(&Path, usize) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let first_line = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).ok()?;
        text.lines().next().map(str::to_owned)
    };
    let pointer = first_line(read(&directory.join(".git"), GIT_POINTER_BYTES)?)?;
    let repository = normal(&directory.join(pointer.strip_prefix("gitdir: ")?)).canonicalize().ok()?;
    let outside = |path: PathBuf, most: usize| small(regular_file::read_real(&path, most as u64), most);
    let common = first_line(outside(repository.join("commondir"), GIT_POINTER_BYTES)?)?;
    let common = normal(&repository.join(common)).canonicalize().ok()?;
    outside(common.join("info/exclude"), IGNORE_FILE_BYTES)
}

/// The user's rules for all repositories; only the user can write that file.
fn global(root: &Path) -> Gitignore {
    let path = gitconfig_excludes_path();
    let read =
        path.and_then(|path| small(regular_file::read(&path, IGNORE_FILE_BYTES as u64), IGNORE_FILE_BYTES));
    rules(root, read)
}

/// Ignores a larger file, because what is read is limited.
fn small(read: std::io::Result<Vec<u8>>, most: usize) -> Option<Vec<u8>> {
    read.ok().filter(|bytes| bytes.len() <= most)
}

/// Skips a line that can't be parsed; bytes that are no text end the file.
fn rules(directory: &Path, bytes: Option<Vec<u8>>) -> Gitignore {
    let Some(bytes) = bytes else { return Gitignore::empty() };
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    let mut builder = GitignoreBuilder::new(directory);
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { break };
        if let Err(error) = builder.add_line(None, line.strip_suffix('\r').unwrap_or(line)) {
            tracing::debug!(%error, "a line of an ignore file is passed over");
        }
    }
    builder.build().unwrap_or_else(|error| {
        tracing::debug!(%error, "an ignore file is passed over");
        Gitignore::empty()
    })
}
