//! How much of the machine the processes of a namespace use, counted from inside. Ends nothing.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::resources::page_bytes;
use super::machine_memory::PREFERRED_IN_SHORTAGE;
use crate::limits::{
    COMMAND_PROCESSES, ENTRY_IN_MEMORY_BYTES, UNASKED_SCRATCH_BYTES, UNASKED_SCRATCH_ENTRIES,
};
use crate::process::CommandReport;

/// File systems that live in memory.
const IN_MEMORY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// How much a command may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsageLimits<'a> {
    /// Bytes of memory that all processes together may use.
    pub(super) memory: u64,
    /// The directory with a limit on its growth, for a command that runs unasked.
    pub(super) scratch: Option<&'a Path>,
}

/// Counts against the limits.
#[derive(Debug)]
pub(super) struct UsageCount<'a> {
    memory: u64,
    scratch: Option<&'a Path>,
    scratch_before: HeldBelow,
    /// Memory that processes of the whole machine shared when the command began.
    shared_before: u64,
}

impl<'a> UsageCount<'a> {
    pub(super) fn start(limits: &UsageLimits<'a>) -> Self {
        let UsageLimits { memory, scratch } = *limits;
        let scratch_before = scratch.map(HeldBelow::of).unwrap_or_default();
        Self { memory, scratch, scratch_before, shared_before: shared_on_machine() }
    }

    /// Which limit the command exceeds. The namespace shows only the command's processes. Stops as soon as it
    /// knows, because this process gets little time beside a fork bomb.
    pub(super) fn excess(&self) -> Option<CommandReport> {
        let files: u64 = IN_MEMORY.iter().map(|place| held_by_files(Path::new(place))).sum();
        if self.scratch.is_some_and(|scratch| HeldBelow::of(scratch).has_outgrown(self.scratch_before)) {
            return Some(CommandReport::TooMuchScratch);
        }
        let mut own: u64 = 0;
        let processes = processes()?;
        for (count, process) in processes.iter().enumerate() {
            if count >= COMMAND_PROCESSES {
                return Some(CommandReport::TooManyProcesses);
            }
            own += own_bytes(&process.join("statm"));
            if own + files > self.memory {
                return Some(CommandReport::TooMuchMemory);
            }
            stay_preferred(process);
        }
        // Examining all shared memory takes long; this is an upper bound, including files.
        let on_machine = shared_on_machine();
        if own + on_machine <= self.memory {
            return None;
        }
        let shared = match SharedMemory::of(&processes) {
            SharedMemory { bytes, unreadable: UnreadableProcesses::None } => files + bytes,
            // What unreadable processes hide counts as the command's own.
            SharedMemory { bytes, unreadable: UnreadableProcesses::Some } => {
                (files + bytes).max(on_machine.saturating_sub(self.shared_before))
            }
        };
        (own + shared > self.memory).then_some(CommandReport::TooMuchMemory)
    }
}

fn processes() -> Option<Vec<PathBuf>> {
    let is_process = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
    };
    let entries = std::fs::read_dir("/proc").ok()?;
    Some(entries.flatten().map(|entry| entry.path()).filter(is_process).take(COMMAND_PROCESSES + 1).collect())
}

/// The memory that a process has for itself: counting shared memory would count it once for each process.
fn own_bytes(statm: &Path) -> u64 {
    let text = std::fs::read_to_string(statm).unwrap_or_default();
    let mut pages = text.split_ascii_whitespace().skip(1).map(|field| field.parse::<u64>().unwrap_or(0));
    let (resident, shared) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    resident.saturating_sub(shared).saturating_mul(page_bytes())
}

/// Restores the preference if a command has lowered it.
fn stay_preferred(process: &Path) {
    let is_own = process.ends_with("1");
    if !is_own && let Err(error) = std::fs::write(process.join("oom_score_adj"), PREFERRED_IN_SHORTAGE) {
        tracing::debug!(%error, "not preferred in a shortage of memory");
    }
}

/// Whether there are processes that we may not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnreadableProcesses {
    None,
    Some,
}

/// What processes share without a name in a file system: mappings, memory behind descriptors, and System V
/// objects. Counts each once.
struct SharedMemory {
    bytes: u64,
    unreadable: UnreadableProcesses,
}

impl SharedMemory {
    fn of(processes: &[PathBuf]) -> Self {
        let mut unreadable = UnreadableProcesses::None;
        let mut note = |error: &io::Error| {
            if error.kind() == io::ErrorKind::PermissionDenied {
                unreadable = UnreadableProcesses::Some;
            }
        };
        // The first process is ours.
        let processes: Vec<&PathBuf> = processes.iter().filter(|process| !process.ends_with("1")).collect();
        let mut nameless = BTreeMap::new();
        for process in &processes {
            let descriptors = std::fs::read_dir(process.join("fd")).inspect_err(&mut note);
            for descriptor in descriptors.into_iter().flatten().flatten().map(|entry| entry.path()) {
                let is_nameless = |led: PathBuf| led.as_os_str().as_bytes().starts_with(NAMELESS.as_bytes());
                if std::fs::read_link(&descriptor).is_ok_and(is_nameless)
                    && let Ok(found) = descriptor.metadata()
                {
                    nameless.insert(found.ino(), found.blocks() * 512);
                }
            }
        }
        let mut bytes = nameless.values().sum::<u64>() + shared_objects();
        for process in &processes {
            match std::fs::read_to_string(process.join("smaps")) {
                Ok(maps) => bytes += mapped(&maps, |inode| nameless.contains_key(&inode)),
                Err(error) => {
                    note(&error);
                    let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
                    bytes += kilobytes(&status, "RssShmem:");
                }
            }
        }
        Self { bytes, unreadable }
    }
}

/// The kernel's name for memory behind a descriptor, and for memory shared only with children.
const NAMELESS: &str = "/memfd:";
const INHERITED: &str = "/dev/zero";

/// A process's mapped memory that has no other name; of memory behind a descriptor, only what `is_counted` does
/// not know.
fn mapped(maps: &str, is_counted: impl Fn(u64) -> bool) -> u64 {
    let mut bytes = 0;
    let mut counts = false;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        if !words.next().is_some_and(|first| first.ends_with(':')) {
            // `RANGE RIGHTS OFFSET DEVICE INODE PATH`
            let inode = words.nth(3).and_then(|inode| inode.parse().ok()).unwrap_or(0);
            let path = words.next().unwrap_or_default();
            counts = path == INHERITED || path.starts_with(NAMELESS) && !is_counted(inode);
        } else if counts {
            bytes += kilobytes(line, "Pss:");
        }
    }
    bytes
}

/// Of the namespace: one line per object; the fifteenth word is its size in memory.
fn shared_objects() -> u64 {
    let text = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let bytes = |line: &str| line.split_ascii_whitespace().nth(14)?.parse::<u64>().ok();
    text.lines().skip(1).filter_map(bytes).sum()
}

fn shared_on_machine() -> u64 {
    kilobytes(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default(), "Shmem:")
}

/// The bytes in a line of the kernel's `NAME: NUMBER kB`.
fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
}

/// What lies below a directory, as far as we count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HeldBelow {
    /// On the disk.
    bytes: u64,
    entries: usize,
}

impl HeldBelow {
    fn of(directory: &Path) -> Self {
        let mut held = Self::default();
        let mut open = vec![directory.to_path_buf()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                if held.entries >= UNASKED_SCRATCH_ENTRIES {
                    return held;
                }
                held.entries += 1;
                let Ok(found) = entry.path().symlink_metadata() else { continue };
                held.bytes += found.blocks() * 512;
                if found.is_dir() {
                    open.push(entry.path());
                }
            }
        }
        held
    }

    /// Whether it has grown by too many bytes, or by more entries than we count.
    fn has_outgrown(self, before: Self) -> bool {
        let is_full = |held: Self| held.entries >= UNASKED_SCRATCH_ENTRIES;
        self.bytes.saturating_sub(before.bytes) > UNASKED_SCRATCH_BYTES || is_full(self) && !is_full(before)
    }
}

/// What files hold, and what the kernel keeps for each, be it empty.
fn held_by_files(place: &Path) -> u64 {
    rustix::fs::statvfs(place).map_or(0, |found| {
        let blocks = found.f_blocks.saturating_sub(found.f_bfree);
        let entries = found.f_files.saturating_sub(found.f_ffree);
        blocks.saturating_mul(found.f_frsize) + entries.saturating_mul(ENTRY_IN_MEMORY_BYTES)
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

    #[test]
    fn a_directory_outgrows_what_it_held_by_bytes_and_by_entries() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("a")).unwrap();
        let before = HeldBelow::of(place.path());
        std::fs::write(place.path().join("a/b"), vec![1u8; 1024 * 1024]).unwrap();
        let after = HeldBelow::of(place.path());
        assert!(
            after.bytes >= before.bytes + 1024 * 1024 && after.entries == before.entries + 1,
            "{after:?}"
        );
        assert!(!after.has_outgrown(before));
        let full = HeldBelow { bytes: before.bytes + UNASKED_SCRATCH_BYTES + 1, ..before };
        let crowded = HeldBelow { entries: UNASKED_SCRATCH_ENTRIES, ..before };
        assert!(full.has_outgrown(before) && crowded.has_outgrown(before) && !crowded.has_outgrown(crowded));
    }

    #[test]
    fn what_is_mapped_counts_once() {
        let maps = "7f00-7f10 rw-s 00000000 00:01 12 /dev/zero (deleted)\nRss: 9 kB\nPss: 7 kB\n\
                    7f10-7f20 rw-s 00000000 00:01 13 /memfd:x (deleted)\nPss: 5 kB\n\
                    7f20-7f30 rw-s 00000000 00:01 14 /memfd:y (deleted)\nPss: 3 kB\n\
                    7f30-7f40 r--p 00000000 fe:00 15 /usr/lib/libc.so\nPss: 2 kB\n\
                    7f40-7f50 rw-p 00000000 00:00 0\nPss: 1 kB\n";
        assert_eq!(mapped(maps, |inode| inode == 13), 10 * 1024);
        assert_eq!(kilobytes("ShmemHugePages: 1 kB\nShmem: 4 kB\n", "Shmem:"), 4096);
    }
}
