//! The right to write: taken before the first write of a turn, given back with the last. Readers need none.

use std::future::pending;
use std::sync::Arc;

use super::Session;
use crate::hub::{self, HubError};
use crate::ports::store::{Change, LeaseGrant};

/// Resolves when another process may have written; never while nobody is followed.
pub(super) async fn changed(hub: &Arc<hub::Shared>, following: bool) {
    if following {
        hub.parts.leases.changed_elsewhere().await;
    } else {
        pending::<()>().await;
    }
}

impl Session {
    /// Makes this process the session's owner; reads the store anew when somebody else wrote meanwhile.
    pub(super) async fn take_lease(&mut self) -> Result<(), HubError> {
        if self.lease.is_some() && self.journal.failure().is_none() {
            return Ok(());
        }
        self.lease = None;
        let (epoch, moved) = match self.hub.parts.leases.acquire(&self.id, self.known).await? {
            LeaseGrant::Granted { epoch, moved } => (epoch, moved),
            LeaseGrant::Elsewhere => return Err(HubError::RunningElsewhere(self.id.clone())),
            LeaseGrant::UnknownSession => return Err(HubError::UnknownSession(self.id.clone())),
        };
        self.following = None;
        // Without a known epoch there is nothing in memory to trust.
        if moved || self.known.is_none() || self.journal.failure().is_some() {
            let record = self.hub.parts.store.session(&self.id).await?;
            let record = record.ok_or_else(|| HubError::UnknownSession(self.id.clone()))?;
            self.journal.hold(epoch, record.next_index);
            self.adopt(record.clone());
            self.lease = Some(epoch);
            self.known = Some(epoch);
            self.settle_leftovers(record).await?;
        } else {
            self.journal.hold(epoch, self.journal.next_index());
            self.lease = Some(epoch);
            self.known = Some(epoch);
        }
        Ok(())
    }

    /// The change that gives the lease back, to go with the last commit; nothing while work is left.
    pub(super) fn release(&mut self) -> Option<Change> {
        self.lease.take().map(|_| Change::ReleaseLease)
    }

    /// Gives the lease back when nothing is under way.
    pub(super) async fn release_when_idle(&mut self) -> Result<(), HubError> {
        if self.is_active() || self.lease.is_none() {
            return Ok(());
        }
        let changes: Vec<_> = self.release().into_iter().collect();
        self.journal.change(changes)?;
        self.journal.settle().await?;
        Ok(())
    }
}
