//! Protected names at the top of a root that are there. Changes nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use attache_core::scope::{Guarded, ProtectedName, WhenMissing, Where};
use rustix::fs::{self, AtFlags};

use super::entries::piece;
use super::state::ControlFile;
use crate::sandbox::is_place_holder_in;

pub(super) fn protected_at_top(root: &OwnedFd) -> BTreeMap<PathBuf, Option<ControlFile>> {
    let rows = Guarded::protected().iter();
    let rows: Vec<&ProtectedName> =
        rows.filter(|row| row.place == Where::Anywhere && row.missing == WhenMissing::Undone).collect();
    let mut found = BTreeMap::new();
    // All of them: many others must not hide one. In a home that is a root some are place-holders.
    for name in fs::Dir::read_from(root).into_iter().flatten().flatten() {
        let name = OsString::from_vec(name.file_name().to_bytes().to_vec());
        let is_row = rows.iter().any(|row| row.has_wildcard() && row.fits_entry(&name));
        if is_row && !is_place_holder_in(root, &name) {
            found.insert(PathBuf::from(&name), None);
        }
    }
    for row in rows.iter().filter(|row| !row.has_wildcard()) {
        let path = PathBuf::from(row.name);
        let is_there = fs::statat(root, row.name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if is_there && !is_place_holder_in(root, OsStr::new(row.name)) {
            let content = if row.name.contains('/') { piece(root, &path) } else { None };
            found.insert(path, content);
        }
    }
    found
}
