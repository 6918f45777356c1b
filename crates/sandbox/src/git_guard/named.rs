//! Files in the roots that the user's own git configuration names: hooks (`core.hooksPath`), other
//! configuration (`include.path`), programs and scripts (`core.fsmonitor`, filters, aliases). Git runs or obeys
//! them when the user calls it.
//!
//! Considers every configuration that git would read: the machine's, the user's, and those of the repositories,
//! with everything they include, whatever the condition, for each work tree. Only looks: `undo` decides which
//! of them were changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::below::ProtectedCopy;
use super::command_words::{paths_in, runs_a_command};
use super::configuration::{Setting, is_harmless_key, settings};
use super::known::steps_below;
use super::lossless;
use super::state::{ControlFile, RepositoryState};
use crate::limits::{GIT_CONFIG_BYTES, GIT_CONFIG_FILES, NAMED_BY_GIT};
use crate::paths::normal;
use crate::regular_file;

/// A file or directory in a root that the user's own programs run or read, in its current state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NamedPath {
    pub(super) origin: NameOrigin,
    /// `None` if there is nothing.
    pub(super) held: Option<ProtectedCopy>,
}

/// What names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NameOrigin {
    pub(super) by: NamedBy,
    /// The repository, by its `.git` below the same root: what a new repository names was not known before.
    /// Empty if it lies elsewhere.
    #[serde(with = "lossless::path")]
    pub(super) repository: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NamedBy {
    /// A link of the home.
    Home,
    /// A setting of git: a file, or a directory with everything in it.
    Setting,
    /// A setting with a directory of programs that git runs only when it changes something.
    Hooks,
    /// A command in a setting of git: only a file counts.
    Command,
}

impl NamedPath {
    pub(super) fn of(root: &std::os::fd::OwnedFd, path: &Path, origin: NameOrigin) -> Self {
        let is_meant = |held: &ProtectedCopy| origin.by != NamedBy::Command || !held.is_directory();
        Self { held: ProtectedCopy::of(root, path).filter(is_meant), origin }
    }
}

/// Keys whose value is a directory of programs.
const DIRECTORIES: [(&str, &str); 2] = [("core", "hookspath"), ("init", "templatedir")];

/// Sections that name more files of configuration.
const INCLUDES: [(&str, &str); 2] = [("include", "path"), ("includeif", "path")];

/// Keys whose files decide no more than `.gitattributes` and `.gitignore` beside them, which anyone may write.
const LISTS: [(&str, &str); 2] = [("core", "attributesfile"), ("core", "excludesfile")];

/// The configuration that every repository obeys, with any owner.
pub(super) fn general_files() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = std::env::home_dir();
    let at_home = |path: &str| home.as_ref().map(|home| home.join(path));
    let config = variable("XDG_CONFIG_HOME").or_else(|| at_home(".config"));
    let global = match variable("GIT_CONFIG_GLOBAL") {
        Some(named) => vec![named],
        None => {
            at_home(".gitconfig").into_iter().chain(config.map(|config| config.join("git/config"))).collect()
        }
    };
    let system = variable("GIT_CONFIG_SYSTEM").unwrap_or_else(|| PathBuf::from("/etc/gitconfig"));
    global.into_iter().chain([system]).collect()
}

/// A work tree, the repositories that govern it, and its name in the root.
pub(super) struct GovernedTree<'a> {
    /// Where it is.
    pub(super) tree: PathBuf,
    /// Its repository, and the one whose configuration that shares, each with its path.
    pub(super) repositories: Vec<(PathBuf, &'a RepositoryState)>,
    /// As in `NameOrigin`.
    pub(super) repository: PathBuf,
}

/// One look at the configurations that govern a root's work trees.
pub(super) struct Names<'a> {
    /// The root's real path.
    real: &'a Path,
    home: Option<PathBuf>,
    /// Files that every repository obeys.
    general: &'a [PathBuf],
    /// The files we have read, because most repositories obey the same ones.
    texts: BTreeMap<PathBuf, ConfigurationText>,
    found: NamedPaths,
}

/// What configurations name in a root.
#[derive(Debug, Default)]
pub(super) struct NamedPaths {
    /// By path below the root.
    pub(super) origins: BTreeMap<PathBuf, NameOrigin>,
    /// Repositories, as in `NameOrigin`, that name too much for us to know all of it.
    pub(super) cut: BTreeSet<PathBuf>,
    /// Files that git would read and we could not, so that we do not know what they name.
    pub(super) unread: BTreeSet<PathBuf>,
}

/// A file that git reads.
#[derive(Clone, Debug)]
struct ConfigurationText {
    text: String,
    coverage: Coverage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    Whole,
    /// The file is too large, or we could not read it at all.
    InPart,
}

/// The work tree for which we read a configuration, and the files that we have read for it.
struct Reading<'a> {
    tree: &'a Path,
    repository: &'a Path,
    seen: BTreeSet<PathBuf>,
}

impl<'a> Names<'a> {
    /// Only names below the root, relative to it.
    pub(super) fn of(real: &'a Path, trees: &[GovernedTree<'_>], general: &'a [PathBuf]) -> NamedPaths {
        let home = std::env::home_dir();
        let (texts, found) = (BTreeMap::new(), NamedPaths::default());
        let mut names = Self { real, home, general, texts, found };
        // Only to read them first: a repository's includes must not use up the limit before them.
        names.governing();
        names.found = NamedPaths::default();
        for GovernedTree { tree, repositories, repository } in trees {
            let mut reading = Reading { tree, repository, seen: BTreeSet::new() };
            for (git, state) in repositories {
                for name in ["config", "config.worktree"] {
                    if let Some(ControlFile::Text(text)) = state.control.get(OsStr::new(name)) {
                        names.text(&String::from_utf8_lossy(text), git, &mut reading);
                    }
                }
            }
            general.iter().for_each(|file| names.file(file, &mut reading));
        }
        names.governing();
        names.found
    }

    /// The repository that contains the root, which may lie above it or, for a linked work tree, elsewhere;
    /// without one, what every repository obeys.
    fn governing(&mut self) {
        let (tree, own) = match governing(self.real).next() {
            Some((tree, Ok(git))) => {
                let common = common_directory(&git).unwrap_or_else(|unread| {
                    self.found.unread.insert(unread.0);
                    git.clone()
                });
                (tree, vec![common.join("config"), git.join("config.worktree")])
            }
            Some((tree, Err(unread))) => {
                self.found.unread.insert(unread.0);
                (tree, Vec::new())
            }
            None => (self.real, Vec::new()),
        };
        let mut reading = Reading { tree, repository: Path::new(""), seen: BTreeSet::new() };
        for file in own.iter().chain(self.general) {
            self.file(file, &mut reading);
        }
    }

    fn file(&mut self, file: &Path, reading: &mut Reading<'_>) {
        if !reading.seen.insert(file.to_owned()) {
            return;
        }
        if !self.texts.contains_key(file) {
            if self.texts.len() >= GIT_CONFIG_FILES {
                self.found.cut.insert(reading.repository.to_owned());
                return;
            }
            self.texts.insert(file.to_owned(), ConfigurationText::of(file));
        }
        if let Some(ConfigurationText { text, coverage }) = self.texts.get(file).cloned() {
            if coverage == Coverage::InPart {
                self.found.unread.insert(file.to_owned());
            }
            self.text(&text, file.parent().unwrap_or(Path::new("/")), reading);
        }
    }

    /// `directory` is the configuration's directory.
    fn text(&mut self, text: &str, directory: &Path, reading: &mut Reading<'_>) {
        for setting in settings(text) {
            let Setting { section, key, value, .. } = &setting;
            let is = |keys: &[(&str, &str)]| keys.contains(&(section.as_str(), key.as_str()));
            if is(&DIRECTORIES) {
                self.add(&self.path(value, reading.tree), NamedBy::Hooks, reading);
            } else if is(&INCLUDES) {
                let file = self.path(value, directory);
                self.add(&file, NamedBy::Setting, reading);
                self.file(&file, reading);
            } else if runs_a_command(section, key) {
                self.command(value, reading);
            } else if !is(&LISTS) && !is_harmless_key(section, key) {
                self.value(value, reading);
            }
        }
    }

    /// A text for a shell: adds every file that it may name, whether or not it exists.
    fn command(&mut self, value: &str, reading: &Reading<'_>) {
        let home = self.home.clone();
        for path in paths_in(value, reading.tree, home.as_deref()) {
            self.add(&path, NamedBy::Command, reading);
        }
    }

    /// A value whose meaning we do not know: adds the existing files that it names, and `./run` even if that is
    /// missing, but no directory.
    fn value(&mut self, value: &str, reading: &Reading<'_>) {
        let is_separator = |c: char| c.is_whitespace() || "'\"`;|&()<>=$!{}".contains(c);
        for word in value.split(is_separator).filter(|word| !word.is_empty()).chain([value]) {
            let path = self.path(word, reading.tree);
            let found = path.symlink_metadata();
            let is_missing_program = || word.starts_with("./") || word.starts_with("../");
            if found.map_or_else(|_| is_missing_program(), |found| !found.is_dir()) {
                self.add(&path, NamedBy::Command, reading);
            }
        }
    }

    fn path(&self, value: &str, base: &Path) -> PathBuf {
        match (value.strip_prefix("~/"), &self.home) {
            (Some(below), Some(home)) => normal(&home.join(below)),
            (Some(_), None) | (None, _) => normal(&base.join(value)),
        }
    }

    /// Adds the part of the way there, and of its target, that lies below the root. The check of `.git` covers
    /// what lies in it.
    fn add(&mut self, path: &Path, by: NamedBy, reading: &Reading<'_>) {
        for below in steps_below(self.real, path) {
            let is_git = below.components().any(|name| name.as_os_str() == ".git");
            let is_known = self.found.origins.contains_key(&below);
            if !is_git && !is_known && self.found.origins.len() >= NAMED_BY_GIT {
                self.found.cut.insert(reading.repository.to_owned());
            }
            if is_git || !is_known && self.found.origins.len() >= NAMED_BY_GIT {
                continue;
            }
            let origin = NameOrigin { by, repository: reading.repository.to_owned() };
            let found = self.found.origins.entry(below).or_insert(origin);
            // As a directory it counts with everything in it.
            if by != NamedBy::Command && found.by == NamedBy::Command {
                found.by = by;
            }
        }
    }
}

impl ConfigurationText {
    /// Without a text if there is no file.
    fn of(file: &Path) -> Self {
        match regular_file::read_if_there(file, GIT_CONFIG_BYTES) {
            Ok(bytes) => {
                let bytes = bytes.unwrap_or_default();
                let is_whole = bytes.len() as u64 <= GIT_CONFIG_BYTES;
                let coverage = if is_whole { Coverage::Whole } else { Coverage::InPart };
                Self { text: String::from_utf8_lossy(&bytes).into_owned(), coverage }
            }
            Err(_) => Self { text: String::new(), coverage: Coverage::InPart },
        }
    }
}

/// A file that says where a repository is and that we could not read.
#[derive(Debug)]
pub(super) struct UnreadPointer(pub(super) PathBuf);

/// The work trees around a directory, the innermost first, each with its repository.
pub(super) fn governing(directory: &Path) -> impl Iterator<Item = (&Path, Result<PathBuf, UnreadPointer>)> {
    directory.ancestors().filter_map(|tree| Some((tree, git_directory(&tree.join(".git")).transpose()?)))
}

/// Where `.git` is, or where a file of that name leads.
fn git_directory(git: &Path) -> Result<Option<PathBuf>, UnreadPointer> {
    if git.is_dir() {
        return Ok(Some(git.to_owned()));
    }
    let text = pointer(git)?;
    let named = text.as_deref().and_then(|text| text.strip_prefix("gitdir:"));
    Ok(named.zip(git.parent()).map(|(named, tree)| normal(&tree.join(named.trim()))))
}

/// The directory that the work trees of a repository share.
pub(super) fn common_directory(git: &Path) -> Result<PathBuf, UnreadPointer> {
    let text = pointer(&git.join("commondir"))?;
    Ok(text.map_or_else(|| git.to_owned(), |text| normal(&git.join(text.trim()))))
}

/// Reads safely, because a command may have put a pipe in its place.
fn pointer(file: &Path) -> Result<Option<String>, UnreadPointer> {
    let read = regular_file::read_if_there(file, GIT_CONFIG_BYTES);
    let bytes = read.map_err(|_| UnreadPointer(file.to_owned()))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
