//! Where a search starts: a place within reach that exists, under the name that the model knows. Walks nothing.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use attache_core::legible::visible_name;
use attache_core::ports::tool::{Site, Workspace};
use attache_core::scope::HiddenBelow;
use attache_core::watchdog::{ReadRuleOrigin, ReadRules};
use attache_sandbox::{no_follow, regular_file};

use crate::files::FileError;
use crate::paths::{below, told};
use crate::roots::{Led, OpenRoots, Presence};

#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is a file; `path` must be a directory", told(path))]
    NoDirectory { path: PathBuf },
}

impl PlaceError {
    /// With names that the model can use in its next call.
    pub(crate) fn relative_to(self, root: &Path) -> Self {
        match self {
            Self::File(error) => Self::File(error.relative_to(root)),
            Self::NoDirectory { path } => Self::NoDirectory { path: below(root, &path).to_owned() },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Directory,
    File,
}

/// A directory or a single file to search.
#[derive(Debug)]
pub(crate) struct SearchRoot {
    /// The call's name for it: absolute and lexically normal.
    named: PathBuf,
    /// The prefix of names in results; relative to the workspace's root if it lies there.
    told: PathBuf,
    real: PathBuf,
    shape: Shape,
    /// The directory, or the one with the file: everything is opened below it.
    handle: OwnedFd,
    hidden: HiddenBelow,
    closed: Option<ReadRules>,
}

impl SearchRoot {
    /// The only check of reach in a search: no link is followed below its directory.
    pub(crate) fn open(named: &Path, site: &Site) -> Result<Self, FileError> {
        let failed = |source: io::Error| FileError::io(named, "searched", source);
        let workspace = &site.workspace;
        let reach = OpenRoots::of(site);
        let real = match reach.follow(named)? {
            Led::Below(place) if place.presence == Presence::Absent => {
                return Err(FileError::Missing { path: named.to_owned(), hint: reach.hint(&place) });
            }
            // Links at the end are followed, too, so this is the target itself.
            Led::Below(place) => place.real,
            Led::Root { real, .. } => real,
        };
        reach.may_show(&real)?;
        let shape = match real.symlink_metadata().map_err(failed)? {
            metadata if metadata.is_dir() => Shape::Directory,
            metadata if metadata.is_file() => Shape::File,
            _ => return Err(FileError::Special { path: named.to_owned() }),
        };
        let directory = match shape {
            Shape::Directory => real.as_path(),
            Shape::File => real.parent().unwrap_or(&real),
        };
        let handle = no_follow::directory(directory).map_err(|error| failed(error.into()))?;
        // The real scratch directory; one that does not exist yet contains nothing.
        let scratch = workspace.scratch.canonicalize().unwrap_or_else(|_| workspace.scratch.clone());
        let hidden = workspace.guarded.hidden_below(directory, &scratch);
        Ok(Self {
            named: named.to_owned(),
            told: below_root(named, workspace),
            real,
            shape,
            handle,
            hidden,
            closed: site.closed.clone(),
        })
    }

    /// The same, but only for a directory.
    pub(crate) fn open_directory(named: &Path, site: &Site) -> Result<Self, PlaceError> {
        let place = Self::open(named, site)?;
        match place.shape {
            Shape::Directory => Ok(place),
            Shape::File => Err(PlaceError::NoDirectory { path: named.to_owned() }),
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    pub(crate) fn hides(&self, real: &Path) -> bool {
        self.hidden.hides(real)
    }

    /// The origin of the rule that protects a file from reading, under its given or its real name.
    pub(super) fn keeper(&self, relative: &Path) -> Option<ReadRuleOrigin> {
        let closed = self.closed.as_ref()?;
        let below = |directory: &Path| closed.keeper(&directory.join(relative), directory);
        below(&self.named).or_else(|| if self.real == self.named { None } else { below(&self.real) })
    }

    /// A path of the walk, without the directory of the walk.
    pub(super) fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        let root = self.real.as_os_str().len();
        let bytes = path.as_os_str().as_bytes();
        // By length: the walker only ever appends names, and comparing components would cost more than the
        // walk.
        let below = bytes.get(root..).unwrap_or_default();
        Path::new(OsStr::from_bytes(below.strip_prefix(b"/").unwrap_or(below)))
    }

    /// Opens a file for reading; `relative` is empty for a place that is a single file.
    pub(crate) fn open_file(&self, relative: &Path) -> io::Result<File> {
        let name = match self.shape {
            Shape::Directory => relative,
            Shape::File => Path::new(self.real.file_name().unwrap_or_default()),
        };
        Ok(no_follow::file(&self.handle, name)?.into())
    }

    /// The content of a small regular file, plus one byte if it is longer. Does not keep anything else open.
    pub(super) fn read_small(&self, relative: &Path, most: u64) -> io::Result<Vec<u8>> {
        regular_file::read_beneath(&self.handle, relative, most)
    }

    /// The directory that a pattern without wildcards names, in the form for a pattern.
    pub(crate) fn directory_below(&self, pattern: &str) -> Option<String> {
        let name = pattern.trim_start_matches("./").trim_end_matches('/');
        let is_plain = !name.is_empty() && !name.contains(['*', '?', '[', '{', '!']);
        let real = self.real.join(name);
        let is_shown = is_plain && real.starts_with(&self.real) && !self.hides(&real);
        (is_shown && real.symlink_metadata().is_ok_and(|found| found.is_dir())).then(|| visible_name(name))
    }

    /// The name of a file for the model: on one line, ready for the next call.
    pub(crate) fn told(&self, relative: &Path) -> String {
        visible_name(&joined(&self.told, relative).to_string_lossy())
    }
}

fn below_root(named: &Path, workspace: &Workspace) -> PathBuf {
    named.strip_prefix(&workspace.root).unwrap_or(named).to_owned()
}

/// `join` alone would append a slash for an empty path.
fn joined(directory: &Path, relative: &Path) -> PathBuf {
    if relative.as_os_str().is_empty() { directory.to_owned() } else { directory.join(relative) }
}
