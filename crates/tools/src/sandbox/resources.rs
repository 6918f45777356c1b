//! How much of the machine a command may take. What can't be set is left as it is: it is the kernel's to refuse.
#![allow(unsafe_code)]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::{COMMAND_FILE_BYTES, COMMAND_TASKS};

/// Sets the limits of this process and of all it will start.
pub(super) fn limit() {
    lower(Resource::Core, 0);
    lower(Resource::Fsize, COMMAND_FILE_BYTES);
    lower(Resource::Nproc, COMMAND_TASKS);
    if let Some(bytes) = machine_memory() {
        // Data, not address space: runtimes reserve far more addresses than they ever use.
        lower(Resource::Data, bytes);
    }
    prefer_in_shortage();
}

/// Never raises: a limit that is stricter already stays.
fn lower(resource: Resource, limit: u64) {
    let present = getrlimit(resource);
    let maximum = present.maximum.map_or(limit, |maximum| maximum.min(limit));
    let current = present.current.map_or(maximum, |current| current.min(maximum));
    let wanted = Rlimit { current: Some(current), maximum: Some(maximum) };
    if let Err(error) = setrlimit(resource, wanted) {
        tracing::debug!(?resource, %error, "not limited");
    }
}

fn machine_memory() -> Option<u64> {
    // SAFETY: plain library calls.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    Some(u64::try_from(pages).ok()?.saturating_mul(u64::try_from(size).ok()?))
}

/// When memory runs out, the kernel takes commands before editors.
fn prefer_in_shortage() {
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", "500") {
        tracing::debug!(%error, "not preferred in a shortage of memory");
    }
}
