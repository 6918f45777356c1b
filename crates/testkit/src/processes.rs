//! Looks at processes through /proc: who is left behind, how much memory and how many descriptors they hold.

use std::path::Path;
use std::time::Instant;

use crate::limits::{EXIT_TIMEOUT, PROCESS_POLL};

/// The variable that marks a test's agent and whatever it starts. Its name says nothing of ours, so that an
/// agent which cleans its children's environment of its own variables does not hide them.
pub const MARKER_VARIABLE: &str = "TESTKIT_MARKER";

/// A process that is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub command: String,
}

/// Processes that carry the marker, or work below `directory`: a child may have cleared its environment, or
/// moved away, but hardly both. Zombies do not count: they hold nothing.
pub fn marked_processes(marker: &str, directory: &Path) -> Vec<Process> {
    let wanted = format!("{MARKER_VARIABLE}={marker}");
    let own = std::process::id();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| carries(*pid, &wanted) || works_below(*pid, directory))
        .filter_map(|pid| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ").trim().to_owned();
            // An empty command line is a zombie or a process of the kernel.
            (!command.is_empty()).then_some(Process { pid: i32::try_from(pid).ok()?, command })
        })
        .collect()
}

/// Waits for all of them to go; those still there after the time are returned.
pub fn orphans(marker: &str, directory: &Path) -> Vec<Process> {
    let deadline = Instant::now() + EXIT_TIMEOUT;
    let mut clean_looks = 0;
    loop {
        let left = marked_processes(marker, directory);
        clean_looks = if left.is_empty() { clean_looks + 1 } else { 0 };
        // Two, because a process in the middle of exec shows neither environment nor command line for a moment.
        if clean_looks == 2 || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(PROCESS_POLL);
    }
}

/// Resident memory in bytes; `None` when the process is gone.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    status_kib(pid, "VmRSS:").map(|kib| kib * 1024)
}

/// The most memory it ever held.
pub fn peak_resident_bytes(pid: u32) -> Option<u64> {
    status_kib(pid, "VmHWM:").map(|kib| kib * 1024)
}

/// Open descriptors; `None` when the process is gone. Those of an agent are listed for root only: others take
/// the kernel's word for their number (Linux 6.2 and newer).
pub fn descriptor_count(pid: u32) -> Option<usize> {
    let place = format!("/proc/{pid}/fd");
    match std::fs::read_dir(&place) {
        Ok(entries) => Some(entries.count()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            usize::try_from(std::fs::metadata(&place).ok()?.len()).ok()
        }
        Err(_) => None,
    }
}

/// What each descriptor points to.
pub fn descriptors(pid: u32) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let mut targets: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.path()).ok()?;
            Some(format!("{} → {}", entry.file_name().to_string_lossy(), target.display()))
        })
        .collect();
    targets.sort();
    targets
}

fn status_kib(pid: u32, key: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn carries(pid: u32, wanted: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
}

fn works_below(pid: u32, directory: &Path) -> bool {
    std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn sleeper(configure: impl FnOnce(&mut Command)) -> std::process::Child {
        let mut command = Command::new("sleep");
        command.arg("60");
        configure(&mut command);
        command.spawn().unwrap()
    }

    fn found_in_time(marker: &str, directory: &Path) -> Vec<u32> {
        let deadline = Instant::now() + EXIT_TIMEOUT;
        loop {
            let found = marked_processes(marker, directory);
            if !found.is_empty() || Instant::now() > deadline {
                return found.iter().map(|process| process.pid as u32).collect();
            }
            std::thread::sleep(PROCESS_POLL);
        }
    }

    fn end(mut child: std::process::Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_left_behind_is_found_by_its_marker() {
        let nowhere = Path::new("/nonexistent");
        let marker = format!("by-marker-{}", std::process::id());
        let child = sleeper(|command| {
            command.env(MARKER_VARIABLE, &marker);
        });
        assert_eq!(found_in_time(&marker, nowhere), [child.id()]);
        end(child);
        assert_eq!(orphans(&marker, nowhere), []);
    }

    #[test]
    fn a_process_that_cleared_its_environment_is_found_by_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let child = sleeper(|command| {
            command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(directory.path());
        });
        assert_eq!(found_in_time("no such marker", directory.path()), [child.id()]);
        end(child);
    }

    #[test]
    fn memory_and_descriptors_are_read() {
        let own = std::process::id();
        assert!(resident_bytes(own).unwrap() > 100_000);
        assert!(peak_resident_bytes(own).unwrap() >= 100_000);
        let before = descriptor_count(own).unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(descriptors(own).iter().any(|target| target.ends_with("/dev/null")));
        drop(file);
        assert!(before > 0);
        assert_eq!(resident_bytes(u32::MAX), None);
    }
}
