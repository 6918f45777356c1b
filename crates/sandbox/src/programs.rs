//! Finds programs by their full path: our own helpers and the programs that commands name. Starts none.
//!
//! A session can change the files in its own directories. So we take no helper from there, and treat every
//! program that a command finds there, by any name and through any link, as code of the project.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::Site;
use attache_core::scope::LinkChain;

use crate::link_chain::link_chain;
use crate::paths::normal;
use crate::trusted::{SYSTEM_PLACES, is_of_root, is_trusted};
use crate::version_managers::{self, StandIn};

/// Where a root that contains the whole machine has programs of the system, which do not belong to a project.
const STANDARD: [&str; 4] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/// Names in this directory mean something else to each process.
const OF_PROCESSES: &str = "/proc";

/// Where to look for programs, and which directories are the workspace.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// Absolute, in the order of `PATH`.
    places: Vec<PathBuf>,
    /// Both as named and as real paths.
    own: Vec<PathBuf>,
}

/// Who owns a program that a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The machine's, or it does not exist.
    System,
    /// It lies at this path in the workspace, or leads there.
    Project(PathBuf),
    /// It starts the program that this file of the project chooses.
    ChosenBy(PathBuf),
}

impl Programs {
    /// `path` is a value of `PATH`. Skips relative places, which mean the command's current directory, and
    /// others that do, such as `/proc/self/cwd`.
    pub fn new<'a>(path: Option<&OsStr>, own: impl Iterator<Item = &'a PathBuf>) -> Self {
        let places = path.map(std::env::split_paths).into_iter().flatten();
        let mut both = Vec::new();
        for directory in own {
            both.extend(directory.canonicalize().ok().filter(|real| real != directory));
            both.push(directory.clone());
        }
        Self { places: places.filter(|place| is_fixed_place(place)).collect(), own: both }
    }

    /// For the calls of a session.
    pub fn of(site: &Site) -> Self {
        let own = site.workspace.roots().chain(site.granted.iter());
        Self::new(std::env::var_os("PATH").as_deref(), own)
    }

    /// For helpers that we need before there is a session: excludes everything below the home or the directory
    /// in which this process was started, because that may be a project.
    pub fn of_machine() -> Self {
        let own = [std::env::home_dir(), std::env::current_dir().ok()];
        let own: Vec<PathBuf> = own.into_iter().flatten().filter(|own| own.parent().is_some()).collect();
        Self::new(std::env::var_os("PATH").as_deref(), own.iter())
    }

    /// A program that attache itself starts, perhaps outside of any sandbox: only one that neither the user nor
    /// a session can replace. Skips places of `PATH` where that is not so.
    pub fn helper(&self, name: &str) -> Option<PathBuf> {
        // Checking a place means looking at each directory above it, so check only those that have such a
        // program.
        let found_in = |place: &Path| {
            let file = place.join(name);
            let is_foreign = || self.own_place(place).is_none() && self.own_place(&file).is_none();
            (is_program(&file) && is_trusted(&file) && is_foreign()).then_some(file)
        };
        let found = self.places.iter().find_map(|place| found_in(place));
        found.or_else(|| {
            let leads_to_any =
                self.places.iter().any(|place| is_of_root(place) && self.own_place(place).is_none());
            (!leads_to_any).then(|| SYSTEM_PLACES.iter().find_map(|place| found_in(Path::new(place))))?
        })
    }

    /// `PATH` for a helper that finds other programs by it: the user's places, then the system's.
    pub fn path_for_helpers(&self) -> OsString {
        let trusted = self.places.iter().filter(|place| is_trusted(place) && self.own_place(place).is_none());
        let system = SYSTEM_PLACES.iter().map(PathBuf::from).filter(|place| is_trusted(place));
        let mut places: Vec<PathBuf> = trusted.cloned().collect();
        places.extend(system.filter(|place| !self.places.contains(place)));
        std::env::join_paths(places).unwrap_or_else(|_| SYSTEM_PLACES.join(":").into())
    }

    /// Who owns the program that a command in `directory` means by `name`.
    pub fn origin(&self, name: &str, directory: &Path) -> Origin {
        let Some(file) = self.found(name, directory) else { return Origin::System };
        if let Some(place) = self.own_place(&file) {
            return Origin::Project(place);
        }
        // For the command this path may mean anything, including a file of the project.
        if !is_fixed_place(&file) {
            return Origin::Project(file);
        }
        let is_stand_in = match version_managers::stand_in(&file) {
            StandIn::Yes => true,
            StandIn::No => false,
            StandIn::As(other) => self
                .found(&other, directory)
                .is_some_and(|file| version_managers::stand_in(&file) == StandIn::Yes),
        };
        if !is_stand_in {
            return Origin::System;
        }
        let directories = std::iter::once(directory).chain(self.own.iter().map(PathBuf::as_path));
        let chosen = version_managers::version_file(directories, std::env::home_dir().as_deref());
        chosen.map_or(Origin::System, Origin::ChosenBy)
    }

    fn found(&self, name: &str, directory: &Path) -> Option<PathBuf> {
        match name.contains('/') {
            true => Some(directory.join(name)),
            false => self.places.iter().map(|place| place.join(name)).find(|file| is_program(file)),
        }
    }

    /// `PATH` for a command that runs unasked, so that it finds exactly what was judged. `None` if no place is
    /// left: an empty one would mean the current directory.
    pub fn path_of_the_machine(&self) -> Option<OsString> {
        let foreign = self.places.iter().filter(|place| self.own_place(place).is_none());
        std::env::join_paths(foreign).ok().filter(|path| !path.is_empty())
    }

    /// Whether a helper that we found before lies where this session could change it.
    pub fn is_own(&self, program: &Path) -> bool {
        self.own_place(program).is_some()
    }

    /// Where in the workspace a path is, or leads to.
    fn own_place(&self, path: &Path) -> Option<PathBuf> {
        let is_own = |path: &PathBuf| {
            let is_standard = STANDARD.iter().any(|standard| path.starts_with(standard));
            let holds = |own: &PathBuf| {
                // Commands can never write to the whole machine, not even as root.
                let is_held = own.parent().is_none() || !is_writable(path);
                path.starts_with(own) && !(is_standard && is_held)
            };
            self.own.iter().any(holds)
        };
        [Some(normal(path)), path.canonicalize().ok()].into_iter().flatten().find(is_own)
    }
}

/// Whether a path means the same to every process: it is absolute, and does not lead through what the kernel
/// makes up for each process (`/proc/self/cwd`, `/dev/fd/3`).
pub(crate) fn is_fixed_place(place: &Path) -> bool {
    let is_fixed = |LinkChain { links, end }: LinkChain| {
        links.iter().chain([&end]).all(|step| !step.starts_with(OF_PROCESSES))
    };
    place.is_absolute() && link_chain(place).is_ok_and(is_fixed)
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// If a root contains the programs of the machine (`/`), they count as the project's only if commands could
/// change them.
fn is_writable(path: &Path) -> bool {
    let may_write = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
    may_write(path) || path.parent().is_some_and(may_write)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A project with programs of its own, a directory of the machine, and links between them.
    struct Place {
        _kept: tempfile::TempDir,
        base: PathBuf,
    }

    impl Place {
        fn new() -> Self {
            let kept = tempfile::tempdir().unwrap();
            let base = kept.path().canonicalize().unwrap();
            for directory in ["w/bin", "w/sub", "system", "home"] {
                std::fs::create_dir_all(base.join(directory)).unwrap();
            }
            for file in ["w/bin/ls", "w/sub/ls", "w/ls", "system/ls", "system/cat"] {
                std::fs::write(base.join(file), "#!/bin/sh\n").unwrap();
                std::fs::set_permissions(base.join(file), PermissionsExt::from_mode(0o755)).unwrap();
            }
            std::fs::write(base.join("w/bin/cat"), "no program").unwrap();
            symlink(base.join("w/bin"), base.join("home/bin")).unwrap();
            std::fs::create_dir(base.join("links")).unwrap();
            symlink(base.join("w/ls"), base.join("links/ls")).unwrap();
            symlink(base.join("system/ls"), base.join("w/bin/real")).unwrap();
            Self { _kept: kept, base }
        }

        /// With these places in `PATH`.
        fn programs(&self, path: &str) -> Programs {
            let path = path.replace('@', self.base.to_str().unwrap());
            Programs::new(Some(OsStr::new(&path)), [self.base.join("w")].iter())
        }

        fn is_project(&self, path: &str, name: &str) -> bool {
            self.programs(path).origin(name, &self.base.join("w")) != Origin::System
        }
    }

    #[test]
    fn what_resolves_into_a_root_is_code_of_the_project() {
        let place = Place::new();
        assert!(!place.is_project("@/system", "ls"));
        assert!(!place.is_project("@/system:@/w/bin", "ls"), "the first one is meant");
        assert!(!place.is_project("@/w/bin:@/system", "cat"), "a file that can't be run is none");
        assert!(!place.is_project("@/system", "missing"));
        for path in ["@/w/bin:@/system", "@/home/bin:@/system", "@/links", "@/system/../w/bin"] {
            assert!(place.is_project(path, "ls"), "{path}");
        }
        for name in ["./ls", "sub/ls", "../w/ls", "bin/real", "../links/ls"] {
            assert!(place.is_project("@/system", name), "{name}");
        }
        assert!(!place.is_project("@/system", "../system/ls"));
    }

    #[test]
    fn no_helper_comes_from_a_root_or_a_relative_place() {
        let place = Place::new();
        let found = |path: &str| place.programs(path).helper("ls").unwrap();
        for path in ["@/w/bin", "@/home/bin", "@/links", ".::bin"] {
            assert_eq!(found(&format!("{path}:/usr/bin")), Path::new("/usr/bin/ls"), "{path}");
            assert_eq!(found(path), Path::new("/usr/bin/ls"), "{path}: where the system has it");
        }
    }

    /// What a command of one session leaves there must not become a helper of another, wherever the user
    /// started attache.
    #[test]
    fn no_helper_comes_from_where_anybody_but_root_can_write() {
        let place = Place::new();
        let elsewhere = place.base.join("elsewhere");
        let found = |path: &str, name: &str| {
            let path = path.replace('@', place.base.to_str().unwrap());
            Programs::new(Some(OsStr::new(&path)), [elsewhere.clone()].iter()).helper(name)
        };
        for path in ["@/w/bin", "@/system", "@/home/bin", "@/links", "/proc/self/cwd/bin"] {
            for path in [path.to_owned(), format!("{path}:/usr/bin"), format!("{path}:/nowhere:/usr/bin")] {
                assert_eq!(found(&path, "ls"), Some("/usr/bin/ls".into()), "{path}");
            }
            let path = place.programs(&format!("{path}:/usr/bin")).path_for_helpers();
            let first = std::env::split_paths(&path).next().unwrap();
            assert_eq!(first, Path::new("/usr/bin"), "{path:?}");
        }
        assert_eq!(found("@/system:/nowhere", "ls"), None, "what root decides about is not guessed at");
    }

    #[test]
    fn a_place_that_each_process_sees_differently_is_relative() {
        let place = Place::new();
        symlink("/proc/self/cwd", place.base.join("here")).unwrap();
        symlink("here/bin", place.base.join("here-too")).unwrap();
        let here = place.base.join("here").display().to_string();
        let too = place.base.join("here-too").display().to_string();
        for odd in [
            "/proc/self/cwd/bin",
            "/proc/thread-self/cwd",
            "//proc/self/root/usr/bin",
            "/dev/fd/0",
            &here,
            &too,
        ] {
            assert!(!is_fixed_place(Path::new(odd)), "{odd}");
            let programs = place.programs(&format!("{odd}:@/system"));
            assert_eq!(
                programs.path_of_the_machine(),
                Some(place.base.join("system").into_os_string()),
                "{odd}"
            );
            let named = Path::new(odd).join("ls");
            let origin = programs.origin(named.to_str().unwrap(), &place.base.join("w"));
            assert!(matches!(origin, Origin::Project(_)), "{odd}: {origin:?}");
        }
        for usual in ["/usr/bin", "/bin", "/nowhere/bin"] {
            assert!(is_fixed_place(Path::new(usual)), "{usual}");
        }
    }

    #[test]
    fn unasked_commands_look_outside_of_the_roots_only() {
        let place = Place::new();
        let path = |path: &str| {
            let kept = place.programs(path).path_of_the_machine()?;
            Some(kept.to_str().unwrap().replace(place.base.to_str().unwrap(), "@"))
        };
        assert_eq!(path("@/w/bin:@/system:.:@/home/bin:@/w").as_deref(), Some("@/system"));
        assert_eq!(path("@/w/bin:bin"), None);
    }

    #[test]
    fn a_root_that_holds_the_machine_owns_what_it_could_change() {
        let is_project = |root: &str| {
            let programs = Programs::new(Some(OsStr::new("/usr/bin")), [PathBuf::from(root)].iter());
            programs.origin("ls", Path::new("/")) != Origin::System
        };
        assert!(!is_project("/"));
        assert_eq!(is_project("/usr"), rustix::process::getuid().is_root());
    }
}
