//! Reports what files contain before a call changes them, to the sink that keeps it. Moves nothing; `mover`
//! does.

mod mover;

use std::path::Path;

use attache_core::ports::SnapshotSink;
use attache_core::prompt;
use attache_core::snapshot::{CallSnapshot, FileKeeper, FileSnapshot, FileState};

use crate::digest::digest;
use crate::files::{FileError, FoundThere, NewMode, Parents, Target};
use crate::roots::OpenRoots;
use crate::texts::{Deed, Original, OriginalContent, TextStore};

pub use mover::SnapshotMover;

/// The mode of a new executable file, as long as nothing changed it.
const EXECUTABLE: u32 = 0o755;

/// Reports what a change is about to do; the change may happen once this has returned without an error.
pub(crate) async fn tell_change(
    sink: &dyn SnapshotSink,
    title: &str,
    changes: impl Iterator<Item = (&Original, &Deed)>,
) -> Result<(), String> {
    let mut files = Vec::new();
    for (original, deed) in changes {
        files.push(of_change(sink, original, deed).await);
    }
    if files.is_empty() {
        return Ok(());
    }
    sink.record(CallSnapshot { title: title.to_owned(), files, ..CallSnapshot::default() }).await
}

async fn of_change(sink: &dyn SnapshotSink, original: &Original, deed: &Deed) -> FileSnapshot {
    let (keeper, before, after) = match (deed, &original.writer) {
        (Deed::Put { bytes, mode, .. }, TextStore::Disk) => {
            let mode = match mode {
                NewMode::Usual => None,
                NewMode::Executable => Some(EXECUTABLE),
                NewMode::Exactly(mode) => Some(*mode),
            };
            let after = FileState::File { digest: prompt::digest(bytes), blob: None, mode };
            (FileKeeper::Disk, on_disk(sink, original).await, after)
        }
        (Deed::Put { body, .. }, TextStore::Client(_)) => {
            // After an undo no one else has this text, nor could it be found from what the client says.
            let after = kept_text(sink, body).await;
            (FileKeeper::Client, of_client(sink, original).await, after)
        }
        // Clients can't remove files: that happens on the disk.
        (Deed::Remove, TextStore::Disk | TextStore::Client(_)) => {
            (FileKeeper::Disk, on_disk(sink, original).await, FileState::Absent)
        }
    };
    let made_directories = match deed {
        Deed::Put { .. } => original.missing_directories,
        Deed::Remove => 0,
    };
    FileSnapshot { path: original.named.clone(), keeper, before, after: Some(after), made_directories }
}

async fn on_disk(sink: &dyn SnapshotSink, original: &Original) -> FileState {
    match (&original.disk, &original.content) {
        (Some(disk), _) => kept(sink, disk.bytes.clone(), disk.mode).await,
        (None, OriginalContent::Opaque(error)) => FileState::Unkept { reason: error.to_string() },
        (None, OriginalContent::Missing(_) | OriginalContent::Text(_)) => FileState::Absent,
    }
}

async fn kept(sink: &dyn SnapshotSink, bytes: Vec<u8>, mode: u32) -> FileState {
    match sink.keep(bytes).await {
        Ok(digest) => FileState::File { digest, blob: None, mode: Some(mode) },
        Err(reason) => FileState::Unkept { reason },
    }
}

async fn of_client(sink: &dyn SnapshotSink, original: &Original) -> FileState {
    match &original.content {
        OriginalContent::Text(decoded) => kept_text(sink, &decoded.body).await,
        OriginalContent::Missing(_) => FileState::Absent,
        OriginalContent::Opaque(error) => FileState::Unkept { reason: error.to_string() },
    }
}

async fn kept_text(sink: &dyn SnapshotSink, body: &str) -> FileState {
    match sink.keep(body.as_bytes().to_vec()).await {
        Ok(blob) => FileState::File { digest: digest(body.as_bytes()), blob: Some(blob), mode: None },
        Err(reason) => FileState::Unkept { reason },
    }
}

/// The state of a path that a command is about to write, as far as it can be kept and restored.
pub(crate) async fn of_path(sink: &dyn SnapshotSink, path: &Path, reach: &OpenRoots) -> FileState {
    match look(path, reach).await {
        Ok(FoundThere::Nothing) => FileState::Absent,
        Ok(FoundThere::File { bytes, mode }) => kept(sink, bytes, mode).await,
        Ok(FoundThere::Link { target }) => FileState::Link { target },
        Ok(FoundThere::Other(reason)) => FileState::Unkept { reason: reason.to_owned() },
        Err(error) => FileState::Unkept { reason: error.to_string() },
    }
}

/// The state that a command left there; `None` if it is unknown.
pub(crate) async fn left_at(path: &Path, reach: &OpenRoots) -> Option<FileState> {
    match look(path, reach).await {
        Ok(FoundThere::Nothing) => Some(FileState::Absent),
        Ok(FoundThere::File { bytes, mode }) => {
            Some(FileState::File { digest: prompt::digest(&bytes), blob: None, mode: Some(mode) })
        }
        Ok(FoundThere::Link { target }) => Some(FileState::Link { target }),
        Ok(FoundThere::Other(_)) | Err(_) => None,
    }
}

async fn look(path: &Path, reach: &OpenRoots) -> Result<FoundThere, FileError> {
    let (owned, reach) = (path.to_owned(), reach.clone());
    let looked = tokio::task::spawn_blocking(move || {
        match Target::open_unfollowed(&owned, &reach, Parents::Require) {
            Ok(target) => target.look(),
            Err(FileError::Missing { .. }) => Ok(FoundThere::Nothing),
            Err(error) => Err(error),
        }
    });
    looked.await.unwrap_or_else(|error| Err(FileError::io(path, "read", std::io::Error::other(error))))
}
