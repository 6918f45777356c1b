//! What the reader names and what really runs: generated commands in the sandbox, all of it under `strace`.
//! Every program has to be in the list.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use attache_core::ports::ToolOutcome;
use attache_shell::{Context, Footprint, read};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::json;

use super::{commands, is_unclear};
use crate::trial::{Alone, Trial, alone, names};

/// Enough to meet every construct several times, few enough for half a minute.
const CASES: u32 = 150;

/// What a sandbox executes before the shell that runs the command, and that shell.
const BEFORE: [&str; 3] = ["bwrap", "command-guard", "bash"];

#[test]
fn every_program_that_runs_was_named_before() {
    let Some(tracer) = Tracer::alone("shell::traced::every_program_that_runs_was_named_before") else {
        return;
    };
    let (clear, executed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_time: 20_000,
        ..Config::default()
    });
    let outcome = runner.run(&commands::command(), |command| {
        let footprint = tracer.read(&command);
        if is_unclear(&footprint) {
            return Ok(());
        }
        let ran = tracer.run(&command);
        clear.fetch_add(1, Ordering::Relaxed);
        executed.fetch_add(ran.len(), Ordering::Relaxed);
        match unnamed(&ran, &footprint).as_slice() {
            [] => Ok(()),
            missing => Err(TestCaseError::fail(format!(
                "{missing:?} ran, named were {:?}: {command}",
                footprint.programs
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
    let Some(tracer) = Tracer::alone("shell::traced::the_tracer_sees_what_runs") else { return };
    let ran = tracer.run("ls | cat; env true; sh -c 'pwd; wc -l a.txt' && $(echo head) a.txt");
    let expected = ["cat", "env", "head", "ls", "sh", "true", "wc"];
    assert_eq!(ran.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let known = tracer.read("ls | cat; env true");
    assert_eq!(unnamed(&ran, &known), ["head", "sh", "wc"]);
    assert_eq!(tracer.run("bash -c id").into_iter().collect::<Vec<_>>(), ["bash", "id"]);
    // In the sandbox, where nothing is traced.
    assert_eq!(tracer.run("strace true 2> /dev/null && ls").into_iter().collect::<Vec<_>>(), ["strace"]);
}

/// Commands in a sandbox that is traced from outside: inside, tracing is denied. Its `bwrap` is a script which
/// runs the real one under `strace`.
struct Tracer {
    trial: Trial,
    traces: PathBuf,
    runtime: tokio::runtime::Runtime,
}

impl Tracer {
    /// In a process of its own, which holds its place; `None` when that has done it.
    fn alone(test: &str) -> Option<Self> {
        const PLACE: &str = "ATTACHE_TEST_TRACES";
        let place = tempfile::tempdir().unwrap();
        let path = std::env::var("PATH").unwrap();
        if alone(test, &[(PLACE, place.path().to_str().unwrap())]) == Alone::Done {
            return None;
        }
        let place = PathBuf::from(std::env::var_os(PLACE).unwrap());
        let traces = place.join("traces");
        fs::create_dir(&traces).unwrap();
        let real = std::env::split_paths(&path)
            .map(|directory| directory.join("bwrap"))
            .find(|program| program.is_file())
            .expect("bubblewrap is not installed (`cargo xtask test` installs it)");
        // One file for each process: no line is torn apart by another's.
        let script = format!(
            "#!/bin/sh\nexec strace -ff -qq -e trace=execve -o {}/$$ {} \"$@\"\n",
            traces.display(),
            real.display()
        );
        fs::write(place.join("bwrap"), script).unwrap();
        fs::set_permissions(place.join("bwrap"), PermissionsExt::from_mode(0o755)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Some(Self { trial: Trial::held_by(place.join("bwrap")), traces, runtime })
    }

    fn read(&self, command: &str) -> Footprint {
        let root = &self.trial.root;
        self.plant();
        read(command, &Context { directory: root, home: Some(root), ..super::context() })
    }

    /// The same files before each command.
    fn plant(&self) {
        let root = &self.trial.root;
        fs::remove_dir_all(root).unwrap();
        fs::create_dir_all(root.join("sub")).unwrap();
        for name in ["a.txt", "b c.txt", "sub/d.txt"] {
            fs::write(root.join(name), "a b\nc d\n").unwrap();
        }
    }

    /// The names of all programs that were executed, the outermost shell and what comes before it not counted.
    fn run(&self, command: &str) -> BTreeSet<String> {
        self.plant();
        self.forget();
        // A function that calls itself comes to an end.
        let text = format!("FUNCNEST=30; HOME={}\n{command}", self.trial.root.display());
        let call = self.trial.run("bash", json!({"command": text, "timeout_ms": 20_000}));
        let outcome = self.runtime.block_on(call);
        let mut executions: Vec<String> =
            names(&self.traces).iter().flat_map(|name| executions(&self.traces.join(name))).collect();
        for before in BEFORE {
            let Some(at) = executions.iter().position(|name| name == before) else {
                panic!(
                    "{before} is not in the trace {executions:?}: install strace and allow it to trace \
                     (`cargo xtask test` installs it); {}",
                    told(&outcome)
                );
            };
            executions.remove(at);
        }
        executions.into_iter().collect()
    }

    fn forget(&self) {
        names(&self.traces).iter().for_each(|name| fs::remove_file(self.traces.join(name)).unwrap());
    }
}

fn told(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Output { data, .. } => data.to_string(),
        ToolOutcome::Error { text, .. } => text.clone(),
        ToolOutcome::Picture { .. } => "a picture".to_owned(),
    }
}

fn executions(trace: &Path) -> Vec<String> {
    String::from_utf8_lossy(&fs::read(trace).unwrap()).lines().filter_map(executed).collect()
}

/// `execve("/usr/bin/ls", ["ls"], 0x… /* 3 vars */) = 0`; attempts that failed ran nothing.
fn executed(line: &str) -> Option<String> {
    let (path, rest) = line.strip_prefix("execve(\"")?.split_once('"')?;
    let name = path.rsplit('/').next()?;
    rest.ends_with(" = 0").then(|| name.to_owned())
}

fn unnamed(ran: &BTreeSet<String>, footprint: &Footprint) -> Vec<String> {
    let names: BTreeSet<&str> =
        footprint.programs.iter().map(|name| name.rsplit('/').next().unwrap_or(name)).collect();
    ran.iter().filter(|name| !names.contains(name.as_str())).cloned().collect()
}
