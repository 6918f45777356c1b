//! Builds the fuzz targets on the stable toolchain and runs each for a while. Does not know what they test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::debian;
use crate::house::{House, output};
use crate::limits::{
    FUZZ_INPUT_BYTES, FUZZ_INPUT_TIMEOUT_SECONDS, FUZZ_MEMORY_MB, FUZZ_SECONDS, QUICK_FUZZ_SECONDS,
    SOAK_FUZZ_SECONDS_PER_MINUTE,
};

/// How long a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Full,
    Quick,
    Soak { minutes: u32 },
}

/// What cargo-fuzz would pass, without its nightly sanitizers: coverage counters, their table, and comparisons,
/// so that libFuzzer sees which inputs lead somewhere new.
const INSTRUMENTATION: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Coverflow-checks --cfg fuzzing";

pub(crate) fn run(house: &House, effort: Effort) -> Result<()> {
    debian::install(house)?;
    let targets = targets(&house.path("fuzz/targets"))?;
    let binaries = build(house)?;
    let seconds = match effort {
        Effort::Full => FUZZ_SECONDS,
        Effort::Quick => QUICK_FUZZ_SECONDS,
        Effort::Soak { minutes } => minutes * SOAK_FUZZ_SECONDS_PER_MINUTE,
    };
    let side_by_side = std::thread::available_parallelism().map_or(1, usize::from);
    let mut failures = Vec::new();
    for group in targets.chunks(side_by_side) {
        for (name, outcome) in group.iter().zip(all(group, |name| one(house, &binaries, name, seconds))) {
            match outcome {
                Ok(report) => eprintln!("{name}: {report}"),
                Err(error) => failures.push(format!("{name}: {error:#}")),
            }
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => bail!("{}", failures.join("\n")),
    }
}

/// Each on a thread of its own: a target blocks as soon as its pipe is full and not read.
fn all(names: &[String], work: impl Fn(&str) -> Result<String> + Sync) -> Vec<Result<String>> {
    let work = &work;
    std::thread::scope(|scope| {
        let running: Vec<_> = names.iter().map(|name| scope.spawn(move || work(name))).collect();
        running.into_iter().map(|one| one.join().unwrap_or_else(|_| bail!("panicked"))).collect()
    })
}

fn one(house: &House, binaries: &Path, name: &str, seconds: u32) -> Result<String> {
    judge(house, name, start(house, binaries, name, seconds)?)
}

/// One file in `fuzz/targets` is one target.
fn targets(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned))
        .collect();
    names.sort();
    match names.is_empty() {
        true => bail!("no target in {}", directory.display()),
        false => Ok(names),
    }
}

fn build(house: &House) -> Result<PathBuf> {
    let host = host_triple(&output(house.program("rustc").arg("-vV"))?)?;
    let target = house.target().join("fuzz");
    // The triple keeps the flags off build scripts and macros, which could not be linked with them.
    crate::house::run(
        house
            .cargo()
            .args(["build", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml"])
            .args(["--target", &host])
            .arg("--target-dir")
            .arg(&target)
            .env("RUSTFLAGS", INSTRUMENTATION),
    )?;
    Ok(target.join(host).join("release"))
}

fn host_triple(version: &str) -> Result<String> {
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("rustc -vV names no host")
}

fn start(house: &House, binaries: &Path, name: &str, seconds: u32) -> Result<Child> {
    let (corpus, artifacts) = (corpus(house, name), artifacts(house));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(binaries.join(name));
    command
        .current_dir(&house.root)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={FUZZ_INPUT_TIMEOUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={FUZZ_MEMORY_MB}"))
        .arg(format!("-max_len={FUZZ_INPUT_BYTES}"))
        .arg(format!("-artifact_prefix={}/{name}-", artifacts.display()))
        .arg(corpus);
    let seeds = house.path("fuzz/seeds").join(name);
    if !seeds.is_dir() {
        bail!("no seeds in {}", seeds.display());
    }
    command.arg(seeds).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().with_context(|| format!("cannot start {name}"))
}

fn judge(house: &House, name: &str, child: Child) -> Result<String> {
    let output = child.wait_with_output()?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let tail: Vec<&str> = log.lines().rev().take(40).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        bail!("found something (inputs in {}):\n{}", artifacts(house).display(), tail.join("\n"));
    }
    let coverage = last_coverage(&log).unwrap_or(0);
    if coverage == 0 {
        bail!("{name} ran without coverage: the instrumentation of this toolchain has changed");
    }
    let done = log.lines().rev().find(|line| line.starts_with("Done ")).unwrap_or("no count of runs");
    Ok(format!("{done}, {coverage} edges"))
}

/// libFuzzer's status lines say `cov: N`; zero or none means that it mutates blindly.
fn last_coverage(log: &str) -> Option<u64> {
    let line = log.lines().rev().find(|line| line.contains(" cov: "))?;
    line.split(" cov: ").nth(1)?.split_whitespace().next()?.parse().ok()
}

fn corpus(house: &House, name: &str) -> PathBuf {
    house.target().join("fuzz/corpus").join(name)
}

fn artifacts(house: &House) -> PathBuf {
    house.target().join("fuzz/artifacts")
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::time::Duration;

    use super::*;

    #[test]
    fn blind_runs_are_noticed() {
        assert_eq!(last_coverage("#2\tINITED cov: 12 ft: 13\n#9\tNEW    cov: 40 ft: 9 corp: 1\n"), Some(40));
        assert_eq!(last_coverage("#2\tINITED exec/s: 0 rss: 28Mb\n"), None);
    }

    /// Each waits for the other, so that one which is heard only after the other would be waited for for ever.
    #[test]
    fn every_target_is_listened_to_while_it_runs() {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let both = Barrier::new(2);
            let heard = all(&["a".to_owned(), "b".to_owned()], |name| {
                both.wait();
                Ok(name.to_owned())
            });
            sender.send(heard.into_iter().map(Result::unwrap).collect::<Vec<_>>())
        });
        assert_eq!(receiver.recv_timeout(Duration::from_secs(20)).unwrap(), ["a", "b"]);
    }

    #[test]
    fn the_host_is_read_from_the_compiler() {
        assert_eq!(
            host_triple("rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\n").unwrap(),
            "x86_64-unknown-linux-gnu"
        );
        assert!(host_triple("rustc 1.95.0\n").is_err());
    }

    #[test]
    fn every_file_is_a_target_and_none_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(targets(directory.path()).is_err());
        fs::write(directory.path().join("b.rs"), "").unwrap();
        fs::write(directory.path().join("a.rs"), "").unwrap();
        assert_eq!(targets(directory.path()).unwrap(), ["a", "b"]);
    }
}
