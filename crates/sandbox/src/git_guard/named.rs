//! Files in the roots that its user's own configuration of git names: hooks (`core.hooksPath`), other
//! configuration (`include.path`), programs and scripts (`core.fsmonitor`, filters, aliases). Git runs or obeys
//! them when its user calls it.
//!
//! Every configuration counts that git would read: the machine's, the user's, and those of the repositories,
//! with all they include, whatever the condition, for each work tree. Only looks: which of them were changed is
//! for `undo` to say.

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

/// Something that its user's own programs run or read, as it is in a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NamedPath {
    pub(super) origin: NameOrigin,
    /// `None` where nothing is.
    pub(super) held: Option<ProtectedCopy>,
}

/// What names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NameOrigin {
    pub(super) by: NamedBy,
    /// The repository, by its `.git` below the same root: what a new one names was not known before. Empty if
    /// it lies elsewhere.
    #[serde(with = "lossless::path")]
    pub(super) repository: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NamedBy {
    /// A link of the home.
    Home,
    /// A setting of git: a file, or a directory with all that is in it.
    Setting,
    /// The same for a directory of programs that git runs only when it changes something.
    Hooks,
    /// A command in a setting of git: a file only.
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

/// Sections with files of more configuration.
const INCLUDES: [(&str, &str); 2] = [("include", "path"), ("includeif", "path")];

/// Keys whose files decide no more than `.gitattributes` and `.gitignore` beside them, which anyone may write.
const LISTS: [(&str, &str); 2] = [("core", "attributesfile"), ("core", "excludesfile")];

/// What every repository obeys, whoever it belongs to.
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

/// A work tree, the repositories that govern it, and how a root calls it.
pub(super) struct GovernedTree<'a> {
    /// Where it is.
    pub(super) tree: PathBuf,
    /// Its repository, and the one whose configuration that shares, each with its place.
    pub(super) repositories: Vec<(PathBuf, &'a RepositoryState)>,
    /// As in `NameOrigin`.
    pub(super) repository: PathBuf,
}

/// One look at the configurations that govern a root's work trees.
pub(super) struct Names<'a> {
    /// The root as it really is.
    real: &'a Path,
    home: Option<PathBuf>,
    /// Files that every repository obeys.
    general: &'a [PathBuf],
    /// What was read: most repositories obey the same files.
    texts: BTreeMap<PathBuf, ConfigurationText>,
    found: NamedPaths,
}

/// What configurations name in a root.
#[derive(Debug, Default)]
pub(super) struct NamedPaths {
    /// By path below the root.
    pub(super) origins: BTreeMap<PathBuf, NameOrigin>,
    /// Repositories, as in `NameOrigin`, of which not everything is known: they name too much.
    pub(super) cut: BTreeSet<PathBuf>,
    /// Files that git would read, and we could not: what they name is not known.
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
    /// It is too large, or could not be read at all.
    InPart,
}

/// For which work tree a configuration is read, and the files that were read for it.
struct Reading<'a> {
    tree: &'a Path,
    repository: &'a Path,
    seen: BTreeSet<PathBuf>,
}

impl<'a> Names<'a> {
    /// Below the root, relative to it.
    pub(super) fn of(real: &'a Path, trees: &[GovernedTree<'_>], general: &'a [PathBuf]) -> NamedPaths {
        let home = std::env::home_dir();
        let (texts, found) = (BTreeMap::new(), NamedPaths::default());
        let mut names = Self { real, home, general, texts, found };
        // Only to read them first: what a repository includes must not keep these from being read.
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

    /// The repository that the root belongs to, which may lie above it or, for a linked work tree, elsewhere;
    /// without any, what every repository obeys.
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

    /// `directory`: where the configuration lies.
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

    /// A text for a shell: every file that it may name, there or not.
    fn command(&mut self, value: &str, reading: &Reading<'_>) {
        let home = self.home.clone();
        for path in paths_in(value, reading.tree, home.as_deref()) {
            self.add(&path, NamedBy::Command, reading);
        }
    }

    /// A value of which it is not known what it means: what it names of the files that are there, and `./run`
    /// even if that is missing, but no directory.
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

    /// What of the way there, and of what it leads to, lies below the root. What lies in `.git` is compared
    /// with it.
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
            // A directory counts with all that is in it.
            if by != NamedBy::Command && found.by == NamedBy::Command {
                found.by = by;
            }
        }
    }
}

impl ConfigurationText {
    /// Without a text where no file is.
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

/// A file that says where a repository is and that could not be read.
#[derive(Debug)]
pub(super) struct UnreadPointer(pub(super) PathBuf);

/// The work trees that a directory lies in, the innermost first, each with its repository.
pub(super) fn governing(directory: &Path) -> impl Iterator<Item = (&Path, Result<PathBuf, UnreadPointer>)> {
    directory.ancestors().filter_map(|tree| Some((tree, git_directory(&tree.join(".git")).transpose()?)))
}

/// Where `.git` is, or where the file of that name leads.
fn git_directory(git: &Path) -> Result<Option<PathBuf>, UnreadPointer> {
    if git.is_dir() {
        return Ok(Some(git.to_owned()));
    }
    let text = pointer(git)?;
    let named = text.as_deref().and_then(|text| text.strip_prefix("gitdir:"));
    Ok(named.zip(git.parent()).map(|(named, tree)| normal(&tree.join(named.trim()))))
}

/// What the work trees of a repository share.
pub(super) fn common_directory(git: &Path) -> Result<PathBuf, UnreadPointer> {
    let text = pointer(&git.join("commondir"))?;
    Ok(text.map_or_else(|| git.to_owned(), |text| normal(&git.join(text.trim()))))
}

/// A command may have put a pipe in its place.
fn pointer(file: &Path) -> Result<Option<String>, UnreadPointer> {
    let read = regular_file::read_if_there(file, GIT_CONFIG_BYTES);
    let bytes = read.map_err(|_| UnreadPointer(file.to_owned()))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
