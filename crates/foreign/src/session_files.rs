//! Files of this machine that an agent wants read or written: judged by where they really are, and opened there
//! without following a link, so that nothing can be put in between. Knows no agent and no client.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use attache_core::ports::tool::{Access, Workspace};
use attache_core::scope::{AccessReach, reach};
use attache_sandbox::{no_follow, regular_file};

use crate::limits::CLIENT_FILE_BYTES;

/// What is to be done with a path.
pub(crate) type FileAccess = fn(PathBuf) -> Access;

/// Whether a path may be touched by its name alone; the error says why not.
pub(crate) fn permitted(workspace: &Workspace, access: &Access) -> Result<(), String> {
    match reach(access, workspace, &[]) {
        AccessReach::Inside => Ok(()),
        AccessReach::Outside(place) => {
            Err(format!("{} is outside of the session's directories", place.display()))
        }
        AccessReach::Protected(reason) => Err(reason),
    }
}

/// The same by where it leads, too: for what somebody else opens. Blocks.
pub(crate) fn check(workspace: &Workspace, path: &Path, access: FileAccess) -> io::Result<()> {
    LedPath::judged(workspace, path, access).map(drop)
}

/// A text. Blocks.
pub(crate) fn read(workspace: &Workspace, path: &Path) -> io::Result<String> {
    let led = LedPath::judged(workspace, path, Access::ReadPath)?;
    let bytes = regular_file::read_real(&led.real(), CLIENT_FILE_BYTES);
    let bytes = bytes.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => no_file(),
        _ => error,
    })?;
    if bytes.len() as u64 > CLIENT_FILE_BYTES {
        return Err(io::Error::other(format!("larger than {} MiB", CLIENT_FILE_BYTES / 1024 / 1024)));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("this is no text in UTF-8"))
}

/// Makes the file, and the directories above it, where they are not there. Blocks.
pub(crate) fn write(workspace: &Workspace, path: &Path, text: &str) -> io::Result<()> {
    let led = LedPath::judged(workspace, path, Access::WritePath)?;
    led.open_for_writing()?.write_all(text.as_bytes())
}

/// A path with every link followed.
#[derive(Debug)]
struct LedPath {
    /// As far as it is there.
    existing: PathBuf,
    /// The names below it, outermost first.
    missing: Vec<OsString>,
}

impl LedPath {
    /// One that may be touched.
    fn judged(workspace: &Workspace, path: &Path, access: FileAccess) -> io::Result<Self> {
        permitted(workspace, &access(path.to_owned())).map_err(refused)?;
        let led = Self::of(path)?;
        led.judge(workspace, access).map_err(refused)?;
        Ok(led)
    }

    fn of(path: &Path) -> io::Result<Self> {
        match path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // What would be made lies wherever the link leads.
                if path.is_symlink() {
                    return Err(refused(format!("{} is a link that leads nowhere", path.display())));
                }
                let (parent, name) = path.parent().zip(path.file_name()).ok_or(error)?;
                let mut led = Self::of(parent)?;
                led.missing.push(name.to_owned());
                Ok(led)
            }
            found => Ok(Self { existing: found?, missing: Vec::new() }),
        }
    }

    fn real(&self) -> PathBuf {
        self.missing.iter().fold(self.existing.clone(), |path, name| path.join(name))
    }

    /// By the name that it has in a root, which may itself be named by a link, and by its own.
    fn judge(&self, workspace: &Workspace, access: FileAccess) -> Result<(), String> {
        let real = self.real();
        let mut roots = workspace.roots().chain(workspace.skills.directories.iter());
        let named = roots.find_map(|root| {
            let below = real.strip_prefix(root.canonicalize().ok()?).ok()?;
            Some(root.join(below))
        });
        permitted(workspace, &access(named.unwrap_or_else(|| real.clone())))?;
        let scratch = Self::of(&workspace.scratch).map(|led| led.real());
        let scratch = scratch.unwrap_or_else(|_| workspace.scratch.clone());
        let guarded = &workspace.guarded;
        let reason = match access(real) {
            Access::ReadPath(real) => guarded.hides(&real, &scratch),
            Access::WritePath(real) => guarded.protects(&real, &scratch),
            Access::Command(_) | Access::Network { .. } => None,
        };
        reason.map_or(Ok(()), Err)
    }

    fn open_for_writing(&self) -> io::Result<File> {
        let Some((name, directories)) = self.missing.split_last() else {
            // In place: a file keeps its mode, its owner and its other names.
            let file = File::from(no_follow::for_writing(&self.existing)?);
            if !file.metadata()?.is_file() {
                return Err(no_file());
            }
            file.set_len(0)?;
            return Ok(file);
        };
        let mut directory = no_follow::directory(&self.existing)?;
        for name in directories {
            directory = no_follow::made_directory(&directory, name)?;
        }
        Ok(File::from(no_follow::made_file(&directory, name)?))
    }
}

fn refused(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

fn no_file() -> io::Error {
    io::Error::other("this is no file")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    use attache_core::ids::SessionId;
    use attache_core::scope::Guarded;

    use super::*;

    struct Place {
        _directory: tempfile::TempDir,
        outer: PathBuf,
        workspace: Workspace,
    }

    /// A workspace, and a token of ours beside it.
    fn place() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let outer = directory.path().canonicalize().unwrap();
        std::fs::create_dir(outer.join("w")).unwrap();
        std::fs::write(outer.join("token"), "s3cret").unwrap();
        let workspace = Workspace {
            session_id: SessionId::new("ses_x"),
            root: outer.join("w"),
            additional: Vec::new(),
            scratch: outer.join("scratch/ses_x"),
            guarded: Arc::new(Guarded::new(None, vec![outer.join("token")])),
            skills: Default::default(),
        };
        Place { _directory: directory, outer, workspace }
    }

    impl Place {
        fn at(&self, name: &str) -> PathBuf {
            self.workspace.root.join(name)
        }

        fn read(&self, name: &str) -> Result<String, String> {
            read(&self.workspace, &self.at(name)).map_err(|error| error.to_string())
        }

        fn write(&self, name: &str) -> Result<(), String> {
            write(&self.workspace, &self.at(name), "new").map_err(|error| error.to_string())
        }
    }

    #[test]
    fn files_of_the_session_are_read_made_and_overwritten() {
        let place = place();
        place.write("a/b/file").unwrap();
        assert_eq!(place.read("a/b/file").unwrap(), "new");
        std::fs::write(place.at("long"), "much longer").unwrap();
        symlink("long", place.at("link")).unwrap();
        place.write("link").unwrap();
        assert_eq!(std::fs::read_to_string(place.at("long")).unwrap(), "new");
        assert_eq!(place.read("link").unwrap(), "new");
        assert!(place.at("link").is_symlink());
        let error = read(&place.workspace, &place.at("none")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_root_may_be_named_by_a_link() {
        let mut place = place();
        symlink("w", place.outer.join("named")).unwrap();
        place.workspace.root = place.outer.join("named");
        place.write("file").unwrap();
        assert_eq!(place.read("file").unwrap(), "new");
    }

    #[test]
    fn a_link_that_leads_out_is_followed_for_nothing() {
        let place = place();
        symlink(place.outer.join("token"), place.at("key")).unwrap();
        symlink(&place.outer, place.at("out")).unwrap();
        for name in ["key", "out/token", "out/other"] {
            assert!(place.read(name).is_err(), "{name}");
            assert!(place.write(name).is_err(), "{name}");
            assert!(check(&place.workspace, &place.at(name), Access::ReadPath).is_err(), "{name}");
        }
        assert_eq!(std::fs::read_to_string(place.outer.join("token")).unwrap(), "s3cret");
        assert!(!place.outer.join("other").exists());
    }

    #[test]
    fn a_link_to_nowhere_makes_no_file() {
        let place = place();
        symlink(place.outer.join("made"), place.at("outside")).unwrap();
        symlink("made", place.at("inside")).unwrap();
        for name in ["outside", "outside/below", "inside"] {
            let error = place.write(name).unwrap_err();
            assert!(error.contains("leads nowhere"), "{error}");
        }
        assert!(!place.outer.join("made").exists() && !place.at("made").exists());
    }

    #[test]
    fn what_was_swapped_for_a_link_after_it_was_judged_is_not_opened() {
        let place = place();
        std::fs::create_dir(place.at("a")).unwrap();
        std::fs::write(place.at("a/token"), "own").unwrap();
        let judged = |name: &str| LedPath::judged(&place.workspace, &place.at(name), Access::WritePath);
        let (there, new) = (judged("a/token").unwrap(), judged("a/new").unwrap());
        std::fs::remove_dir_all(place.at("a")).unwrap();
        symlink(&place.outer, place.at("a")).unwrap();
        assert!(there.open_for_writing().is_err() && new.open_for_writing().is_err());
        assert!(regular_file::read_real(&there.real(), CLIENT_FILE_BYTES).is_err());
        assert_eq!(std::fs::read_to_string(place.outer.join("token")).unwrap(), "s3cret");
        assert!(!place.outer.join("new").exists());
    }

    #[test]
    fn pipes_and_directories_are_no_files() {
        let place = place();
        let made = std::process::Command::new("mkfifo").arg(place.at("pipe")).status().unwrap();
        assert!(made.success());
        std::fs::create_dir(place.at("directory")).unwrap();
        assert_eq!(place.read("pipe").unwrap_err(), "this is no file");
        assert_eq!(place.read("directory").unwrap_err(), "this is no file");
        assert!(place.write("pipe").is_err() && place.write("directory").is_err());
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_by_its_size() {
        let place = place();
        std::fs::File::create(place.at("sparse")).unwrap().set_len(200 * 1024 * 1024).unwrap();
        assert_eq!(place.read("sparse").unwrap_err(), "larger than 8 MiB");
    }
}
