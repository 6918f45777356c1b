//! How much memory commands may have, and who goes first where it runs out: by the kernel's files.

use super::super::resources::physical_memory;
use crate::limits::COMMAND_MEMORY_QUARTERS;

/// Of a container what it may have.
pub(in super::super) fn machine_memory() -> Option<u64> {
    let of_group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let of_group = of_group.and_then(|text| text.trim().parse().ok());
    [physical_memory(), of_group].into_iter().flatten().min()
}

/// What all processes of a command may have in memory together.
pub(super) fn tree_memory() -> u64 {
    machine_memory().map_or(u64::MAX, |bytes| bytes / 4 * COMMAND_MEMORY_QUARTERS)
}

/// Of 1,000: when memory runs out, the kernel takes commands before editors.
pub(super) const PREFERRED_IN_SHORTAGE: &str = "500";

pub(super) fn prefer_in_shortage() {
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", PREFERRED_IN_SHORTAGE) {
        tracing::debug!(%error, "not preferred in a shortage of memory");
    }
}
