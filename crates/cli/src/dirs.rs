//! Where attache keeps its files: below `ATTACHE_HOME`, or in the XDG directories. Creates directories and
//! files for the owner only; does not know what is in them.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use attache_core::scope::Guarded;
use thiserror::Error;

use crate::config::ProcessEnvironment;

/// Absolute paths, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dirs {
    /// The user's home, where other programs keep their keys.
    pub(crate) home: Option<PathBuf>,
    /// The variables that move keys and settings of other programs, with their values.
    pub(crate) moved: Vec<(&'static str, OsString)>,
    /// Where programs keep their settings, also other programs.
    pub(crate) user_config: Option<PathBuf>,
    pub(crate) config_file: PathBuf,
    pub(crate) sessions_db: PathBuf,
    /// Keys that we store for the user.
    pub(crate) credentials_file: PathBuf,
    /// The token that programs need to connect to us.
    pub(crate) token_file: PathBuf,
    /// What the user consented to in projects.
    pub(crate) trust_file: PathBuf,
    /// What `attache models refresh` fetched.
    pub(crate) catalogue_file: PathBuf,
    /// Up to which moment the schedule has run.
    pub(crate) schedule_file: PathBuf,
    pub(crate) blobs: PathBuf,
    pub(crate) scratch: PathBuf,
    /// Where we unpack packages that agents in other languages need.
    pub(crate) packages: PathBuf,
    pub(crate) logs: PathBuf,
    /// What users typed into chats, by workspace.
    pub(crate) chat_history: PathBuf,
}

#[derive(Debug, Error)]
pub(crate) enum DirsError {
    #[error("no home directory: set ATTACHE_HOME (or HOME) to an absolute path")]
    NoHome,
    #[error("ATTACHE_HOME={0}: {1}")]
    BadHome(PathBuf, io::Error),
    #[error("can't write to {0}: {1}. Set ATTACHE_HOME to a directory of yours")]
    Create(PathBuf, io::Error),
}

impl Dirs {
    pub(crate) fn from_environment(environment: &ProcessEnvironment) -> Result<Self, DirsError> {
        let user = environment.path("HOME").filter(|path| path.is_absolute());
        let dirs = match environment.path("ATTACHE_HOME") {
            Some(home) => {
                let home = std::path::absolute(&home).map_err(|error| DirsError::BadHome(home, error))?;
                Ok(Self::below(&home, &home, &home, &home))
            }
            None => Self::xdg(environment),
        };
        let given = environment.path("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let user_config = given.or_else(|| Some(user.as_ref()?.join(".config")));
        let moved = Guarded::variables();
        let moved = moved.filter_map(|name| Some((name, environment.path(name)?.into_os_string()))).collect();
        dirs.map(|dirs| Self { home: user, user_config, moved, ..dirs })
    }

    fn xdg(environment: &ProcessEnvironment) -> Result<Self, DirsError> {
        let base = |variable: &str, default: &str| {
            // The XDG specification says to ignore a relative path.
            let given = environment.path(variable).filter(|path| path.is_absolute());
            let home = environment.path("HOME").filter(|path| path.is_absolute());
            given
                .or_else(|| Some(home?.join(default)))
                .map(|path| path.join("attache"))
                .ok_or(DirsError::NoHome)
        };
        Ok(Self::below(
            &base("XDG_CONFIG_HOME", ".config")?,
            &base("XDG_DATA_HOME", ".local/share")?,
            &base("XDG_CACHE_HOME", ".cache")?,
            &base("XDG_STATE_HOME", ".local/state")?,
        ))
    }

    fn below(config: &Path, data: &Path, cache: &Path, state: &Path) -> Self {
        Self {
            home: None,
            moved: Vec::new(),
            user_config: None,
            config_file: config.join("config.toml"),
            sessions_db: data.join("sessions.db"),
            credentials_file: data.join("credentials.json"),
            token_file: data.join("token"),
            trust_file: data.join("trust.json"),
            catalogue_file: data.join("catalogue.json"),
            schedule_file: data.join("schedule.json"),
            blobs: data.join("blobs"),
            scratch: cache.join("scratch"),
            packages: cache.join("packages"),
            logs: state.join("logs"),
            chat_history: state.join("chat-history"),
        }
    }

    /// Creates what is missing, except the configuration's directory: we write nothing there, so the user
    /// creates it.
    pub(crate) fn create(&self) -> Result<(), DirsError> {
        let data = self.sessions_db.parent().unwrap_or(Path::new("/"));
        for directory in [data, &self.blobs, &self.scratch, &self.packages, &self.logs] {
            create_private_directory(directory)
                .map_err(|error| DirsError::Create(directory.to_owned(), error))?;
        }
        Ok(())
    }
}

/// Mode 0700, parents included; an existing directory stays as it is.
pub(crate) fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens for appending; creates the file with mode 0600.
pub(crate) fn append_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn dirs(variables: &[(&str, &str)]) -> Result<Dirs, DirsError> {
        Dirs::from_environment(&ProcessEnvironment::from_pairs(variables))
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn with_attache_home_everything_is_below_it() {
        let dirs = dirs(&[("ATTACHE_HOME", "/h"), ("HOME", "/home/u"), ("XDG_DATA_HOME", "/d")]).unwrap();
        let below = Dirs::below(Path::new("/h"), Path::new("/h"), Path::new("/h"), Path::new("/h"));
        // Other programs keep their keys in the home directory, wherever attache keeps its own files.
        let user_config = Some("/home/u/.config".into());
        let moved = vec![("XDG_DATA_HOME", "/d".into())];
        assert_eq!(dirs, Dirs { home: Some("/home/u".into()), moved, user_config, ..below });
        assert_eq!(dirs.config_file, Path::new("/h/config.toml"));
        assert_eq!(dirs.sessions_db, Path::new("/h/sessions.db"));
        assert_eq!(dirs.logs, Path::new("/h/logs"));
    }

    #[test]
    fn a_relative_home_is_made_absolute() {
        let dirs = dirs(&[("ATTACHE_HOME", "h")]).unwrap();
        assert_eq!(dirs.config_file, std::env::current_dir().unwrap().join("h/config.toml"));
    }

    #[test]
    fn without_it_the_xdg_places_are_used() {
        let dirs = dirs(&[
            ("HOME", "/home/u"),
            ("XDG_DATA_HOME", "/d"),
            ("XDG_CACHE_HOME", "relative"),
            ("ATTACHE_HOME", ""),
        ])
        .unwrap();
        assert_eq!(dirs.config_file, Path::new("/home/u/.config/attache/config.toml"));
        assert_eq!(dirs.sessions_db, Path::new("/d/attache/sessions.db"));
        assert_eq!(dirs.blobs, Path::new("/d/attache/blobs"));
        assert_eq!(dirs.scratch, Path::new("/home/u/.cache/attache/scratch"));
        assert_eq!(dirs.logs, Path::new("/home/u/.local/state/attache/logs"));
    }

    #[test]
    fn no_home_at_all_is_a_clear_error() {
        let message = "no home directory: set ATTACHE_HOME (or HOME) to an absolute path";
        assert_eq!(dirs(&[]).unwrap_err().to_string(), message);
        assert_eq!(dirs(&[("HOME", "here")]).unwrap_err().to_string(), message);
    }

    #[test]
    fn what_is_made_belongs_to_the_owner_alone_and_what_exists_is_left() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().join("existing");
        std::fs::create_dir(&home).unwrap();
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o755)).unwrap();
        let dirs = dirs(&[("ATTACHE_HOME", home.to_str().unwrap())]).unwrap();
        dirs.create().unwrap();
        dirs.create().unwrap();
        assert_eq!(mode(&home), 0o755);
        for directory in [&dirs.blobs, &dirs.scratch, &dirs.packages, &dirs.logs] {
            assert_eq!(mode(directory), 0o700);
        }
        let log = dirs.logs.join("x.log");
        drop(append_private_file(&log).unwrap());
        assert_eq!(mode(&log), 0o600);
    }

    #[test]
    fn a_place_that_can_not_be_made_is_named() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let dirs = dirs(&[("ATTACHE_HOME", place.path().join("x").to_str().unwrap())]).unwrap();
        let message = dirs.create().unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("can't write to {}: ", place.path().join("x").display())),
            "{message}"
        );
    }
}
