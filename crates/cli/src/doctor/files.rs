//! The files themselves: is the configuration there, who can read what we keep.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Finding;
use crate::config::Config;
use crate::credentials::Credentials;
use crate::dirs::Dirs;

/// It was read before: what is wrong in it is told without looking at anything else.
pub(super) fn configuration(config: &Config) -> Finding {
    let file = config.file.display();
    match config.file.exists() {
        true => Finding::ok("configuration", file.to_string()),
        false => Finding::ok("configuration", format!("none ({file}); the defaults are used")),
    }
}

/// Conversations and keys are below these.
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
