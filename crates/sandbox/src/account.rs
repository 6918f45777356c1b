//! The account that this process runs as, from the system's list of accounts and not from variables.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::limits::ACCOUNT_BYTES;

/// The home directory in the list of accounts.
pub fn account_home() -> Option<PathBuf> {
    let mut buffer = vec![0 as libc::c_char; ACCOUNT_BYTES];
    // SAFETY: the entry is plain data that the call fills; its texts lie in `buffer`, which outlives every use
    // of them here.
    unsafe {
        let mut entry: libc::passwd = std::mem::zeroed();
        let mut found = std::ptr::null_mut();
        let user = libc::getuid();
        let failed = libc::getpwuid_r(user, &mut entry, buffer.as_mut_ptr(), buffer.len(), &mut found);
        if failed != 0 || found.is_null() || entry.pw_dir.is_null() {
            return None;
        }
        let home = PathBuf::from(OsStr::from_bytes(CStr::from_ptr(entry.pw_dir).to_bytes()));
        home.is_absolute().then_some(home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_the_one_in_the_list_of_accounts() {
        let user = rustix::process::getuid().as_raw().to_string();
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
        let listed = accounts.lines().find(|line| line.split(':').nth(2) == Some(user.as_str()));
        let listed = listed.and_then(|line| line.split(':').nth(5)).map(PathBuf::from);
        assert!(listed.is_none() || account_home() == listed, "{listed:?}");
    }
}
