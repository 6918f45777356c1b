//! Checks a database thoroughly without changing it, for a user who asks for its state.

use std::path::Path;

use crate::connection::{Connector, Durability};
use crate::examine::{self, DatabaseTrouble};
use crate::migrations::{self, SUPPORTED};
use crate::writer_queue::WriterQueue;

/// The state of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// There is no database yet.
    Absent,
    /// We could read all of it, and it is writable.
    Sound {
        /// The size of the file.
        bytes: u64,
        /// The version of its tables.
        schema: i64,
    },
    /// A later version wrote it.
    Newer {
        /// The version of its tables.
        found: i64,
        /// The newest version we know.
        supported: i64,
    },
    /// The file belongs to another program.
    Foreign(String),
    /// What is damaged.
    Damaged(String),
    /// The disk, the access rights or another process prevent the check.
    Unusable(String),
}

/// Takes time in proportion to the file's size. Sets nothing aside and migrates nothing. But a start does not
/// check all of a large file, so this notes damage for the next start.
pub fn diagnose(database: &Path) -> Diagnosis {
    match database.metadata() {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Diagnosis::Absent,
        Err(error) => return Diagnosis::Unusable(error.to_string()),
    }
    let connector = Connector::new(database.to_owned(), Durability::Normal);
    if let Some(reason) = examine::foreign_journal(&connector) {
        return Diagnosis::Unusable(reason);
    }
    match look(&connector) {
        Ok(sound) => sound,
        Err(DatabaseTrouble::Newer { found }) => Diagnosis::Newer { found, supported: SUPPORTED },
        Err(DatabaseTrouble::Foreign(reason)) => Diagnosis::Foreign(reason),
        Err(DatabaseTrouble::Damaged(reason)) => {
            examine::suspect(&connector, &reason);
            Diagnosis::Damaged(reason)
        }
        Err(DatabaseTrouble::Unusable(reason)) => Diagnosis::Unusable(reason),
    }
}

fn look(connector: &Connector) -> Result<Diagnosis, DatabaseTrouble> {
    let connection = examine::look(connector)?;
    examine::every_page(&connection)?;
    let schema = migrations::version(&connection)?;
    // Takes the place of a writer and gives it back: whoever can do that can write.
    let turn = WriterQueue::found(connector).turn();
    connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
    drop(turn);
    let bytes = connector.path.metadata()?.len();
    Ok(Diagnosis::Sound { bytes, schema })
}
