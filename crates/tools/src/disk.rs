//! Tells the reader of commands about this machine and this session, and converts its findings to the accesses
//! that rules judge. Only here do types of `attache_shell` become types of the core.

pub(crate) mod repository;
mod telling;
mod tracked;

use std::ffi::OsStr;
use std::fs::FileType;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::{Access, CommandAccess, CommandNature};
use attache_core::scope::Guarded;
use attache_core::watchdog::ReadRules;
use attache_sandbox::programs::{Origin, Programs};
use attache_shell::{
    Disk, EntryKind, Nature, ProgramOrigin, Repository, Restrictions, SimpleCommand, Touch, Tracked,
};

use crate::roots::real;

/// This machine, with the programs that a session's commands can find.
#[derive(Debug)]
pub struct DiskOfWorkspace {
    programs: Programs,
}

impl DiskOfWorkspace {
    /// A disk for programs found there.
    pub fn new(programs: Programs) -> Self {
        Self { programs }
    }
}

impl Disk for DiskOfWorkspace {
    fn entries(&self, directory: &Path, visit: &mut dyn FnMut(&OsStr, EntryKind) -> ControlFlow<()>) {
        let Ok(entries) = directory.read_dir() else { return };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if visit(&entry.file_name(), kind_of(kind)).is_break() {
                return;
            }
        }
    }

    fn kind(&self, path: &Path) -> Option<EntryKind> {
        path.metadata().ok().map(|found| kind_of(found.file_type()))
    }

    /// A command has no rights beyond those of the file mode, not even root's.
    fn can_be_entered(&self, directory: &Path) -> bool {
        let own = rustix::process::geteuid().as_raw();
        let is_open = |place: &Path| {
            let Ok(found) = place.metadata() else { return false };
            let needed = if found.uid() == own { 0o100 } else { 0o001 };
            found.is_dir() && found.mode() & needed != 0
        };
        directory.ancestors().all(is_open)
    }

    fn is_there(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn real(&self, path: &Path) -> Option<PathBuf> {
        real(path)
    }

    fn program(&self, name: &str, directory: &Path) -> ProgramOrigin {
        match self.programs.origin(name, directory) {
            Origin::Project(path) => ProgramOrigin::Workspace(path),
            Origin::ChosenBy(file) => ProgramOrigin::ChosenBy(file),
            Origin::System => ProgramOrigin::System,
        }
    }

    fn repository(&self, directory: &Path) -> Repository {
        repository::repository(directory)
    }

    fn telling_configuration(&self, directory: &Path) -> Vec<PathBuf> {
        telling::telling_configuration(directory)
    }

    fn tracked(&self, directory: &Path, visit: &mut dyn FnMut(&Path)) -> Tracked {
        tracked::tracked(directory, visit)
    }
}

fn kind_of(found: FileType) -> EntryKind {
    if found.is_file() {
        EntryKind::File
    } else if found.is_dir() {
        EntryKind::Directory
    } else if found.is_symlink() {
        EntryKind::Link
    } else {
        EntryKind::Other
    }
}

/// Replaces the session's scratch directory, which is not known here: a path that does not exist.
const NO_SCRATCH: &str = "/dev/null/-";

/// What a session's commands must not show or change.
#[derive(Clone, Copy, Debug)]
pub struct RestrictionsOfSession<'a> {
    /// What no grant reaches.
    pub guarded: &'a Guarded,
    /// Files that rules protect from reading, if any.
    pub closed: Option<&'a ReadRules>,
}

impl Restrictions for RestrictionsOfSession<'_> {
    fn secret_names(&self) -> &[&str] {
        Guarded::secret_names()
    }

    fn hidden_paths(&self) -> Box<dyn Iterator<Item = PathBuf> + '_> {
        Box::new(self.guarded.hidden_paths())
    }

    fn hides(&self, path: &Path) -> bool {
        self.guarded.hides(path, Path::new(NO_SCRATCH)).is_some()
    }

    fn protects(&self, path: &Path) -> bool {
        self.guarded.protects(path, Path::new(NO_SCRATCH)).is_some()
    }

    fn has_rules(&self) -> bool {
        self.closed.is_some()
    }

    fn keeps(&self, file: &Path, directory: &Path) -> bool {
        self.closed.is_some_and(|closed| closed.keeps(file, directory))
    }

    fn denies(&self, file: &Path) -> bool {
        self.closed.is_some_and(|closed| closed.denies(file))
    }
}

/// What a command would touch, in the form that rules judge.
pub fn accesses(touches: Vec<Touch>) -> Vec<Access> {
    let access = |touch| match touch {
        Touch::Read(path) => Access::ReadPath(path),
        Touch::Write(path) => Access::WritePath(path),
        Touch::Host(host) => Access::Network { host },
        Touch::Command(SimpleCommand { words, directory, nature, prefix, input, why }) => {
            let nature = match nature {
                Nature::ReadOnly => CommandNature::ReadOnly,
                Nature::Effects => CommandNature::Effects,
                Nature::Unclear(reason) => CommandNature::Unclear(reason),
            };
            Access::Command(CommandAccess { words, directory, nature, prefix, input, why })
        }
    };
    touches.into_iter().map(access).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_is_entered_if_it_is_there_and_open() {
        let disk = DiskOfWorkspace::new(Programs::default());
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(place.path().join("file"), "").unwrap();
        assert!(disk.can_be_entered(&inner));
        for name in ["missing", "file", "file/x"] {
            assert!(!disk.can_be_entered(&place.path().join(name)), "{name}");
        }
        let set =
            |mode| std::fs::set_permissions(place.path().join("a"), PermissionsExt::from_mode(mode)).unwrap();
        set(0o600);
        assert!(!disk.can_be_entered(&inner));
        set(0o700);
    }
}
