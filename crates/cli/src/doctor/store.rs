//! The session database: whether it exists, is ours, is sound and is writable.

use attache_store::{Diagnosis, diagnose};

use super::Finding;
use crate::config::Config;

pub(super) fn check(config: &Config) -> Finding {
    let path = &config.store.value;
    let shown = path.display();
    match diagnose(path) {
        Diagnosis::Absent => Finding::ok("store", format!("{shown} (made at the first start)")),
        Diagnosis::Sound { bytes, schema } => {
            Finding::ok("store", format!("{shown} (schema {schema}, {} KiB, checked)", bytes / 1024))
        }
        Diagnosis::Newer { found, supported } => Finding::fail(
            "store",
            format!(
                "{shown} was written by a newer version (schema {found}, this one knows up to {supported})"
            ),
            "use the newer version, or another home (ATTACHE_HOME)",
        ),
        Diagnosis::Foreign(reason) => Finding::fail(
            "store",
            format!("{shown} is not a session database of attache: {reason}"),
            "name another file with --store, or move this one away",
        ),
        Diagnosis::Damaged(reason) => Finding::fail(
            "store",
            format!("{shown} is damaged: {reason}"),
            "the next start of `attache acp` repairs it, or moves it away and makes a new one; nothing is deleted",
        ),
        Diagnosis::Unusable(reason) => Finding::fail(
            "store",
            format!("{shown} can't be used: {reason}"),
            "free some space, or check that you own the file and can write to it",
        ),
    }
}
