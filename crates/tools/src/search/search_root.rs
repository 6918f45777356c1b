//! Where a search starts: within reach, really there, and named as the model knows it. Walks nothing.

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
    /// With names as the model can use them in its next call.
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

/// A directory, or one file, that is searched.
#[derive(Debug)]
pub(crate) struct SearchRoot {
    /// As the call named it: absolute and lexically normal.
    named: PathBuf,
    /// What results are named below; relative to the workspace's root where it lies there.
    told: PathBuf,
    real: PathBuf,
    shape: Shape,
    /// The directory, or the one that holds the file: all that is opened is opened beneath it.
    handle: OwnedFd,
    hidden: HiddenBelow,
    closed: Option<ReadRules>,
}

impl SearchRoot {
    /// The only check of reach in a search: below its directory no link is followed.
    pub(crate) fn open(named: &Path, site: &Site) -> Result<Self, FileError> {
        let failed = |source: io::Error| FileError::io(named, "searched", source);
        let workspace = &site.workspace;
        let reach = OpenRoots::of(site);
        let real = match reach.follow(named)? {
            Led::Below(place) if place.presence == Presence::Absent => {
                return Err(FileError::Missing { path: named.to_owned(), hint: reach.hint(&place) });
            }
            // Links at the end are followed too, so this is the thing itself.
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
        // Of the scratch directory as it really is; one that is not there yet holds nothing to see.
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

    /// The same, where only a directory will do.
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

    /// Whose rule keeps a file from being read, as it is named or as it really is.
    pub(super) fn keeper(&self, relative: &Path) -> Option<ReadRuleOrigin> {
        let closed = self.closed.as_ref()?;
        let below = |directory: &Path| closed.keeper(&directory.join(relative), directory);
        below(&self.named).or_else(|| if self.real == self.named { None } else { below(&self.real) })
    }

    /// What the walk calls `path`, without the directory it walks.
    pub(super) fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        let root = self.real.as_os_str().len();
        let bytes = path.as_os_str().as_bytes();
        // By length: the walker only ever appends names, and comparing components costs more than the walk.
        let below = bytes.get(root..).unwrap_or_default();
        Path::new(OsStr::from_bytes(below.strip_prefix(b"/").unwrap_or(below)))
    }

    /// A file for reading; `relative` is empty for a place that is one file itself.
    pub(crate) fn open_file(&self, relative: &Path) -> io::Result<File> {
        let name = match self.shape {
            Shape::Directory => relative,
            Shape::File => Path::new(self.real.file_name().unwrap_or_default()),
        };
        Ok(no_follow::file(&self.handle, name)?.into())
    }

    /// What a small regular file holds, and one byte more where it is longer. Nothing else is opened for long.
    pub(super) fn read_small(&self, relative: &Path, most: u64) -> io::Result<Vec<u8>> {
        regular_file::read_beneath(&self.handle, relative, most)
    }

    /// The directory that a pattern without wildcards names, as it is to be written in one.
    pub(crate) fn directory_below(&self, pattern: &str) -> Option<String> {
        let name = pattern.trim_start_matches("./").trim_end_matches('/');
        let is_plain = !name.is_empty() && !name.contains(['*', '?', '[', '{', '!']);
        let real = self.real.join(name);
        let is_shown = is_plain && real.starts_with(&self.real) && !self.hides(&real);
        (is_shown && real.symlink_metadata().is_ok_and(|found| found.is_dir())).then(|| visible_name(name))
    }

    /// How the model is told of a file: on one line, ready for the next call.
    pub(crate) fn told(&self, relative: &Path) -> String {
        visible_name(&joined(&self.told, relative).to_string_lossy())
    }
}

fn below_root(named: &Path, workspace: &Workspace) -> PathBuf {
    named.strip_prefix(&workspace.root).unwrap_or(named).to_owned()
}

/// `join` alone would add a slash for nothing.
fn joined(directory: &Path, relative: &Path) -> PathBuf {
    if relative.as_os_str().is_empty() { directory.to_owned() } else { directory.join(relative) }
}
