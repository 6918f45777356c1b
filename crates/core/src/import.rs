//! Reads a JSONL export back into the store: checks it line by line, then stores it in one commit. Refuses a
//! damaged file as a whole.

mod archive;
mod rename;
mod taken;

use std::collections::HashSet;

use thiserror::Error;

pub use archive::{ArchiveError, SessionArchive};

use crate::hub::commit;
use crate::ids::SessionId;
use crate::ports::store::{Batch, Blobs, Change, Store, StoreError};

/// What happens to rules, granted directories and the approval level of a file: only a user may decide those.
/// No setting lets an imported file move files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// Drops them: a file from elsewhere allows nothing.
    LeaveOut,
    /// Keeps them as in the file.
    Keep,
}

/// Why a session was not imported.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum ImportError {
    #[error("session {0} is stored already")]
    SessionExists(SessionId),
    #[error("another session has {0} already")]
    IdTaken(String),
    #[error(transparent)]
    Store(StoreError),
}

/// What was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its id here.
    pub session_id: SessionId,
    /// How many messages it has.
    pub messages: usize,
    /// How many attachments came with it.
    pub blobs: usize,
    /// Attachments that parts refer to but the file does not contain.
    pub missing_blobs: usize,
    /// Rules and grants that were dropped.
    pub left_out: usize,
}

/// Stores it. Attachments come first and stay unused until the single commit of the rows: if the process is
/// killed, the session is stored completely or not at all.
pub async fn import(
    mut archive: SessionArchive,
    authority: Authority,
    store: &dyn Store,
    blobs: &dyn Blobs,
) -> Result<Imported, ImportError> {
    let id = &archive.session.id;
    if store.session(id).await.map_err(ImportError::Store)?.is_some() {
        return Err(ImportError::SessionExists(id.clone()));
    }
    let left_out = match authority {
        Authority::Keep => 0,
        Authority::LeaveOut => leave_out_rules(&mut archive),
    };
    taken::take(&mut archive, authority).map_err(ImportError::Store)?;
    let session_id = archive.session.id.clone();
    let in_file: HashSet<&String> = archive.blobs.iter().map(|(digest, _)| digest).collect();
    let missing_blobs = archive.referred.iter().filter(|digest| !in_file.contains(digest)).count();
    let imported = Imported {
        session_id: session_id.clone(),
        messages: archive.messages,
        blobs: archive.blobs.len(),
        missing_blobs,
        left_out,
    };
    for (_, bytes) in archive.blobs {
        blobs.put(&session_id, bytes).await.map_err(ImportError::Store)?;
    }
    let mut changes = Vec::with_capacity(archive.rows.len() + 1);
    changes.push(Change::CreateSession(Box::new(archive.session)));
    changes.extend(archive.rows);
    match commit(store, Batch { session_id, fence: None, changes }).await {
        Ok(()) => Ok(imported),
        Err(StoreError::Conflict(what)) => Err(ImportError::IdTaken(what)),
        Err(error) => Err(ImportError::Store(error)),
    }
}

/// How many rules and grants are dropped.
fn leave_out_rules(archive: &mut SessionArchive) -> usize {
    let session = &mut archive.session;
    let rules = session.permissions.as_array().map_or(0, Vec::len);
    let grants =
        session.metadata.granted_directories().len() + session.metadata.additional_directories().len();
    let approval = usize::from(session.metadata.approval().is_some());
    session.permissions = serde_json::json!([]);
    rules + grants + approval
}
