//! What a process has used so far, read from `/proc`. Linux only, like the figures.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// User and system time of its threads.
    pub(crate) cpu: Duration,
    /// Through write calls, to pipes as to files.
    pub(crate) written: u64,
    pub(crate) rss_kb: u64,
    pub(crate) peak_kb: u64,
}

impl Usage {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let status = read(&format!("/proc/{pid}/status"))?;
        Ok(Self {
            cpu: cpu(pid)?,
            written: Self::written_by(pid)?,
            rss_kb: number(&status, "VmRSS:")?,
            peak_kb: number(&status, "VmHWM:")?,
        })
    }

    /// Of a process and all that it started and has not yet ended.
    pub(crate) fn of_tree(pid: u32) -> Result<Self> {
        let mut sum = Self::of(pid)?;
        for child in children(pid)? {
            // It may end between the two looks.
            let Ok(usage) = Self::of_tree(child) else { continue };
            sum.cpu += usage.cpu;
            sum.written += usage.written;
            sum.rss_kb += usage.rss_kb;
            sum.peak_kb += usage.peak_kb;
        }
        Ok(sum)
    }

    pub(crate) fn written_by(pid: u32) -> Result<u64> {
        number(&read(&format!("/proc/{pid}/io"))?, "wchar:")
    }
}

/// Each thread knows those that it started.
fn children(pid: u32) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let Ok(text) = fs::read_to_string(thread?.path().join("children")) else { continue };
        found.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    Ok(found)
}

/// From the scheduler's own count: `/proc/PID/stat` knows only hundredths of a second.
fn cpu(pid: u32) -> Result<Duration> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = thread?.path().join("schedstat");
        // A thread may end between the two looks.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let first = text.split_whitespace().next().context("an empty schedstat")?;
        nanoseconds += first.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

fn number(text: &str, key: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let word = line.and_then(|rest| rest.split_whitespace().next());
    Ok(word.with_context(|| format!("no {key} in /proc"))?.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_started_counts_with_it() {
        let mut shell = std::process::Command::new("sh").args(["-c", "sleep 2 & wait"]).spawn().unwrap();
        while children(shell.id()).unwrap().is_empty() {
            std::thread::yield_now();
        }
        let (alone, all) = (Usage::of(shell.id()).unwrap(), Usage::of_tree(shell.id()).unwrap());
        assert!(all.rss_kb > alone.rss_kb);
        assert!(shell.wait().unwrap().success());
    }

    #[test]
    fn our_own_use_grows() {
        let before = Usage::of(std::process::id()).unwrap();
        let mut sum = 0_u64;
        while Usage::of(std::process::id()).unwrap().cpu < before.cpu + Duration::from_millis(5) {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        assert!(sum > 0 && before.peak_kb >= before.rss_kb && before.rss_kb > 0);
    }
}
