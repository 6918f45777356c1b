//! What the reader lets pass, run for real: generated commands full of ways to lose track of what a shell does.
//! None that passes may run a program, change a file or show one from outside.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use attache_shell::{Context, read};
use attache_shell::{Nature, Touch};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// How many are made; about one in six passes and is run.
const CASES: u32 = 6_000;

/// What is in a file that no command may come to.
const CANARY: &str = "canary-of-the-reader";

/// `OUT` is a file outside, `mk` a program that leaves a mark.
const SIMPLE: &[&str] = &[
    "mk",
    "cat OUT",
    "true",
    "false",
    ":",
    "ls",
    "echo a",
    "ls nope",
    "f",
    "g",
    "cat $x",
    "cat \"$x\"",
    "cat $x/OUT",
    "cat $y",
    "echo $((x))",
    "echo ${a[x]}",
    "echo $((1/0))",
    "echo $((09))",
    "x=a.txt",
    "x=OUT",
    "x=",
    "y=$x",
    "x='b[$(mk)]'",
    "x=$(cat a.txt)",
    "((x=1))",
    "((0 && (x=1)))",
    "x=$((x+1))",
    "((x = 08))",
    "((HOME, x=1))",
    "echo ${y:-$((x=5))}",
    "ls='b[$(mk)]'",
    "echo ${y:-$((ls))}",
    "cat ${x#a}",
    "cat {a.txt,$x}b",
    "[ $x ]",
    "FUNCNEST=1",
    "time exit",
    "'time' exit",
    "eval 'exit; fi'",
    "declare x=a.txt y=$x",
    "declare -a a='($(mk))'",
    "declare x=a.txt",
    "declare x=OUT",
    "local x=a.txt",
    "export x",
    "unset x",
    "read x < a.txt",
    "printf -v x %s OUT",
    "a=(1 2)",
    "a=('b[$(mk)]')",
    "f() { :; }",
    "f() { mk; }",
    "g() { x=OUT; return; x=a.txt; }",
    "ls() { mk; }",
    "echo() { cat OUT; }",
    "unset -f f",
    "return",
    "break",
    "continue",
    "exit",
    "exit 0",
    "exit --help",
    "cd sub",
    "cd ..",
    "cd nope",
    "cd /",
    "cat etc/hosts",
    "[ a = b ]",
    "[ -f a.txt ]",
    "[[ -n $x ]]",
    "[[ $x -eq 1 ]]",
    "test -f a.txt",
    "set -e",
    "set -f",
    "shift",
    "wait",
];

fn combined(form: usize, a: &str, b: &str, c: &str) -> String {
    match form % FORMS {
        0 => format!("{a}; {b}"),
        1 => format!("{a}\n{b}"),
        2 => format!("{a} && {b}"),
        3 => format!("{a} || {b}"),
        4 => format!("{a} && {b} || {c}"),
        5 => format!("{{ {a}; }} || {{ {b}; }}"),
        6 => format!("{{ {a}; {b}; }} < nope; {c}"),
        7 => format!("! {a} && {b}"),
        8 => format!("({a}; {b}); {c}"),
        9 => format!("{a} | {b}; {c}"),
        10 => format!("if {a}; then {b}; fi; {c}"),
        11 => format!("if {a}; then {b}; else {c}; fi"),
        12 => format!("for i in 1 2; do {a}; {b}; done; {c}"),
        13 => format!("for i in *; do {a}; {b}; done; {c}"),
        14 => format!("for i in {{1..2}}; do {a}; {b}; done; {c}"),
        15 => format!("while read -r l; do {a}; {b}; done < a.txt; {c}"),
        16 => format!("for ((i = 0; i < 2; i++)); do {a}; {b}; done; {c}"),
        17 => format!("for x in a.txt OUT; do {a}; done; {b}"),
        18 => format!("case a in a) {a};& b) {b};; *) {c};; esac"),
        19 => format!("h() {{ {a}; {b}; }}; h; {c}"),
        20 => format!("h() {{ {a}; }} < nope; h; {b}; {c}"),
        21 => format!("eval '{}'; {b}", a.replace('\'', "")),
        22 => format!("echo $({a}; {b}); {c}"),
        23 => format!("[ {a} || {b} ]; {c}"),
        24 => format!("{a} <&9 || {b}; {c}"),
        25 => format!("{a} & {b}; {c}"),
        26 => format!("x=OUT {a}; {b}"),
        27 => format!("until {a}; do {b}; break; done; {c}"),
        28 => format!("cat <<E\n$({a})\nE\n{b}"),
        29 => format!("bash -c '{}'; {b}", a.replace('\'', "")),
        30 => format!("x=OUT; for ((i = 0; i < 1; i++)); do {a}; i=$x; done; {b}"),
        31 => format!("! (({a})); {b}"),
        _ => format!("[[ $({a}) = a ]] && {b}; {c}"),
    }
}

const FORMS: usize = 33;

fn command() -> impl Strategy<Value = String> {
    let simple = prop::sample::select(SIMPLE).prop_map(str::to_owned);
    simple.prop_recursive(4, 16, 3, |inner| {
        (0..FORMS, inner.clone(), inner.clone(), inner).prop_map(|(form, a, b, c)| combined(form, &a, &b, &c))
    })
}

#[test]
fn nothing_that_passes_does_more_than_read() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (root, programs, outside) = (place.join("root"), place.join("bin"), place.join("outside"));
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir(&programs).unwrap();
    fs::write(root.join("a.txt"), "a b\nc d\n").unwrap();
    fs::write(&outside, CANARY).unwrap();
    let mark = place.join("mark");
    fs::write(programs.join("mk"), format!("#!/bin/sh\n: > {}\n", mark.display())).unwrap();
    fs::set_permissions(programs.join("mk"), PermissionsExt::from_mode(0o755)).unwrap();
    let files = names(&root);
    let passed = AtomicUsize::new(0);
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&command(), |command| {
        let command = command.replace("OUT", &outside.display().to_string());
        if !passes(&command, &root) {
            return Ok(());
        }
        passed.fetch_add(1, Ordering::Relaxed);
        let said = run(&command, &root, &programs);
        let leaks = said.contains(CANARY) || said.contains("localhost");
        if leaks || mark.exists() || names(&root) != files {
            fs::remove_file(&mark).ok();
            return Err(TestCaseError::fail(format!("it passes, and does more: {command}")));
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    // Who lets nothing pass proves nothing.
    assert!(passed.into_inner() >= CASES as usize / 20);
}

/// Whether the command would run without a question.
fn passes(command: &str, root: &Path) -> bool {
    let footprint = read(command, &Context { directory: root, home: Some(root), ..super::context() });
    footprint.touches.iter().all(|touch| match touch {
        Touch::Command(command) => command.nature == Nature::ReadOnly,
        Touch::Read(path) => path.starts_with(root),
        Touch::Write(_) | Touch::Host(_) => false,
    })
}

fn run(command: &str, root: &Path, programs: &Path) -> String {
    let done = Command::new("timeout")
        .args(["5", "bash", "-c", command])
        .current_dir(root)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env("HOME", root)
        // A function that calls itself comes to an end.
        .env("FUNCNEST", "30")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}
