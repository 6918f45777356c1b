//! What git would show of a repository without a path that names it: tracked files with rules about reading,
//! and keys. Reads their names from the index. Does not see what only older commits contain.

use std::path::{Path, PathBuf};

use super::word::{PathWord, Word};
use super::{CommandReader, real_paths};
use crate::Tracked;
use crate::limits::SHELL_CLOSED;

/// The part of a repository that a git command is about, according to its words.
#[derive(Clone, Debug, Default)]
pub(super) struct RepositoryPart {
    operands: Vec<String>,
    /// Words that are paths if such a file exists: git refuses words that may be both a path and a revision.
    maybe: Vec<String>,
    /// Words after `--`; `None` if one of them is unknown.
    certain: Option<Vec<String>>,
    /// Without any path, it means what lies below its directory.
    pub(super) is_here: bool,
    /// Words that begin with a colon are ordinary names.
    pub(super) is_literal: bool,
    /// It may compare directories outside of git.
    pub(super) compares: bool,
}

impl RepositoryPart {
    pub(super) fn of(operands: &[Word], behind: Option<usize>) -> Self {
        let text = |word: &Word| word.text().map(str::to_owned);
        let known: Vec<String> = operands.iter().filter_map(text).collect();
        let (maybe, certain) = match behind {
            Some(at) => (Vec::new(), operands[at..].iter().map(text).collect()),
            None => (known.clone(), Some(Vec::new())),
        };
        Self { operands: known, maybe, certain, ..Self::default() }
    }

    /// The same part, for words that do not say for certain which part they mean.
    pub(super) fn of_everything(self) -> Self {
        Self { certain: None, ..self }
    }
}

/// The paths of a part.
#[derive(Debug, Default)]
struct Bounds {
    /// Everything, if it is empty.
    within: Vec<PathBuf>,
    without: Vec<PathBuf>,
}

impl Bounds {
    fn hold(&self, path: &Path) -> bool {
        let below = |bound: &PathBuf| path.starts_with(bound);
        (self.within.is_empty() || self.within.iter().any(below)) && !self.without.iter().any(below)
    }
}

const WILDCARDS: [char; 4] = ['*', '?', '[', '\\'];

impl CommandReader<'_> {
    /// What git shows of this part from this directory: files to name, and whether there may be others.
    pub(super) fn shown_by_git(&self, part: &RepositoryPart, directory: &Path) -> (Vec<PathBuf>, Unnamed) {
        let bounds = self.bounds(part, directory);
        let (mut found, mut unnamed) = (Vec::new(), Unnamed::None);
        let hidden: Vec<PathBuf> = self.context.restrictions.hidden_paths().collect();
        let mut candidates = Vec::new();
        let top = self.context.disk.tracked(directory, &mut |path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if self.context.restrictions.secret_names().contains(&name.as_str())
                || hidden.iter().any(|hidden| path.starts_with(hidden))
            {
                unnamed = if bounds.hold(path) { Unnamed::Some } else { unnamed };
            } else if self.context.restrictions.keeps(path, directory) {
                candidates.push(path.to_path_buf());
            }
        });
        let top = match top {
            Tracked::Below(top) => top,
            Tracked::Unknown => return (found, Unnamed::Some),
            Tracked::Nowhere => return (found, Unnamed::None),
        };
        found.extend(candidates.into_iter().filter(|path| path.starts_with(&top) && bounds.hold(path)));
        // A rule may deny what we do not name.
        unnamed = if found.len() > SHELL_CLOSED { Unnamed::Some } else { unnamed };
        (self.denied_first(found), unnamed)
    }

    /// Directories that git compares although they are not in the repository.
    pub(super) fn compared_by_git(&self, part: &RepositoryPart, directory: &Path) -> Vec<PathWord> {
        if !part.compares {
            return Vec::new();
        }
        let top = match self.context.disk.tracked(directory, &mut |_| {}) {
            Tracked::Below(top) => Some(top),
            Tracked::Unknown | Tracked::Nowhere => None,
        };
        let words = &part.operands;
        let is_outside = |word: &String| {
            let path = self.located(directory, word);
            top.as_ref().is_none_or(|top| !path.starts_with(top))
        };
        let compares = words.iter().any(is_outside);
        words.iter().filter(|_| compares).cloned().map(PathWord::Through).collect()
    }

    /// Narrower than everything only if each word is certainly a plain path or a commit. If a word names an
    /// object that is no commit, git ignores paths, or looks for them within that object.
    fn bounds(&self, part: &RepositoryPart, directory: &Path) -> Bounds {
        self.certain_bounds(part, directory).unwrap_or_default()
    }

    fn certain_bounds(&self, part: &RepositoryPart, directory: &Path) -> Option<Bounds> {
        let real = real_paths::real_root(self.context.disk, directory);
        let mut bounds = Bounds::default();
        let certain = part.certain.as_ref()?;
        let before = part.operands.len().checked_sub(certain.len())?;
        if !certain.is_empty() && !part.operands[..before].iter().all(|word| is_commit(word)) {
            return None;
        }
        for word in &part.maybe {
            let path = self.located(&real, word);
            match is_plain(word) && self.context.disk.is_there(&path) {
                true => bounds.within.push(path),
                false if is_commit(word) => {}
                false => bounds.within.extend(within_commit(word, &real)?),
            }
        }
        for word in certain {
            match excluded(word).filter(|_| !part.is_literal) {
                Some(word) if is_plain(word) => bounds.without.push(self.located(&real, word)),
                // A word that may mean less than it seems to excludes nothing.
                Some(_) => {}
                None if is_plain(word) => bounds.within.push(self.located(&real, word)),
                None => return None,
            }
        }
        if bounds.within.is_empty() && part.is_here {
            bounds.within.push(real);
        }
        Some(bounds)
    }
}

/// The path in `HEAD:path`, which begins at the top of the work tree, in any directory above.
fn within_commit(word: &str, directory: &Path) -> Option<Vec<PathBuf>> {
    let (commit, path) = word.split_once(':')?;
    let is_known = is_commit(commit) && is_plain(path) && !path.split('/').any(|part| part == "..");
    is_known.then(|| directory.ancestors().map(|top| top.join(path)).collect())
}

/// A path without magic. A path that ends in a slash means only directories.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && !word.starts_with(':') && !word.contains(WILDCARDS) && !word.ends_with('/')
}

/// A name that always means a commit, or a range of commits. Other names may be tags or ids of files and
/// directories.
fn is_commit(word: &str) -> bool {
    word.split("..").all(|end| {
        let end = end.trim_start_matches(['.', '^']);
        let name = end.trim_end_matches(|step: char| step == '~' || step == '^' || step.is_ascii_digit());
        matches!(name, "HEAD" | "@" | "ORIG_HEAD" | "MERGE_HEAD" | "FETCH_HEAD")
            || (end.is_empty() && word.contains(".."))
    })
}

/// Whether git may show something that no path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unnamed {
    None,
    Some,
}

/// The path in `:!path`, `:^path` and `:(exclude)path`.
pub(super) fn excluded(word: &str) -> Option<&str> {
    let rest = word.strip_prefix(':')?;
    rest.strip_prefix("(exclude)").or_else(|| rest.strip_prefix(['!', '^'])).filter(|rest| {
        // More magic of the same kind may follow.
        !rest.starts_with(['!', '^', '/', ':', '('])
    })
}
