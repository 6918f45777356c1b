//! Who may write a session: checks fences and takes leases inside the writer's transaction.

use attache_core::ids::SessionId;
use attache_core::ports::store::{Epoch, LeaseGrant, Owner, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

use crate::failure::Failure;
use crate::process_lock::{Liveness, Owners, ProcessLock};

/// Whether the lease is ours at this epoch; else `Fenced`.
pub(crate) fn check_fence(
    transaction: &Connection,
    us: &ProcessLock,
    session: &SessionId,
    epoch: Epoch,
) -> Result<(), Failure> {
    let mut statement = transaction
        .prepare_cached("SELECT 1 FROM leases WHERE session_id = ?1 AND owner = ?2 AND epoch = ?3")?;
    if statement.exists(params![session.as_str(), us.owner(), epoch.0])? {
        return Ok(());
    }
    Err(Failure::Refused(StoreError::Fenced(session.clone())))
}

/// Refuses if another living process works on the session.
pub(crate) fn check_unowned(
    transaction: &Connection,
    us: &ProcessLock,
    session: &SessionId,
) -> Result<(), Failure> {
    let mut statement = transaction.prepare_cached("SELECT owner FROM leases WHERE session_id = ?1")?;
    let holder = statement.query_row([session.as_str()], |row| row.get::<_, Option<String>>(0)).optional()?;
    match owner(us.owners(), holder.flatten().as_deref()) {
        Owner::Nobody | Owner::Us | Owner::Dead => Ok(()),
        Owner::Other => Err(Failure::Refused(StoreError::Fenced(session.clone()))),
    }
}

/// Takes the lease unless another living process holds it. `moved` is set only if the caller has data in memory
/// from another epoch than the one found; a caller with nothing in memory (`known` is `None`) has nothing
/// outdated.
pub(crate) fn acquire(
    transaction: &Connection,
    us: &ProcessLock,
    session: &SessionId,
    known: Option<Epoch>,
) -> Result<LeaseGrant, Failure> {
    let mut found = transaction.prepare_cached(
        "SELECT leases.owner, coalesce(leases.epoch, 0) FROM chat_sessions \
         LEFT JOIN leases ON leases.session_id = chat_sessions.id WHERE chat_sessions.id = ?1",
    )?;
    let found = found
        .query_row([session.as_str()], |row| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, i64>(1)?)));
    let Some((holder, epoch)) = found.optional()? else {
        return Ok(LeaseGrant::UnknownSession);
    };
    match owner(us.owners(), holder.as_deref()) {
        Owner::Other => Ok(LeaseGrant::Elsewhere),
        Owner::Us => Ok(LeaseGrant::Granted { epoch: Epoch(epoch), moved: false }),
        Owner::Nobody | Owner::Dead => {
            let next = epoch + 1;
            let mut take = transaction.prepare_cached(
                "INSERT INTO leases (session_id, owner, epoch) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch",
            )?;
            take.execute(params![session.as_str(), us.owner(), next])?;
            Ok(LeaseGrant::Granted { epoch: Epoch(next), moved: known.is_some_and(|known| known.0 != epoch) })
        }
    }
}

pub(crate) fn owner(owners: &Owners, holder: Option<&str>) -> Owner {
    match holder {
        None => Owner::Nobody,
        Some(holder) if owners.is_own(holder) => Owner::Us,
        Some(holder) => match owners.liveness(holder) {
            Liveness::Alive => Owner::Other,
            Liveness::Dead => Owner::Dead,
        },
    }
}
