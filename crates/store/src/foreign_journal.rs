//! A rollback journal beside a database that should have none. Only looks, or renames; never deletes.
//!
//! Our databases always work with a write-ahead log. SQLite nevertheless plays a rollback journal back when it
//! opens the file, so a program that can put one there decides what the database contains: sessions, rules,
//! permissions.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

use rustix::process::{Flock, FlockType, fcntl_getlk};

use crate::connection::Connector;
use crate::examine::MAGIC;

/// Where SQLite's file format states how to write and read a file, and the value for a write-ahead log.
const VERSIONS: std::ops::Range<usize> = 18..20;
const WITH_LOG: [u8; 2] = [2, 2];

/// The byte that a writer with a rollback journal locks.
const RESERVED_BYTE: u64 = 0x4000_0001;

/// A journal that no SQLite process is using.
pub(crate) fn found(connector: &Connector) -> io::Result<Option<PathBuf>> {
    let journal = connector.beside("-journal");
    match journal.symlink_metadata() {
        // SQLite treats an empty one as missing; sandboxes reserve the name with one.
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
    // Another process may be creating the first page of a new database, which uses a journal.
    let is_used = || {
        let mut wanted = Flock::from(FlockType::WriteLock);
        (wanted.start, wanted.length) = (RESERVED_BYTE, 1);
        fcntl_getlk(&database, &wanted).map(|held| held.is_some())
    };
    Ok((has_log && !is_used()?).then_some(journal))
}

/// Moves it away; returns its new path.
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
