//! How much of the machine a command may take. What can't be set is left as it is: it is the kernel's to
//! refuse.
#![allow(unsafe_code)]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use attache_core::ports::tool::WriteGrant;

use crate::limits::{COMMAND_FILE_BYTES, COMMAND_MEMORY_QUARTERS, COMMAND_TASKS, UNASKED_FILE_BYTES};

/// Sets the limits of this process and of all it will start.
pub(super) fn limit(writes: WriteGrant) {
    lower(Resource::Core, 0);
    let file = match writes {
        WriteGrant::Granted => COMMAND_FILE_BYTES,
        WriteGrant::Withheld => UNASKED_FILE_BYTES,
    };
    lower(Resource::Fsize, file);
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

/// What all processes of a command may have in memory together.
pub(super) fn tree_memory() -> u64 {
    machine_memory().map_or(u64::MAX, |bytes| bytes / 4 * COMMAND_MEMORY_QUARTERS)
}

/// Of a container what it may have.
fn machine_memory() -> Option<u64> {
    let of_group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let of_group = of_group.and_then(|text| text.trim().parse().ok());
    [physical_memory(), of_group].into_iter().flatten().min()
}

fn physical_memory() -> Option<u64> {
    // SAFETY: a plain library call.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    Some(u64::try_from(pages).ok()?.saturating_mul(page_bytes()))
}

pub(super) fn page_bytes() -> u64 {
    // SAFETY: a plain library call.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Of 1,000: when memory runs out, the kernel takes commands before editors.
pub(super) const PREFERRED_IN_SHORTAGE: &str = "500";

fn prefer_in_shortage() {
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", PREFERRED_IN_SHORTAGE) {
        tracing::debug!(%error, "not preferred in a shortage of memory");
    }
}
