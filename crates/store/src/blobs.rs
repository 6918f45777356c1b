//! Attachments as files named by their content, with a list per session of what it refers to. Knows no database
//! rows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use attache_core::ids::SessionId;
use attache_core::ports::BoxFuture;
use attache_core::ports::store::{BlobOwner, Blobs, StoreError, StoreResult};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};

use crate::limits;
use crate::open::make_directory;

/// `DIR/ab/cdef…` holds content, `DIR/sessions/SESSION/SHA256` (empty) records a reference, `DIR/incoming`
/// holds unfinished files. A killed process leaves at most a file in `incoming` or a reference without content.
#[derive(Clone, Debug)]
pub struct FileBlobs {
    root: Arc<PathBuf>,
}

impl FileBlobs {
    /// Touches nothing until the first attachment.
    pub fn new(directory: PathBuf) -> Self {
        Self { root: Arc::new(directory) }
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, BlobTrouble> + Send + 'static,
    ) -> BoxFuture<'static, StoreResult<T>> {
        let root = Arc::clone(&self.root);
        Box::pin(async move {
            let result = tokio::task::spawn_blocking(move || work(&root)).await;
            match result {
                Ok(result) => result.map_err(StoreError::from),
                Err(error) => {
                    Err(StoreError::Unavailable(format!("attachment work did not finish: {error}")))
                }
            }
        })
    }
}

impl Blobs for FileBlobs {
    fn put(&self, session: &SessionId, bytes: Vec<u8>) -> BoxFuture<'static, StoreResult<String>> {
        let session = session.clone();
        self.run(move |root| put(root, &session, &bytes))
    }

    fn get(&self, sha256: &str) -> BoxFuture<'static, StoreResult<Option<Vec<u8>>>> {
        let digest = sha256.to_owned();
        self.run(move |root| get(root, &digest))
    }

    fn share(&self, from: &SessionId, with: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        let (from, with) = (from.clone(), with.clone());
        self.run(move |root| share(root, &from, &with))
    }

    fn bytes_of(&self, session: &SessionId) -> BoxFuture<'static, StoreResult<u64>> {
        let session = session.clone();
        self.run(move |root| bytes_of(root, &session))
    }

    fn owners(&self) -> BoxFuture<'static, StoreResult<Vec<BlobOwner>>> {
        self.run(owners)
    }

    fn delete_session(&self, session: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        let session = session.clone();
        self.run(move |root| delete_session(root, &session))
    }
}

enum BlobTrouble {
    Io(io::Error),
    /// The content does not match its name.
    Changed(String),
}

impl From<io::Error> for BlobTrouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<BlobTrouble> for StoreError {
    fn from(trouble: BlobTrouble) -> Self {
        match trouble {
            BlobTrouble::Io(error) if error.kind() == io::ErrorKind::StorageFull => {
                Self::Unavailable("disk full while storing an attachment".into())
            }
            BlobTrouble::Io(error) => Self::Unavailable(format!("attachment: {error}")),
            BlobTrouble::Changed(digest) => Self::Corrupt(format!("attachment {digest} was changed on disk")),
        }
    }
}

fn put(root: &Path, session: &SessionId, bytes: &[u8]) -> Result<String, BlobTrouble> {
    let digest = hex(&Sha256::digest(bytes));
    let target = content_path(root, &digest);
    let references = session_directory(root, session);
    make_directory(&references)?;
    // Do not write existing content again, but check for it once more under the lock.
    let incoming = if target.exists() { None } else { Some(write_incoming(root, bytes)?) };
    let guard = lock(root)?;
    create(&references.join(&digest))?;
    if !target.exists() {
        if let Some(parent) = target.parent() {
            make_directory(parent)?;
        }
        let incoming = match &incoming {
            Some(incoming) => incoming.clone(),
            None => write_incoming(root, bytes)?,
        };
        fs::rename(incoming, &target)?;
    } else if let Some(incoming) = incoming {
        fs::remove_file(incoming)?;
    }
    drop(guard);
    Ok(digest)
}

fn get(root: &Path, digest: &str) -> Result<Option<Vec<u8>>, BlobTrouble> {
    // The text comes from a stored part and becomes a path.
    if digest.len() != 64 || !digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(None);
    }
    let bytes = match fs::read(content_path(root, digest)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if hex(&Sha256::digest(&bytes)) != digest {
        return Err(BlobTrouble::Changed(digest.to_owned()));
    }
    Ok(Some(bytes))
}

/// Copies only references. Under the lock, so that no process deletes content between our check and our
/// reference.
fn share(root: &Path, from: &SessionId, with: &SessionId) -> Result<(), BlobTrouble> {
    let shared = session_directory(root, from);
    if !shared.is_dir() {
        return Ok(());
    }
    let own = session_directory(root, with);
    make_directory(&own)?;
    let guard = lock(root)?;
    for entry in fs::read_dir(&shared)? {
        create(&own.join(entry?.file_name()))?;
    }
    drop(guard);
    Ok(())
}

fn bytes_of(root: &Path, session: &SessionId) -> Result<u64, BlobTrouble> {
    let mut bytes = 0;
    for entry in entries(&session_directory(root, session))? {
        let content = content_path(root, &entry?.file_name().to_string_lossy());
        // A reference without content takes no room.
        bytes += content.metadata().map_or(0, |metadata| metadata.len());
    }
    Ok(bytes)
}

fn owners(root: &Path) -> Result<Vec<BlobOwner>, BlobTrouble> {
    let mut owners = Vec::new();
    for entry in entries(&sessions_directory(root))? {
        let entry = entry?;
        let Some(session) = SessionId::of_directory(&entry.file_name().to_string_lossy()) else { continue };
        // A directory's time changes with every change of its names.
        let touched =
            entry.metadata()?.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let touched_at = i64::try_from(touched.as_millis()).unwrap_or(i64::MAX);
        owners.push(BlobOwner { session, touched_at });
    }
    Ok(owners)
}

/// The entries of a directory that may not exist.
fn entries(directory: &Path) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
    match fs::read_dir(directory) {
        Ok(entries) => Ok(Some(entries).into_iter().flatten()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        Err(error) => Err(error),
    }
}

fn delete_session(root: &Path, session: &SessionId) -> Result<(), BlobTrouble> {
    let own = session_directory(root, session);
    if !own.is_dir() {
        return Ok(());
    }
    let guard = lock(root)?;
    let others: Vec<PathBuf> = fs::read_dir(sessions_directory(root))?
        .map(|entry| entry.map(|entry| entry.path()))
        .filter(|path| !matches!(path, Ok(path) if *path == own))
        .collect::<io::Result<_>>()?;
    for entry in fs::read_dir(&own)? {
        let entry = entry?;
        let name = entry.file_name();
        let shared = others.iter().any(|other| other.join(&name).exists());
        if !shared {
            remove_if_there(&content_path(root, &name.to_string_lossy()))?;
        }
        // Remove the reference last: if we are killed in between, the deletion can be repeated.
        remove_if_there(&entry.path())?;
    }
    fs::remove_dir(&own)?;
    remove_abandoned(root)?;
    drop(guard);
    Ok(())
}

/// Removes what killed processes left while writing.
fn remove_abandoned(root: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(incoming_directory(root)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let modified = entry.metadata()?.modified()?;
        let age = SystemTime::now().duration_since(modified).unwrap_or_default();
        if age > limits::INCOMING_MAX_AGE {
            remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}

fn write_incoming(root: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let directory = incoming_directory(root);
    make_directory(&directory)?;
    let name = format!("{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let path = directory.join(name);
    let written = create(&path).and_then(|mut file| file.write_all(bytes));
    if let Err(error) = written {
        remove_if_there(&path)?;
        return Err(error);
    }
    Ok(path)
}

/// Only one process at a time puts or deletes in a store.
fn lock(root: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(root.join("lock"))?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn content_path(root: &Path, digest: &str) -> PathBuf {
    let (directory, name) = digest.split_at_checked(2).unwrap_or(("", digest));
    root.join(directory).join(name)
}

fn sessions_directory(root: &Path) -> PathBuf {
    root.join("sessions")
}

fn incoming_directory(root: &Path) -> PathBuf {
    root.join("incoming")
}

fn session_directory(root: &Path, session: &SessionId) -> PathBuf {
    sessions_directory(root).join(session.directory_name())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
        text
    })
}
