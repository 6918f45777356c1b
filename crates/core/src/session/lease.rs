//! The right to write: taken before the first write of a turn, released with the last. Readers need none.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use super::Session;
use crate::hub::{self, HubError};
use crate::limits::{MEND_BASE, MEND_MAX};
use crate::ports::store::{Change, Epoch, LeaseGrant, Owner, SessionRecord};

/// Resolves when another process may have written; never resolves without a hub.
pub(super) async fn changed(hub: Option<Arc<hub::Shared>>) {
    match hub {
        Some(hub) => hub.ports.leases.changed_elsewhere().await,
        None => pending::<()>().await,
    }
}

/// Waits for this time; indefinitely without one.
pub(super) async fn pause(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => pending::<()>().await,
    }
}

/// What happens to the lease when a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseAfter {
    /// Released with the last commit, unless work waits.
    GiveBack,
    /// Kept, because the caller continues to write.
    Keep,
}

/// Whether this process may write to the session, and whether its memory matches the store.
#[derive(Debug)]
pub(crate) struct LeaseState {
    ownership: Ownership,
    /// The epoch of the state in memory; `None` if that may be stale whatever the epoch says.
    known: Option<Epoch>,
    /// How often repairing the session has failed.
    tries: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ownership {
    NotOurs,
    /// The store has granted it, but what a predecessor left could not be read or settled.
    Granted,
    /// Granted; what a predecessor left is being settled.
    Settling,
    Held,
}

impl LeaseState {
    /// The state before any grant. While another process holds the lease, more may be written under the same
    /// epoch.
    pub(crate) fn of(record: &SessionRecord) -> Self {
        let known = (record.owner == Owner::Nobody).then_some(record.epoch);
        Self { ownership: Ownership::NotOurs, known, tries: 0 }
    }

    /// Whether this process may write.
    pub(crate) fn is_held(&self) -> bool {
        match self.ownership {
            Ownership::Settling | Ownership::Held => true,
            Ownership::NotOurs | Ownership::Granted => false,
        }
    }

    /// Whether a lease was granted but could not be used.
    fn is_unsettled(&self) -> bool {
        match self.ownership {
            Ownership::Granted | Ownership::Settling => true,
            Ownership::NotOurs | Ownership::Held => false,
        }
    }

    /// The epoch of the state in memory.
    pub(crate) fn known(&self) -> Option<Epoch> {
        self.known
    }

    /// The memory is not to be trusted: the next grant reads everything again.
    pub(crate) fn distrust_memory(&mut self) {
        self.known = None;
    }

    /// Whatever lease we held is void.
    fn drop_held(&mut self) {
        self.ownership = match self.ownership {
            Ownership::NotOurs | Ownership::Held => Ownership::NotOurs,
            Ownership::Granted | Ownership::Settling => Ownership::Granted,
        };
    }

    /// The store granted the lease.
    fn grant(&mut self) {
        self.ownership = Ownership::Granted;
    }

    /// The memory is void until everything is read and settled.
    fn begin_settling(&mut self) {
        self.ownership = Ownership::Settling;
    }

    /// Memory and store match.
    fn hold(&mut self, epoch: Epoch) {
        *self = Self { ownership: Ownership::Held, known: Some(epoch), tries: 0 };
    }

    /// The change that releases the lease, if we hold it. The memory stays valid.
    fn release(&mut self) -> Option<Change> {
        let held = self.is_held();
        self.drop_held();
        held.then_some(Change::ReleaseLease)
    }

    /// How long to wait before the next try.
    fn pause(&self) -> Duration {
        (MEND_BASE * 2u32.saturating_pow(self.tries.min(16))).min(MEND_MAX)
    }
}

impl Session {
    /// Makes this process the session's owner; reads the store again if another process wrote meanwhile.
    pub(super) async fn take_lease(&mut self) -> Result<(), HubError> {
        if self.lease.is_held() && self.journal.failure().is_none() {
            return Ok(());
        }
        // A turn on a failed journal is lost; stop it before new writes.
        self.stop_run().await;
        self.lease.drop_held();
        let known = self.lease.known();
        let reload = known.is_none() || self.journal.failure().is_some();
        let (epoch, moved) = match self.hub.ports.leases.acquire(&self.id, known).await? {
            LeaseGrant::Granted { epoch, moved } => (epoch, moved),
            LeaseGrant::Elsewhere => return Err(HubError::RunningElsewhere(self.id.clone())),
            LeaseGrant::UnknownSession => return Err(HubError::unknown_session(&self.id)),
        };
        self.lease.grant();
        self.activity.follow(None);
        if moved || reload {
            self.lease.distrust_memory();
            if let Err(error) = self.read_anew(epoch).await {
                self.lease.drop_held();
                return Err(error);
            }
        } else {
            self.journal.hold(epoch, self.journal.next_index());
        }
        self.lease.hold(epoch);
        Ok(())
    }

    async fn read_anew(&mut self, epoch: Epoch) -> Result<(), HubError> {
        let record = self.read_record().await?;
        self.journal.hold(epoch, record.next_index);
        self.adopt(record.clone());
        self.lease.begin_settling();
        self.activity.forget();
        self.settle_leftovers(record).await
    }

    /// The change that releases the lease, for the last commit; none while work is left.
    pub(super) fn release(&mut self) -> Option<Change> {
        if self.children.keep_the_lease() {
            return None;
        }
        self.lease.release()
    }

    /// Releases the lease if nothing runs.
    pub(super) async fn release_when_idle(&mut self) -> Result<(), HubError> {
        if self.activity.is_ours() || !self.lease.is_held() {
            return Ok(());
        }
        let Some(release) = self.release() else { return Ok(()) };
        self.journal.change(vec![release])?;
        self.journal.settle().await?;
        Ok(())
    }

    /// After a turn, or a write outside of one: fires waiting prompts, and releases the lease if there are
    /// none. Do not call `drain` alone: its notices and the prompts that it can't fire would leave us with a
    /// lease that keeps other processes out.
    pub(super) async fn go_on(&mut self) {
        self.drain().await;
        if let Err(error) = self.release_when_idle().await {
            tracing::warn!(%error, "the lease could not be given back");
        }
    }

    /// When to try again to repair the session; `None` if it needs no repair, or while a turn runs.
    pub(super) fn mending(&self) -> Option<Duration> {
        let is_broken = self.lease.is_unsettled()
            || self.journal.failure().is_some()
            || !self.queue.withdrawn().is_empty();
        (is_broken && !self.activity.is_running()).then(|| self.lease.pause())
    }

    /// Tries to repair the session after a failure of the store: settles what is left and releases the lease.
    pub(super) async fn mend(&mut self) {
        self.lease.tries += 1;
        let tries = self.lease.tries;
        self.lease.distrust_memory();
        match self.take_lease().await {
            Ok(()) => self.go_on().await,
            Err(error) => tracing::debug!(%error, tries, "the session can't be brought into order yet"),
        }
    }
}

#[cfg(test)]
mod tests;
