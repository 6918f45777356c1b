//! Removes sessions and the files that they leave behind.

use std::time::Duration;

use super::{Hub, HubError, SessionHandle, commit};
use crate::ids::SessionId;
use crate::limits::{SCRATCH_GRACE, SNAPSHOT_AGE};
use crate::ports::scratch::{Scratch, ScratchDirectory};
use crate::ports::store::{
    Batch, Blobs, Change, Epoch, LeaseGrant, Leases, ListedSessions, Owner, SessionPatch, SessionQuery,
    Store, StoreError,
};
use crate::snapshot;

/// Stored sessions, for callers that change one without a task in this process: the hub, and the command line
/// without a hub.
#[derive(Clone, Copy, Debug)]
pub struct StoredSessions<'a> {
    /// The stored sessions.
    pub store: &'a dyn Store,
    /// Which process may write to which session.
    pub leases: &'a dyn Leases,
    /// Their attachments.
    pub blobs: &'a dyn Blobs,
    /// Their scratch directories, if the host keeps any.
    pub scratch: Option<&'a dyn Scratch>,
}

impl StoredSessions<'_> {
    /// Erases rows, run log, attachments and scratch directory; first those of the children of its tasks. An
    /// unknown id succeeds.
    pub async fn delete(&self, id: &SessionId) -> Result<(), HubError> {
        for child in descendants(self.store, id).await?.iter().rev() {
            self.delete_alone(child).await?;
        }
        self.delete_alone(id).await
    }

    async fn delete_alone(&self, id: &SessionId) -> Result<(), HubError> {
        match self.lease(id).await {
            Ok(_) => {}
            Err(HubError::UnknownSession { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        // Blobs first: after a crash in between the session can be deleted again, and no bytes remain without
        // an owner.
        self.blobs.delete_session(id).await?;
        self.blobs.delete_session(&snapshot::owner(id)).await?;
        self.remove_scratch(id).await;
        let changes = vec![Change::DeleteSession];
        commit(self.store, Batch { session_id: id.clone(), fence: None, changes }).await?;
        if let Some(scratch) = self.scratch
            && let Err(error) = scratch.forget(id).await
        {
            tracing::warn!(session = %id, %error, "something is kept of a deleted session");
        }
        Ok(())
    }

    /// Hides the session from lists from `archived_at` on (milliseconds since 1970); `None` shows it again.
    pub async fn archive(&self, id: &SessionId, archived_at: Option<i64>) -> Result<(), HubError> {
        let epoch = self.lease(id).await?;
        let Some(record) = self.store.session(id).await? else {
            return Err(HubError::unknown_session(id));
        };
        // Keeps `updated_at`, so that archiving does not move the session in lists.
        let updated_at = record.row.updated_at;
        let patch = SessionPatch { updated_at, archived_at: Some(archived_at), ..SessionPatch::default() };
        let changes = vec![Change::PatchSession(patch), Change::ReleaseLease];
        Ok(commit(self.store, Batch { session_id: id.clone(), fence: Some(epoch), changes }).await?)
    }

    /// Takes the lease; while this process holds it, no other works with the session.
    async fn lease(&self, id: &SessionId) -> Result<Epoch, HubError> {
        match self.leases.acquire(id, None).await? {
            LeaseGrant::Granted { epoch, .. } => Ok(epoch),
            LeaseGrant::Elsewhere => Err(HubError::RunningElsewhere(id.clone())),
            LeaseGrant::UnknownSession => Err(HubError::unknown_session(id)),
        }
    }

    /// If this fails, the next process that looks for old directories tries again.
    async fn remove_scratch(&self, id: &SessionId) {
        let Some(scratch) = self.scratch else { return };
        if let Err(error) = scratch.remove(id).await {
            tracing::warn!(session = %id, %error, "a scratch directory could not be removed");
        }
    }
}

/// The children of a session's tasks, and theirs; each follows its parent.
async fn descendants(store: &dyn Store, id: &SessionId) -> Result<Vec<SessionId>, StoreError> {
    let mut found = Vec::new();
    let mut next = Some(id.clone());
    let mut looked_at = 0;
    while let Some(parent) = next {
        let query = SessionQuery {
            limit: usize::MAX,
            listed: ListedSessions::ChildrenOf(parent),
            ..SessionQuery::default()
        };
        found.extend(store.list_sessions(query).await?.into_iter().map(|row| row.id));
        next = found.get(looked_at).cloned();
        looked_at += 1;
    }
    Ok(found)
}

impl Hub {
    /// Cancels what runs and erases the session. An unknown id succeeds.
    pub async fn delete(&self, id: &SessionId) -> Result<(), HubError> {
        // Checked before anything is closed: a refused deletion must not disconnect the clients that follow the
        // run.
        let owner = self.shared.ports.store.session(id).await?.map(|record| record.owner);
        if owner == Some(Owner::Other) {
            return Err(HubError::RunningElsewhere(id.clone()));
        }
        self.close_open(id).await?;
        for child in descendants(&*self.shared.ports.store, id).await? {
            self.close_open(&child).await?;
        }
        self.stored_sessions().delete(id).await
    }

    async fn close_open(&self, id: &SessionId) -> Result<(), HubError> {
        let commands = self.shared.open_sessions().get(id).cloned();
        match commands {
            Some(commands) => SessionHandle { id: id.clone(), commands }.close().await,
            None => Ok(()),
        }
    }

    fn stored_sessions(&self) -> StoredSessions<'_> {
        let ports = &self.shared.ports;
        StoredSessions {
            store: &*ports.store,
            leases: &*ports.leases,
            blobs: &*ports.blobs,
            scratch: ports.scratch.as_deref(),
        }
    }

    /// Removes the scratch directories of sessions that are not open here, don't run elsewhere and were not
    /// used for `SCRATCH_GRACE`.
    pub async fn remove_old_scratch(&self) -> Result<(), HubError> {
        let Some(scratch) = &self.shared.ports.scratch else { return Ok(()) };
        let left = scratch.left().await;
        for left in left.map_err(|error| HubError::Internal(format!("scratch directories: {error}")))? {
            if self.is_abandoned(&left).await? {
                self.stored_sessions().remove_scratch(&left.session).await;
            }
        }
        Ok(())
    }

    /// Removes the file snapshots of sessions that are not open and made none for `SNAPSHOT_AGE`.
    pub async fn remove_old_snapshots(&self) -> Result<(), HubError> {
        let blobs = &self.shared.ports.blobs;
        for owner in blobs.owners().await? {
            let Some(session) = snapshot::session_of(&owner.session) else { continue };
            if self.is_older(owner.touched_at, SNAPSHOT_AGE) && self.living(&session).is_none() {
                let record = self.shared.ports.store.session(&session).await?;
                if !record.is_some_and(|record| record.owner == Owner::Other) {
                    blobs.delete_session(&owner.session).await?;
                }
            }
        }
        Ok(())
    }

    fn is_older(&self, time: i64, age: Duration) -> bool {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        self.shared.ports.clock.now_ms().saturating_sub(time) > age
    }

    async fn is_abandoned(&self, left: &ScratchDirectory) -> Result<bool, StoreError> {
        let is_old = |time: i64| self.is_older(time, SCRATCH_GRACE);
        if !is_old(left.touched_at) || self.living(&left.session).is_some() {
            return Ok(false);
        }
        Ok(match self.shared.ports.store.session(&left.session).await? {
            Some(record) => match record.owner {
                Owner::Us | Owner::Other => false,
                Owner::Nobody | Owner::Dead => is_old(record.row.updated_at),
            },
            // Deleted, or a session of another database: only the age of the directory can decide.
            None => true,
        })
    }
}
