//! The directories that a call may touch, as open handles, and what lies below them. Finds places for files,
//! opens no file.
//!
//! A path is followed from the handle of a root, by the kernel where it can (`platform.rs`), else name by name
//! (`roots/walk.rs`). What is found is a handle and a name, so that no link can be put in between
//! afterwards.

mod hints;
mod place_holders;
mod touched;
mod walk;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use attache_core::ports::tool::{Site, Workspace};
use attache_core::scope::Guarded;
use attache_sandbox::git_guard::{belongs_to_git, named_by_git};
use attache_sandbox::paths::normal;
use attache_sandbox::platform::{SEARCH, path_of};
use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::files::FileError;
use crate::limits::NEAREST_ENTRIES;
use crate::paths::{below, told};
use crate::platform::{entry, open_beneath};

pub(crate) use hints::missing_outside;
pub(crate) use touched::{real, touched};

/// The roots of a session and the directories granted beside them, with the guarded places inside.
#[derive(Clone, Debug)]
pub(crate) struct OpenRoots {
    roots: Vec<Arc<OpenRoot>>,
    guarded: Arc<Guarded>,
    scratch: PathBuf,
    route: Route,
    /// The only targets that paths may lead to, if rules have judged them already.
    judged: Option<Arc<[PathBuf]>>,
    /// Paths in the roots that the user's git configuration names; read once something is to be changed.
    named_by_git: Arc<OnceLock<Vec<PathBuf>>>,
}

#[derive(Debug)]
struct OpenRoot {
    handle: OwnedFd,
    /// The session's name for it, without `.` and `..`.
    named: PathBuf,
    /// The handle's real path when it was opened.
    real: PathBuf,
}

/// How to follow a path without absolute links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Kernel,
    /// For systems and kernels that can't: they end up here anyway.
    #[cfg_attr(not(test), allow(dead_code))]
    Walk,
}

/// A place for a file: a handle of the deepest existing directory, and the names below it.
#[derive(Debug)]
pub(crate) struct FilePlace {
    pub(crate) directory: OwnedFd,
    /// Missing directories, the outermost first.
    pub(crate) missing: Vec<OsString>,
    pub(crate) name: OsString,
    pub(crate) presence: Presence,
    /// With all links resolved; the missing part as written.
    pub(crate) real: PathBuf,
    /// The same below the session's name of the root: the client's name for the file.
    pub(crate) named: PathBuf,
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) enum Led {
    /// To a root itself, which has no place in another directory.
    Root {
        real: PathBuf,
        named: PathBuf,
    },
    Below(FilePlace),
}

impl Led {
    pub(crate) fn named(&self) -> &Path {
        match self {
            Self::Root { named, .. } => named,
            Self::Below(place) => &place.named,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Present,
    Absent,
}

pub(crate) const DIRECTORY: OFlags =
    SEARCH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl OpenRoots {
    /// The roots of a call: limited to what rules judged, if they did.
    pub(crate) fn of(site: &Site) -> Self {
        Self { judged: site.judged.clone(), ..Self::new(&site.workspace, &site.granted) }
    }

    pub(crate) fn new(workspace: &Workspace, granted: &[PathBuf]) -> Self {
        // Only judged paths are opened: directories of skills are read, never changed.
        let readable = workspace.skills.directories.iter();
        let named: Vec<PathBuf> =
            workspace.roots().chain(granted).chain(readable).map(|root| normal(root)).collect();
        let roots = named
            .iter()
            .enumerate()
            // A root below another adds nothing; as a root of its own it would lead wherever a link in its
            // place points to.
            .filter(|(index, root)| {
                !named.iter().enumerate().any(|(other, outer)| {
                    root.starts_with(outer) && (root.as_path() != outer || other < *index)
                })
            })
            .map(|(_, root)| root.as_path())
            // A granted file is reached from its directory; the list of judged paths limits the call to the
            // file.
            .chain(granted.iter().filter(|place| !place.is_dir()).filter_map(|place| place.parent()))
            // Nothing lies below a root that can't be opened (missing, no permission).
            .filter_map(|root| OpenRoot::open(root).ok().map(Arc::new))
            .collect();
        let scratch = normal(&workspace.scratch);
        let (guarded, named_by_git) = (Arc::clone(&workspace.guarded), Arc::default());
        Self { roots, guarded, scratch, route: Route::Kernel, judged: None, named_by_git }
    }

    /// Limited to this path, with links resolved: a path that leads elsewhere is not opened.
    pub(crate) fn held_to(&self, path: &Path) -> Self {
        Self { judged: Some([path.to_owned()].into()), ..self.clone() }
    }

    /// For what a call itself created on the way to a judged path.
    pub(crate) fn for_own_traces(&self) -> Self {
        Self { judged: None, ..self.clone() }
    }

    /// Whether a path lies in the session's own scratch directory: clients do not handle such files.
    pub(crate) fn is_scratch(&self, path: &Path) -> bool {
        path.starts_with(&self.scratch) || path.starts_with(self.real_scratch())
    }

    /// Whether a path lies in a scratch directory that does not exist yet, so that nothing can be there.
    pub(crate) fn lacks_scratch_for(&self, path: &Path) -> bool {
        path.starts_with(&self.scratch) && self.root_of(path).is_none()
    }

    /// Creates the scratch directory if `path` is in it: it is only created on first use.
    pub(crate) fn with_scratch_for(&self, path: &Path) -> Result<Self, Errno> {
        let mut reach = self.clone();
        if self.lacks_scratch_for(path) {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.scratch);
            made.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            reach.roots.push(Arc::new(OpenRoot::open(&self.scratch)?));
        }
        Ok(reach)
    }

    /// Refuses what agents must not see. `real` has no links in it.
    pub(crate) fn may_show(&self, real: &Path) -> Result<(), FileError> {
        self.guarded
            .hides(real, &self.real_scratch())
            .map_or(Ok(()), |reason| Err(FileError::Guarded { reason }))
    }

    /// Refuses what agents must not change, existing or not. `named` is the call's name, `real` has no links in
    /// it.
    pub(crate) fn may_change(&self, named: &Path, real: &Path) -> Result<(), FileError> {
        let protected = self.guarded.protects(real, &self.real_scratch());
        let reason = protected.or_else(|| belongs_to_git(named, real)).or_else(|| self.run_by_git(real));
        reason.map_or(Ok(()), |reason| Err(FileError::Guarded { reason }))
    }

    /// Why a file is reserved for the user: git runs or obeys it when the user calls git.
    fn run_by_git(&self, real: &Path) -> Option<String> {
        if real.starts_with(self.real_scratch()) {
            return None;
        }
        let look = || {
            let roots = self.roots.iter().map(|root| root.real.clone());
            named_by_git(&roots.filter(|root| *root != self.real_scratch()).collect::<Vec<_>>())
        };
        let is_named = self.named_by_git.get_or_init(look).iter().any(|named| real.starts_with(named));
        is_named.then(|| {
            format!(
                "{} is protected: the user's configuration of git runs or reads it, so it may not be changed by an agent",
                real.display()
            )
        })
    }

    /// Follows `path`, which is absolute and normal, to its place below a root.
    pub(crate) fn resolve(&self, path: &Path) -> Result<FilePlace, FileError> {
        match self.follow(path)? {
            Led::Below(place) => Ok(place),
            Led::Root { .. } => Err(FileError::Directory { path: path.to_owned() }),
        }
    }

    /// The same, but the path may also be a root itself.
    pub(crate) fn follow(&self, path: &Path) -> Result<Led, FileError> {
        let led = self.find(path)?;
        match &self.judged {
            Some(judged) if !judged.iter().any(|judged| judged == led.named()) => {
                Err(FileError::Unjudged { path: path.to_owned(), named: led.named().to_owned() })
            }
            Some(_) | None => Ok(led),
        }
    }

    /// A directory for reading, and its real path.
    pub(crate) fn directory(&self, path: &Path) -> Result<(OwnedFd, PathBuf), FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let failed = |error| FileError::io(path, "opened", error);
        match self.follow(path)? {
            Led::Root { real, .. } => {
                let root = self.roots.iter().find(|root| root.real == real);
                let root = root.ok_or_else(|| FileError::Outside { path: path.to_owned() })?;
                Ok((fs::openat(&root.handle, ".", flags, Mode::empty()).map_err(failed)?, real))
            }
            // A neighbour of the first missing directory is not the named directory.
            Led::Below(place) if !place.missing.is_empty() || place.presence == Presence::Absent => {
                Err(failed(Errno::NOENT))
            }
            Led::Below(place) => {
                let opened = fs::openat(&place.directory, &place.name, flags, Mode::empty());
                Ok((opened.map_err(failed)?, place.real))
            }
        }
    }

    fn find(&self, path: &Path) -> Result<Led, FileError> {
        let direct = match self.route {
            Route::Kernel => self.direct(path),
            Route::Walk => None,
        };
        let found = match direct {
            Some(found) => found,
            None => walk::walk(self, path).map_err(|error| FileError::io(path, "reached", error))?,
        };
        let outside = || FileError::Outside { path: path.to_owned() };
        let found = found.ok_or_else(outside)?;
        let Some(name) = found.name else {
            return Ok(Led::Root { real: found.root.real.clone(), named: found.root.named.clone() });
        };
        // Asked of the handle instead of composed: the directory may have been moved since it was opened.
        let directory = path_of(&found.directory).map_err(|error| FileError::io(path, "reached", error))?;
        let below = directory.strip_prefix(&found.root.real).map_err(|_| outside())?.to_owned();
        let rest: PathBuf = found.missing.iter().chain([&name]).collect();
        Ok(Led::Below(FilePlace {
            directory: found.directory,
            missing: found.missing,
            name,
            presence: found.presence,
            real: directory.join(&rest),
            named: found.root.named.join(below).join(&rest),
        }))
    }

    /// Through the kernel, as long as there is no absolute link on the way, no link at the end, and nothing
    /// changes meanwhile.
    fn direct(&self, path: &Path) -> Option<Option<Resolved>> {
        let (root, below) = self.root_of(path)?;
        let (parent, name) = (below.parent()?, below.file_name()?);
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let directory = open_beneath(&root.handle, parent)?;
        let presence = match entry(&directory, name).map(|entry| entry.kind()) {
            Ok(FileType::Symlink) => return None,
            Ok(kind) if self.is_place_holder_in(&directory, name, kind) => Presence::Absent,
            Ok(_) => Presence::Present,
            Err(Errno::NOENT) => Presence::Absent,
            Err(_) => return None,
        };
        let name = Some(name.to_owned());
        Some(Some(Resolved { root: Arc::clone(root), directory, missing: Vec::new(), name, presence }))
    }

    fn root_of<'path>(&self, path: &'path Path) -> Option<(&Arc<OpenRoot>, &'path Path)> {
        root_of(&self.roots, path)
    }

    /// Paths are compared by their real names, so this one has to be real, too.
    fn real_scratch(&self) -> PathBuf {
        let root = self.roots.iter().find(|root| root.named == self.scratch);
        root.map_or_else(|| self.scratch.clone(), |root| root.real.clone())
    }

    /// A real path in the form that the model can use in its next call.
    fn told(&self, path: &Path) -> String {
        // The first root is the workspace's.
        told(self.roots.first().map_or(path, |root| below(&root.real, path)))
    }
}

impl OpenRoot {
    fn open(named: &Path) -> Result<Self, Errno> {
        let handle = fs::open(named, SEARCH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let real = path_of(&handle)?;
        Ok(Self { handle, named: named.to_owned(), real })
    }
}

/// Why nothing works in a workspace whose directory was removed. Reported before a person is asked for
/// permission.
pub(crate) fn gone_workspace(workspace: &Workspace) -> Option<String> {
    let root = &workspace.root;
    (!root.is_dir()).then(|| format!("the directory of the workspace, {}, is gone", root.display()))
}

/// The result of both routes. Without a name it is the root itself.
struct Resolved {
    root: Arc<OpenRoot>,
    directory: OwnedFd,
    missing: Vec<OsString>,
    name: Option<OsString>,
    presence: Presence,
}

/// The innermost root that contains `path` by its name, and the rest of the path.
fn root_of<'roots, 'path>(
    roots: &'roots [Arc<OpenRoot>],
    path: &'path Path,
) -> Option<(&'roots Arc<OpenRoot>, &'path Path)> {
    let matches = roots.iter().flat_map(|root| {
        [&root.real, &root.named].map(|prefix| path.strip_prefix(prefix).ok().map(|rest| (root, rest)))
    });
    matches.flatten().min_by_key(|(_, rest)| rest.as_os_str().len())
}

fn names_in(directory: &OwnedFd) -> Result<impl Iterator<Item = String>, Errno> {
    // The given handle only marks the place; this one can be read from.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let readable = fs::openat(directory, ".", flags, Mode::empty())?;
    let entries = fs::Dir::new(readable)?;
    Ok(entries
        .take(NEAREST_ENTRIES)
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "." && name != ".."))
}

#[cfg(test)]
impl OpenRoots {
    /// Behaves as on a kernel without `openat2`.
    pub(crate) fn by_walking(mut self) -> Self {
        self.route = Route::Walk;
        self
    }
}

#[cfg(test)]
mod tests;
