//! What the reader asks of a file system. It has no other way to one.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A file system as the reader sees it. What an implementation leaves out is not there, or not known: then a
/// person is asked.
pub trait Disk {
    /// Shows name and kind of each entry of `directory` until the visitor breaks. Nothing where it can't be
    /// listed.
    fn entries(&self, _directory: &Path, _visit: &mut dyn FnMut(&OsStr, EntryKind) -> ControlFlow<()>) {}

    /// What a path leads to, all links followed: never a link.
    fn kind(&self, _path: &Path) -> Option<EntryKind> {
        None
    }

    /// Whether a shell can enter a directory, links followed.
    fn can_be_entered(&self, _directory: &Path) -> bool {
        false
    }

    /// Whether something has this name, be it a link that leads nowhere.
    fn is_there(&self, _path: &Path) -> bool {
        false
    }

    /// Where a path leads, all links followed. What does not exist yet lies where its directory does.
    fn real(&self, _path: &Path) -> Option<PathBuf> {
        None
    }

    /// Whose program it is that a command in `directory` means by `name`.
    fn program(&self, _name: &str, _directory: &Path) -> ProgramOrigin {
        ProgramOrigin::System
    }

    /// Whether git may run in a directory without running what its repository names. Asked for commands of git
    /// only.
    fn repository(&self, _directory: &Path) -> Repository {
        Repository::Configured
    }

    /// The files of configuration that git reads in a directory and that hold passwords or tokens. Asked for
    /// commands of git that print settings.
    fn telling_configuration(&self, _directory: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Shows the absolute path of each file that git tracks in the repository around `directory`. Asked for
    /// commands of git that show what is in them.
    fn tracked(&self, _directory: &Path, _visit: &mut dyn FnMut(&Path)) -> Tracked {
        Tracked::Unknown
    }
}

/// What an entry of a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
    Link,
    /// A device, a pipe, a socket.
    Other,
}

/// Whose program a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramOrigin {
    /// The machine's, or there is none.
    System,
    /// It lies here in the workspace: code of the project.
    Workspace(PathBuf),
    /// It is one of a version manager, and runs what this file of the project names.
    ChosenBy(PathBuf),
}

/// Whether git runs programs that a repository names, or prints what lies elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repository {
    /// One whose configuration names no program, and whose files are its own.
    Plain,
    /// None, or one that may name programs or could not be read through.
    Configured,
    /// This file of it leads to others: a link, or a list of places with objects.
    LeadsOut(PathBuf),
}

/// What is known of the files that git tracks around a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// All were shown; the work tree begins here.
    Below(PathBuf),
    /// Not all: too many, or in a form that is not read here.
    Unknown,
    /// There is no repository.
    Nowhere,
}
