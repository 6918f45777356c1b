//! Limits how much of the machine a command may use. If a limit cannot be set, leaves the old one.
#![allow(unsafe_code)]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use attache_core::ports::tool::WriteGrant;

use super::system;
use crate::limits::{COMMAND_FILE_BYTES, COMMAND_TASKS, UNASKED_FILE_BYTES};

/// Sets the limits of this process and of everything it will start.
pub(super) fn limit(writes: WriteGrant) {
    lower(Resource::Core, 0);
    let file = match writes {
        WriteGrant::Granted => COMMAND_FILE_BYTES,
        WriteGrant::Withheld => UNASKED_FILE_BYTES,
    };
    lower(Resource::Fsize, file);
    lower(Resource::Nproc, COMMAND_TASKS);
    if let Some(bytes) = system::machine_memory() {
        // Data, not address space: runtimes reserve far more addresses than they ever use.
        lower(Resource::Data, bytes);
    }
}

/// Never raises a limit: a stricter one stays.
fn lower(resource: Resource, limit: u64) {
    let present = getrlimit(resource);
    let maximum = present.maximum.map_or(limit, |maximum| maximum.min(limit));
    let current = present.current.map_or(maximum, |current| current.min(maximum));
    let wanted = Rlimit { current: Some(current), maximum: Some(maximum) };
    if let Err(error) = setrlimit(resource, wanted) {
        tracing::debug!(?resource, %error, "not limited");
    }
}

/// What the machine has.
pub(super) fn physical_memory() -> Option<u64> {
    // SAFETY: a plain library call.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    Some(u64::try_from(pages).ok()?.saturating_mul(page_bytes()))
}

pub(super) fn page_bytes() -> u64 {
    // SAFETY: a plain library call.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
