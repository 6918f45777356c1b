//! The right to write: taken before the first write of a turn, given back with the last. Readers need none.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use super::Session;
use crate::hub::{self, HubError};
use crate::limits::{MEND_BASE, MEND_MAX};
use crate::ports::store::{Change, Epoch, LeaseGrant};

/// Resolves when another process may have written; never while nobody is followed.
pub(super) async fn changed(hub: &Arc<hub::Shared>, following: bool) {
    if following {
        hub.parts.leases.changed_elsewhere().await;
    } else {
        pending::<()>().await;
    }
}

/// Waits so long; for ever without a time.
pub(super) async fn pause(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => pending::<()>().await,
    }
}

/// What is known of a lease that was granted but could not be put to use, and how often it was tried since.
#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    granted: bool,
    tries: u32,
}

/// What becomes of the lease when a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseAfter {
    /// Given back with the last commit, unless something waits.
    GiveBack,
    /// The caller goes on writing.
    Keep,
}

impl Session {
    /// Makes this process the session's owner; reads the store anew when somebody else wrote meanwhile.
    pub(super) async fn take_lease(&mut self) -> Result<(), HubError> {
        if self.lease.is_some() && self.journal.failure().is_none() {
            return Ok(());
        }
        // A turn on a failed journal is lost; nothing may be written anew beside it.
        self.stop_run().await;
        self.lease = None;
        let reload = self.known.is_none() || self.journal.failure().is_some();
        let (epoch, moved) = match self.hub.parts.leases.acquire(&self.id, self.known).await? {
            LeaseGrant::Granted { epoch, moved } => (epoch, moved),
            LeaseGrant::Elsewhere => return Err(HubError::RunningElsewhere(self.id.clone())),
            LeaseGrant::UnknownSession => return Err(HubError::UnknownSession(self.id.clone())),
        };
        self.unsettled.granted = true;
        self.following = None;
        if moved || reload {
            // Until everything is read and settled nothing in memory counts.
            self.known = None;
            if let Err(error) = self.read_anew(epoch).await {
                self.lease = None;
                return Err(error);
            }
        } else {
            self.journal.hold(epoch, self.journal.next_index());
            self.lease = Some(epoch);
        }
        self.known = Some(epoch);
        self.unsettled = Unsettled::default();
        Ok(())
    }

    async fn read_anew(&mut self, epoch: Epoch) -> Result<(), HubError> {
        let record = self.read_record().await?;
        self.journal.hold(epoch, record.next_index);
        self.adopt(record.clone());
        self.known = None;
        self.lease = Some(epoch);
        self.settle_leftovers(record).await
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

    /// After a write outside of a turn: fires what waits, gives the lease back when nothing does.
    pub(super) async fn go_on(&mut self) {
        self.drain().await;
        if let Err(error) = self.release_when_idle().await {
            tracing::warn!(%error, "the lease could not be given back");
        }
    }

    /// When to try again to bring the store into order; `None` when it is, or while a turn runs.
    pub(super) fn mending(&self) -> Option<Duration> {
        let broken = self.unsettled.granted || self.journal.failure().is_some() || !self.withdrawn.is_empty();
        let pause = MEND_BASE * 2u32.saturating_pow(self.unsettled.tries.min(16));
        (broken && self.running.is_none()).then(|| pause.min(MEND_MAX))
    }

    /// A store that failed may work again: settles what it left and gives the lease back.
    pub(super) async fn mend(&mut self) {
        self.unsettled.tries += 1;
        let tries = self.unsettled.tries;
        // Whatever we have in memory is not to be trusted: read everything under the lease.
        self.known = None;
        match self.take_lease().await {
            Ok(()) => self.go_on().await,
            Err(error) => {
                self.unsettled.tries = tries;
                tracing::debug!(%error, tries, "the session can't be brought into order yet");
            }
        }
    }
}
