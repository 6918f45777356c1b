//! Removes sessions, and what sessions leave behind.

use super::{Hub, HubError, SessionHandle};
use crate::ids::SessionId;
use crate::limits::SCRATCH_GRACE;
use crate::ports::scratch::Left;
use crate::ports::store::{Batch, Change, LeaseGrant, Owner, StoreError};

impl Hub {
    /// Cancels and erases. An unknown id succeeds.
    pub async fn delete(&self, id: &SessionId) -> Result<(), HubError> {
        // Looked at before anything is closed: a refused deletion must leave those who follow the run in their seats.
        let owner = self.shared.parts.store.session(id).await?.map(|record| record.owner);
        if owner == Some(Owner::Other) {
            return Err(HubError::RunningElsewhere(id.clone()));
        }
        let commands = self.shared.open_sessions().get(id).cloned();
        if let Some(commands) = commands {
            SessionHandle { id: id.clone(), commands }.close().await?;
        }
        let Some(_) = self.shared.parts.store.session(id).await? else { return Ok(()) };
        match self.shared.parts.leases.acquire(id, None).await? {
            LeaseGrant::Granted { .. } => {}
            LeaseGrant::Elsewhere => return Err(HubError::RunningElsewhere(id.clone())),
            LeaseGrant::UnknownSession => return Ok(()),
        }
        // Blobs first: a crash in between leaves a session that can be deleted again, not bytes nobody owns.
        self.shared.parts.blobs.delete_session(id).await?;
        self.remove_scratch(id).await;
        self.commit(Batch { session_id: id.clone(), fence: None, changes: vec![Change::DeleteSession] }).await
    }

    /// Removes the scratch directories of sessions that are not open here, don't run elsewhere and were not used for
    /// `SCRATCH_GRACE`.
    pub async fn remove_old_scratch(&self) -> Result<(), HubError> {
        let Some(scratch) = &self.shared.parts.scratch else { return Ok(()) };
        let left = scratch.left().await;
        for left in left.map_err(|error| HubError::Internal(format!("scratch directories: {error}")))? {
            if self.is_abandoned(&left).await? {
                self.remove_scratch(&left.session).await;
            }
        }
        Ok(())
    }

    async fn is_abandoned(&self, left: &Left) -> Result<bool, StoreError> {
        let grace = i64::try_from(SCRATCH_GRACE.as_millis()).unwrap_or(i64::MAX);
        let is_old = |time: i64| self.shared.parts.clock.now_ms().saturating_sub(time) > grace;
        if !is_old(left.touched_at) || self.living(&left.session).is_some() {
            return Ok(false);
        }
        Ok(match self.shared.parts.store.session(&left.session).await? {
            Some(record) => match record.owner {
                Owner::Us | Owner::Other => false,
                Owner::Nobody | Owner::Dead => is_old(record.row.updated_at),
            },
            // Deleted, or a session of another database: its age is all there is to go by.
            None => true,
        })
    }

    /// What can't be removed is tried again by the next process that looks.
    async fn remove_scratch(&self, id: &SessionId) {
        let Some(scratch) = &self.shared.parts.scratch else { return };
        if let Err(error) = scratch.remove(id).await {
            tracing::warn!(session = %id, %error, "a scratch directory could not be removed");
        }
    }
}
