//! How a transaction of the writer begins: at once where nobody else writes, else in its turn.

use rusqlite::Connection;

use crate::connection::{Connector, is_busy, wait_for_a_commit, wait_when_busy};
use crate::writer_queue::WriterQueue;

/// Whether this process has committed before.
pub(super) enum LogStart {
    ToBegin,
    Begun,
}

/// Fails as busy when the lock could not be had in the turn either.
pub(super) fn begin(
    connection: &mut Connection,
    connector: &Connector,
    log: &LogStart,
    writers: &mut WriterQueue,
) -> rusqlite::Result<()> {
    let attempt = |connection: &Connection| match log {
        LogStart::ToBegin => connector.begin_first(connection),
        LogStart::Begun => connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(drop),
    };
    wait_for_a_commit(connection)?;
    let begun = attempt(connection);
    wait_when_busy(connection)?;
    match begun {
        Err(error) if is_busy(&error) => {
            let turn = writers.turn();
            let begun = attempt(connection);
            drop(turn);
            begun
        }
        begun => begun,
    }
}
