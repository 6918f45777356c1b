//! Imports that did not finish: an import stores attachments before the rows that refer to them, so a killed
//! one leaves attachments without references. A marker tells the next process that opens the same database.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use attache_core::ids::SessionId;
use attache_core::ports::store::{Blobs, Store};
use attache_core::prompt::digest;
use serde_json::{Value, json};

use crate::dirs::{Dirs, create_private_directory};

/// Held open while an import runs.
#[derive(Debug)]
pub(crate) struct ImportMarker {
    path: PathBuf,
    /// Locked: a process that gets the lock knows that the import no longer runs.
    _lock: File,
}

impl ImportMarker {
    pub(crate) fn set(dirs: &Dirs, database: &Path, session: &SessionId) -> Result<Self> {
        let directory = directory(dirs);
        create_private_directory(&directory)?;
        // An id from a file is not safe as a file name.
        let path = directory.join(digest(session.as_str().as_bytes()));
        let failed = || format!("can't write {}", path.display());
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        file.lock().with_context(failed)?;
        file.set_len(0).with_context(failed)?;
        let text = json!({ "database": database, "session": session }).to_string();
        file.write_all(text.as_bytes()).with_context(failed)?;
        Ok(Self { path, _lock: file })
    }

    /// The import stored its rows, or stored nothing.
    pub(crate) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Removes what killed imports into this database left.
pub(crate) async fn clean_up(
    dirs: &Dirs,
    database: &Path,
    store: &dyn Store,
    blobs: &dyn Blobs,
) -> Result<()> {
    let Ok(entries) = fs::read_dir(directory(dirs)) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()) {
        let file = File::open(&path)?;
        let is_free = file.try_lock().is_ok();
        let Some(session) = abandoned(&path, database).filter(|_| is_free) else { continue };
        if store.session(&session).await?.is_none() {
            blobs.delete_session(&session).await?;
        }
        fs::remove_file(&path)?;
    }
    Ok(())
}

/// The session of a marker, if its import was into this database.
fn abandoned(path: &Path, database: &Path) -> Option<SessionId> {
    let marker: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    let is_ours = Path::new(marker.get("database")?.as_str()?) == database;
    is_ours.then(|| marker.get("session")?.as_str().map(SessionId::new)).flatten()
}

fn directory(dirs: &Dirs) -> PathBuf {
    dirs.blobs.with_file_name("imports")
}
