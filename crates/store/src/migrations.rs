//! The numbered steps from an empty file to today's schema. We never change a step after its release.

use rusqlite::{Connection, TransactionBehavior};

/// Step n makes version n. Each file contains only SQL.
const STEPS: &[&str] =
    &[include_str!("migrations/0001_first.sql"), include_str!("migrations/0002_search.sql")];

/// The version this binary reads and writes.
pub(crate) const SUPPORTED: i64 = STEPS.len() as i64;

/// "attc": tells our database from another program's.
pub(crate) const APPLICATION_ID: i64 = 0x6174_7463;

/// Brings the database to `SUPPORTED` in one transaction: if killed at any moment, it is either old or new.
pub(crate) fn apply(connection: &mut Connection) -> rusqlite::Result<()> {
    apply_steps(connection, STEPS)
}

/// Applies only the first steps, for a file that receives the rows of a database of this version.
pub(crate) fn apply_up_to(connection: &mut Connection, version: i64) -> rusqlite::Result<()> {
    let steps = usize::try_from(version).unwrap_or(0).min(STEPS.len());
    apply_steps(connection, &STEPS[..steps])
}

fn apply_steps(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    if version(connection)? >= steps.len() as i64 {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Check again under the write lock: another process may have done it meanwhile.
    let found = usize::try_from(version(&transaction)?).unwrap_or(0);
    for step in steps.iter().skip(found) {
        transaction.execute_batch(step)?;
    }
    if found < steps.len() {
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};",
            steps.len()
        ))?;
    }
    transaction.commit()
}

pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_step_builds_on_the_earlier_ones_and_a_failing_one_leaves_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        apply_steps(&mut connection, &["CREATE TABLE a (x);"]).unwrap();
        connection.execute_batch("INSERT INTO a VALUES (1)").unwrap();
        let broken = ["CREATE TABLE a (x);", "CREATE TABLE b (y); INSERT INTO missing VALUES (1);"];
        apply_steps(&mut connection, &broken).unwrap_err();
        assert_eq!(version(&connection).unwrap(), 1);
        let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table'";
        assert_eq!(connection.query_row(tables, [], |row| row.get::<_, i64>(0)).unwrap(), 1);

        apply_steps(&mut connection, &["CREATE TABLE a (x);", "ALTER TABLE a ADD COLUMN y;"]).unwrap();
        assert_eq!(version(&connection).unwrap(), 2);
        let kept = connection.query_row("SELECT x FROM a WHERE y IS NULL", [], |row| row.get::<_, i64>(0));
        assert_eq!(kept.unwrap(), 1);
    }
}
