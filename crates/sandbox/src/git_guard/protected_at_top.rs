//! Protected names at the top of a root, and of a home, that have no place-holder. Only looks.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use attache_core::scope::{Guarded, ProtectedName, WhenMissing, Where};
use rustix::fs::{self, AtFlags};

use super::entries::piece;
use super::state::ControlFile;
use super::undo::ASIDE;
use crate::sandbox::is_place_holder_in;

pub(super) fn protected_at_top(root: &OwnedFd) -> BTreeMap<PathBuf, Option<ControlFile>> {
    let mut found: BTreeMap<PathBuf, Option<ControlFile>> =
        with_wildcards(root).into_iter().map(|name| (PathBuf::from(name), None)).collect();
    for row in undone_rows().filter(|row| !row.has_wildcard()) {
        let path = PathBuf::from(row.name());
        let is_there = fs::statat(root, row.name(), AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if is_there && !is_place_holder_in(root, OsStr::new(row.name())) {
            let content = if row.name().contains('/') { piece(root, &path) } else { None };
            found.insert(path, content);
        }
    }
    found
}

fn undone_rows() -> impl Iterator<Item = &'static ProtectedName> {
    Guarded::protected()
        .iter()
        .filter(|row| row.place == Where::Anywhere && row.missing == WhenMissing::Undone)
}

/// Entries that match a protected name with a wildcard. Returns all of them, so that many others cannot hide
/// one. In a home that is a root, some are place-holders.
pub(super) fn with_wildcards(directory: &OwnedFd) -> Vec<OsString> {
    let rows: Vec<&ProtectedName> = undone_rows().filter(|row| row.has_wildcard()).collect();
    let entries = fs::Dir::read_from(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()));
    let fitting =
        names.filter(|name| rows.iter().any(|row| row.fits_entry(name) && !is_set_aside_of(row, name)));
    fitting.filter(|name| !is_place_holder_in(directory, name)).collect()
}

/// Whether it is what we set aside of an entry that matches the same name: a `*` at the end matches that, too,
/// and it would be set aside again and again.
fn is_set_aside_of(row: &ProtectedName, name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let Some((former, number)) = name.rsplit_once(ASIDE) else { return false };
    let is_number = |digits: &str| {
        let is_random = digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_random || !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    (number.is_empty() || number.strip_prefix('.').is_some_and(is_number))
        && row.fits_entry(OsStr::new(former))
}
