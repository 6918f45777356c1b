//! Sorts SQLite's errors: a refusal concerns one batch, a failing medium concerns everybody.

use std::path::Path;

use attache_core::ports::store::StoreError;
use rusqlite::ErrorCode;
use rusqlite::ffi;

/// Why a statement did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Concerns only this batch or this read; the transaction continues without it.
    Refused(StoreError),
    /// Bytes in the file make no sense: refused like the above, and the next start checks more.
    Damaged(String),
    /// The disk, a lock or memory failed: the whole transaction is lost, but the same call may succeed later.
    Medium(String),
}

impl Failure {
    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Refused(StoreError::Corrupt(what.into()))
    }

    pub(crate) fn into_error(self, database: &Path) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Damaged(reason) => StoreError::Damaged { database: database.to_owned(), reason },
            Self::Medium(message) => StoreError::Unavailable(message),
        }
    }

    /// For an insert: if a uniqueness rule refused it, `what` exists already.
    pub(crate) fn conflict(error: rusqlite::Error, what: impl FnOnce() -> String) -> Self {
        match extended_code(&error) {
            Some(ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_UNIQUE) => {
                Self::Refused(StoreError::Conflict(what()))
            }
            Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => {
                Self::corrupt(format!("{} belongs to something that is not stored", what()))
            }
            Some(_) | None => Self::from(error),
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let Some(code) = error.sqlite_error_code() else {
            // SQLite itself did not fail, but converting a value did: a column holds what we never write.
            return Self::corrupt(error.to_string());
        };
        match code {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Damaged(error.to_string()),
            ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig => {
                Self::corrupt(error.to_string())
            }
            _ => Self::Medium(medium_message(&error)),
        }
    }
}

/// Says in plain words what keeps the database from working, for the log and for people.
pub(crate) fn medium_message(error: &rusqlite::Error) -> String {
    let plain = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "disk full",
        Some(ErrorCode::ReadOnly) => "the database is read-only",
        Some(ErrorCode::CannotOpen) => "the database file can't be opened",
        Some(ErrorCode::PermissionDenied) => "permission denied",
        Some(ErrorCode::OutOfMemory) => "out of memory",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            "another process keeps the database busy"
        }
        Some(ErrorCode::SystemIoFailure) => match extended_code(error) {
            Some(ffi::SQLITE_IOERR_WRITE) => "I/O error while writing",
            Some(ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ) => "I/O error while reading",
            Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => "I/O error while syncing",
            // Writing enlarges the shared index of the write-ahead log, so this is what fails first on a full
            // disk.
            Some(ffi::SQLITE_IOERR_SHMSIZE) => "I/O error while growing the shared index (is the disk full?)",
            Some(_) | None => "I/O error",
        },
        Some(_) | None => return error.to_string(),
    };
    format!("{plain} ({error})")
}

fn extended_code(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|inner| inner.extended_code)
}
