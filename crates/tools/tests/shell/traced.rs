//! What the reader names and what really runs: generated commands under `strace`. Every program has to be in the list.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use attache_tools::shell::{Ground, Reading, read};
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::{commands, is_unclear};

/// Enough to meet every construct several times, few enough for half a minute.
const CASES: u32 = 150;

#[test]
fn every_program_that_runs_was_named_before() {
    let (clear, executed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_time: 20_000,
        ..Config::default()
    });
    let outcome = runner.run(&commands::command(), |command| {
        let place = place();
        let reading = read_in(&command, place.path());
        if is_unclear(&reading) {
            return Ok(());
        }
        let ran = traced(&command, place.path());
        clear.fetch_add(1, Ordering::Relaxed);
        executed.fetch_add(ran.len(), Ordering::Relaxed);
        match unnamed(&ran, &reading).as_slice() {
            [] => Ok(()),
            missing => Err(TestCaseError::fail(format!(
                "{missing:?} ran, named were {:?}: {command}",
                reading.programs
            ))),
        }
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let (clear, executed) = (clear.into_inner(), executed.into_inner());
    // Who calls everything unclear, or runs nothing, proves nothing.
    assert!(clear >= CASES as usize / 2, "only {clear} of {CASES} were followed");
    assert!(executed >= clear, "only {executed} programs ran in {clear} commands");
}

#[test]
fn the_tracer_sees_what_runs() {
    let place = place();
    let ran = traced("ls | cat; env true; sh -c 'pwd; wc -l a.txt' && $(echo head) a.txt", place.path());
    let expected = ["cat", "env", "head", "ls", "sh", "true", "wc"];
    assert_eq!(ran.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let known = read_in("ls | cat; env true", place.path());
    assert_eq!(unnamed(&ran, &known), ["head", "sh", "wc"]);
}

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("sub")).unwrap();
    for name in ["a.txt", "b c.txt", "sub/d.txt"] {
        fs::write(place.path().join(name), "a b\nc d\n").unwrap();
    }
    place
}

fn read_in(command: &str, place: &Path) -> Reading {
    read(command, &Ground { directory: place, home: Some(place), ..super::ground() })
}

/// The names of all programs that were executed, the outermost shell not counted.
fn traced(command: &str, place: &Path) -> BTreeSet<String> {
    let traces = tempfile::tempdir().unwrap();
    // One file for each process: no line is torn apart by another's.
    let status = Command::new("timeout")
        .args(["--kill-after=1", "20", "strace", "-ff", "-qq", "-e", "trace=execve", "-o"])
        .arg(traces.path().join("trace"))
        .args(["bash", "-c", command])
        .current_dir(place)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", place)
        // A function that calls itself comes to an end.
        .env("FUNCNEST", "30")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("timeout is part of coreutils");
    let executions: Vec<String> = fs::read_dir(traces.path())
        .unwrap()
        .flat_map(|file| {
            let trace = fs::read(file.unwrap().path()).unwrap();
            String::from_utf8_lossy(&trace).lines().filter_map(executed).collect::<Vec<_>>()
        })
        .collect();
    assert!(
        executions.iter().any(|name| name == "bash"),
        "strace did not run ({status}): install strace and allow it to trace (`cargo xtask test` installs it)"
    );
    let shells = executions.iter().filter(|name| *name == "bash").count();
    executions.into_iter().filter(|name| name != "bash" || shells > 1).collect()
}

/// `execve("/usr/bin/ls", ["ls"], 0x… /* 3 vars */) = 0`; attempts that failed ran nothing.
fn executed(line: &str) -> Option<String> {
    let (path, rest) = line.strip_prefix("execve(\"")?.split_once('"')?;
    let name = path.rsplit('/').next()?;
    rest.ends_with(" = 0").then(|| name.to_owned())
}

fn unnamed(ran: &BTreeSet<String>, reading: &Reading) -> Vec<String> {
    let names: BTreeSet<&str> =
        reading.programs.iter().map(|name| name.rsplit('/').next().unwrap_or(name)).collect();
    ran.iter().filter(|name| !names.contains(name.as_str())).cloned().collect()
}
