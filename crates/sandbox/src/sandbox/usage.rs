//! What the processes of a namespace take of the machine, counted from inside. Ends nothing.

use std::ffi::OsStr;
use std::path::Path;

use super::resources::page_bytes;
use crate::limits::COMMAND_PROCESSES;
use crate::process::CommandReport;

/// What lives in memory although it looks like a disk.
const IN_MEMORY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// What there is too much of. The namespace has a view of its own: what is listed belongs to the command. Stops
/// as soon as it knows: this process gets little time beside a fork bomb.
pub(super) fn excess(memory: u64) -> Option<CommandReport> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let is_process = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let mut bytes: u64 = IN_MEMORY.iter().map(|place| held_by_files(Path::new(place))).sum();
    let processes = entries.flatten().filter(|entry| is_process(&entry.file_name()));
    for (count, process) in processes.enumerate() {
        if count >= COMMAND_PROCESSES {
            return Some(CommandReport::TooManyProcesses);
        }
        bytes += own_bytes(&process.path().join("statm"));
        if bytes > memory {
            return Some(CommandReport::TooMuchMemory);
        }
    }
    None
}

/// What a process has for itself: what it shares with others would be counted once for each of them.
fn own_bytes(statm: &Path) -> u64 {
    let text = std::fs::read_to_string(statm).unwrap_or_default();
    let mut pages = text.split_ascii_whitespace().skip(1).map(|field| field.parse::<u64>().unwrap_or(0));
    let (resident, shared) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    resident.saturating_sub(shared).saturating_mul(page_bytes())
}

fn held_by_files(place: &Path) -> u64 {
    rustix::fs::statvfs(place).map_or(0, |found| {
        let blocks = found.f_blocks.saturating_sub(found.f_bfree);
        blocks.saturating_mul(found.f_frsize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_process_is_its_own() {
        let before = own_bytes(Path::new("/proc/self/statm"));
        let held = vec![1u8; 64 * 1024 * 1024];
        let after = own_bytes(Path::new("/proc/self/statm"));
        assert!(after >= before + 32 * 1024 * 1024, "{before} {after} {}", held.len());
        assert_eq!(own_bytes(Path::new("/proc/0/statm")), 0);
    }
}
