//! The files of the shared server: its record, its socket, the lock that shows it is alive, and the lock for
//! starting one. All are in a directory that only their owner can read and no command of a session can reach.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::config::SettingOrigin;
use crate::dirs::append_private_file;
use crate::setup::Sources;

/// What a server tells clients that look for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DaemonRecord {
    pub(super) version: String,
    pub(super) pid: u32,
    pub(super) config: PathBuf,
    pub(super) store: PathBuf,
}

/// The paths of the files.
#[derive(Clone, Debug)]
pub(super) struct SharedFiles {
    data: PathBuf,
    logs: PathBuf,
    wanted: DaemonRecord,
    options: Vec<String>,
}

/// Locked by a process that looks for a server, starts one or ends one.
#[derive(Debug)]
pub(super) struct StartLock {
    _file: File,
}

/// Locked by the server as long as it lives.
#[derive(Debug)]
pub(crate) struct DaemonPlace {
    files: SharedFiles,
    _life: File,
}

impl SharedFiles {
    pub(super) fn of(sources: &Sources) -> Self {
        let (config, dirs) = (&sources.config, &sources.dirs);
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (file, store) = (absolute(&config.file), absolute(&config.store.value));
        let mut options = Vec::new();
        if file != absolute(&dirs.config_file) {
            options.extend(["--config".to_owned(), file.to_string_lossy().into_owned()]);
        }
        if matches!(config.store.origin, SettingOrigin::Option(_)) {
            options.extend(["--store".to_owned(), store.to_string_lossy().into_owned()]);
        }
        let data = dirs.token_file.parent().unwrap_or(Path::new("/")).to_owned();
        let version = crate::installation::VERSION.to_owned();
        let wanted = DaemonRecord { version, pid: std::process::id(), config: file, store };
        Self { data, logs: dirs.logs.clone(), wanted, options }
    }

    /// The record that a server started from here would have.
    pub(super) fn wanted_record(&self) -> &DaemonRecord {
        &self.wanted
    }

    pub(super) fn options(&self) -> &[String] {
        &self.options
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.data.join("daemon.sock")
    }

    pub(super) fn lock_name(&self) -> String {
        self.life().display().to_string()
    }

    fn life(&self) -> PathBuf {
        self.data.join("daemon.lock")
    }

    fn record_file(&self) -> PathBuf {
        self.data.join("daemon.json")
    }

    /// For the output of a server that has no log yet; emptied for each server.
    pub(super) fn open_log(&self) -> io::Result<(PathBuf, File)> {
        let path = self.logs.join("daemon.log");
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        Ok((path, file))
    }

    /// `None` if another process holds it.
    pub(super) fn lock_start(&self) -> Result<Option<StartLock>> {
        crate::dirs::create_private_directory(&self.data)
            .context("the directory of attache can't be made")?;
        let lock = try_lock(&self.data.join("daemon.start"), FlockOperation::NonBlockingLockExclusive);
        Ok(lock
            .context("the lock of the shared server can't be taken")?
            .map(|file| StartLock { _file: file }))
    }

    /// Whether no server is alive. The process id alone would not tell: the system reuses ids.
    pub(super) fn is_free(&self) -> bool {
        matches!(try_lock(&self.life(), FlockOperation::NonBlockingLockShared), Ok(Some(_)))
    }

    /// `None` also if the file contains something else.
    pub(super) fn record(&self) -> Option<DaemonRecord> {
        let value: Value = serde_json::from_slice(&fs::read(self.record_file()).ok()?).ok()?;
        let text = |key: &str| value.get(key)?.as_str().map(str::to_owned);
        Some(DaemonRecord {
            version: text("version")?,
            pid: u32::try_from(value.get("pid")?.as_u64()?).ok()?,
            config: text("config")?.into(),
            store: text("store")?.into(),
        })
    }
}

fn try_lock(path: &Path, operation: FlockOperation) -> io::Result<Option<File>> {
    let file = append_private_file(path)?;
    match flock(&file, operation) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl DaemonPlace {
    /// Takes the place of the one server of this home.
    pub(crate) fn take(sources: &Sources) -> Result<Self> {
        let files = SharedFiles::of(sources);
        // A process that only looks holds the lock for just a moment.
        for _ in 0..100 {
            if let Some(life) = try_lock(&files.life(), FlockOperation::NonBlockingLockExclusive)? {
                return Ok(Self { files, _life: life });
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        bail!("a shared server of this home lives already");
    }

    pub(super) fn files(&self) -> &SharedFiles {
        &self.files
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.files.socket()
    }

    /// Clients find the server from now on. Writes the record completely or not at all, because others may read
    /// at any moment.
    pub(crate) fn register(&self) -> Result<()> {
        let DaemonRecord { version, pid, config, store } = &self.files.wanted;
        let record = json!({
            "version": version,
            "pid": pid,
            "address": format!("unix:{}", self.socket().display()),
            "config": config.to_string_lossy(),
            "store": store.to_string_lossy(),
        });
        let mut file = tempfile::Builder::new().prefix(".daemon-").tempfile_in(&self.files.data)?;
        writeln!(file, "{record}")?;
        file.persist(self.files.record_file())?;
        Ok(())
    }

    /// Clients no longer find the server from now on; those that look wait for its end.
    pub(crate) fn withdraw(&self) {
        if let Err(error) = fs::remove_file(self.files.record_file()) {
            tracing::debug!(%error, "the record was gone already");
        }
    }
}

impl Drop for DaemonPlace {
    fn drop(&mut self) {
        self.withdraw();
    }
}
