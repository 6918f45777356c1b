//! A rollback journal beside a database that has none. Only looks, or renames; never deletes.
//!
//! Ours always work with a write-ahead log. SQLite plays a rollback journal back all the same when it opens the
//! file, so whoever can put one there decides what the database holds: sessions, rules, what was allowed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

use rustix::process::{Flock, FlockType, fcntl_getlk};

use crate::connection::Connector;
use crate::examine::MAGIC;

/// Where SQLite's format says how a file is written and read, and what it says of one with a log.
const VERSIONS: std::ops::Range<usize> = 18..20;
const WITH_LOG: [u8; 2] = [2, 2];

/// The byte that whoever writes with a rollback journal has locked.
const RESERVED_BYTE: u64 = 0x4000_0001;

/// One that no process of SQLite's is using.
pub(crate) fn found(connector: &Connector) -> io::Result<Option<PathBuf>> {
    let journal = connector.beside("-journal");
    match journal.symlink_metadata() {
        // SQLite takes an empty one for none; sandboxes hold the name with one.
        Ok(found) if found.is_file() && found.len() == 0 => return Ok(None),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let database = match File::open(&connector.path) {
        Ok(database) => database,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut header = Vec::new();
    (&database).take(100).read_to_end(&mut header)?;
    let has_log = header.starts_with(MAGIC) && header.get(VERSIONS) == Some(&WITH_LOG[..]);
    // Another process may be making the first page of a new database: that goes through a journal.
    let is_used = || {
        let mut wanted = Flock::from(FlockType::WriteLock);
        (wanted.start, wanted.length) = (RESERVED_BYTE, 1);
        fcntl_getlk(&database, &wanted).map(|held| held.is_some())
    };
    Ok((has_log && !is_used()?).then_some(journal))
}

/// Moves it away; says where it is now.
pub(crate) fn set_aside(connector: &Connector) -> io::Result<Option<PathBuf>> {
    let Some(journal) = found(connector)? else { return Ok(None) };
    let mut number = 1;
    let target = loop {
        let target = connector.beside(&format!("-journal.foreign-{number}"));
        match target.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => break target,
            Err(error) => return Err(error),
            Ok(_) => number += 1,
        }
    };
    match fs::rename(&journal, &target) {
        Ok(()) => {
            tracing::warn!(moved_to = %target.display(), "a rollback journal that is not ours was set aside");
            Ok(Some(target))
        }
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
