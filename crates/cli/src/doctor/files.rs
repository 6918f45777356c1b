//! The files: whether the configuration exists, and who can read what we keep.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Finding;
use crate::config::Config;
use crate::credentials::Credentials;
use crate::dirs::Dirs;
use crate::limits::{SPACE_NEEDED, SPACE_WANTED};

/// We have read it before. If it is wrong, we report only that and check nothing else.
pub(super) fn configuration(config: &Config) -> Finding {
    let file = config.file.display();
    match config.file.exists() {
        true => Finding::ok("configuration", file.to_string()),
        false => Finding::ok("configuration", format!("none ({file}); the defaults are used")),
    }
}

/// Conversations and keys are in these directories.
pub(super) fn modes(dirs: &Dirs) -> Vec<Finding> {
    let data = dirs.sessions_db.parent().unwrap_or(Path::new("/"));
    let mut findings = Vec::new();
    for directory in [data, &dirs.blobs, &dirs.scratch, &dirs.logs] {
        let Ok(metadata) = directory.metadata() else { continue };
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let directory = directory.display();
            findings.push(Finding::warn(
                "home",
                format!("{directory} can be entered by others (mode {mode:04o})"),
                format!("chmod 700 {directory}"),
            ));
        }
    }
    if findings.is_empty() {
        let state = if data.exists() { "only you can enter it" } else { "made at the first start" };
        findings.push(Finding::ok("home", format!("{} ({state})", data.display())));
    }
    findings
}

/// Writes a file where we keep sessions, reads it back, removes it, and asks how much space is left.
pub(super) fn room(dirs: &Dirs) -> Finding {
    let data = dirs.sessions_db.parent().unwrap_or(Path::new("/"));
    // The check creates no directory: if this one is missing, it tests the one above.
    let Some(place) = data.ancestors().find(|place| place.is_dir()) else {
        return Finding::fail("disk", format!("{} has no parent", data.display()), "set ATTACHE_HOME");
    };
    let shown = place.display();
    if let Err(error) = tempfile::NamedTempFile::new_in(place).and_then(|mut file| {
        file.write_all(b"attache")?;
        file.as_file().sync_all()
    }) {
        let next = "check that you own the directory and that the disk has space, or set ATTACHE_HOME";
        return Finding::fail("disk", format!("{shown} can't be written to: {}", error.kind()), next);
    }
    let Ok(disk) = rustix::fs::statvfs(place) else {
        return Finding::warn("disk", format!("{shown} is writable; its free space is not known"), "");
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let text = format!("{shown} is writable, {} MB free", free / 1_000_000);
    match free {
        free if free < SPACE_NEEDED => {
            Finding::fail("disk", text, "free some space: attache can't store sessions")
        }
        free if free < SPACE_WANTED => Finding::warn("disk", text, "free some space soon"),
        _ => Finding::ok("disk", text),
    }
}

pub(super) fn keys(credentials: &Credentials) -> Finding {
    let keys = credentials.read();
    match keys.trouble() {
        Some(trouble) => {
            Finding::fail("stored keys", trouble.to_string(), "do that, or set the key as a variable")
        }
        None => {
            let kept: Vec<&str> = keys.kept().collect();
            match kept.is_empty() {
                true => Finding::ok("stored keys", "none"),
                false => Finding::ok("stored keys", kept.join(", ")),
            }
        }
    }
}
