//! The file system queries of the reader, which has no other access to one.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A file system as the reader sees it. What an implementation leaves out counts as missing or unknown, and
/// then we ask a person.
pub trait Disk {
    /// Shows name and kind of each entry of `directory` until the visitor breaks. Shows nothing if the
    /// directory cannot be listed.
    fn entries(&self, _directory: &Path, _visit: &mut dyn FnMut(&OsStr, EntryKind) -> ControlFlow<()>) {}

    /// The kind of a path's target with all links resolved, so never a link.
    fn kind(&self, _path: &Path) -> Option<EntryKind> {
        None
    }

    /// Whether a shell can enter a directory, with links resolved.
    fn can_be_entered(&self, _directory: &Path) -> bool {
        false
    }

    /// Whether this name exists, even as a broken link.
    fn is_there(&self, _path: &Path) -> bool {
        false
    }

    /// Where a path leads, with all links resolved. A missing path lies where its directory does.
    fn real(&self, _path: &Path) -> Option<PathBuf> {
        None
    }

    /// Who owns the program that a command in `directory` means by `name`.
    fn program(&self, _name: &str, _directory: &Path) -> ProgramOrigin {
        ProgramOrigin::System
    }

    /// Whether git in a directory would run what its repository names. Only asked for git commands.
    fn repository(&self, _directory: &Path) -> Repository {
        Repository::Configured
    }

    /// The configuration files that git reads in a directory and that contain passwords or tokens. Only asked
    /// for git commands that print settings.
    fn telling_configuration(&self, _directory: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Shows the absolute path of each file that git tracks in the repository around `directory`. Only asked
    /// for git commands that print file contents.
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

/// Who owns the program that a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramOrigin {
    /// The machine, or there is no such program.
    System,
    /// It lies at this path in the workspace, so it is code of the project.
    Workspace(PathBuf),
    /// It belongs to a version manager, and runs what this file of the project chooses.
    ChosenBy(PathBuf),
}

/// Whether git runs programs that a repository names, or prints files from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repository {
    /// A repository whose configuration names no program, and whose files are its own.
    Plain,
    /// No repository, or one that may name programs or that we could not read completely.
    Configured,
    /// This file of the repository leads to others: it is a link, or a list of directories with objects.
    LeadsOut(PathBuf),
}

/// What we know about the files that git tracks around a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// We have shown all of them; the work tree begins here.
    Below(PathBuf),
    /// We have not shown all: there are too many, or their list has a form that we do not read.
    Unknown,
    /// There is no repository.
    Nowhere,
}
