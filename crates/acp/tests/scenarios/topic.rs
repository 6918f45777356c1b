//! One file of scenarios: plays them beside each other, reports every failure, writes expectations anew when
//! asked to.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::grammar::{Scenario, scenarios};
use crate::limits::{AT_ONCE, COLUMNS};
use crate::play::{Mode, play};

/// What came of the scenarios of a file.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) failures: Vec<String>,
    /// Lines of expectations (first, count) and what they should say.
    written: Vec<(usize, usize, String)>,
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Plays a file; panics with all that did not hold.
pub(crate) fn hold(topic: &str) {
    let path = folder().join(format!("{topic}.md"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = format!("crates/acp/scenarios/{topic}.md");
    let scenarios = scenarios(&name, &text).unwrap_or_else(|error| panic!("{error}"));
    assert!(!scenarios.is_empty(), "{name} holds no scenario");
    let checked = check(&name, &scenarios);
    if !checked.written.is_empty() {
        std::fs::write(&path, rewritten(&text, checked.written)).unwrap();
    }
    let failures = checked.failures;
    assert!(failures.is_empty(), "{} failed:\n\n{}\n", failures.len(), failures.join("\n\n"));
}

pub(crate) fn check(name: &str, scenarios: &[Scenario]) -> Checked {
    let only = std::env::var("SCENARIO").unwrap_or_default();
    let mode = match std::env::var_os("UPDATE_EXPECT") {
        Some(_) if name.starts_with("crates/") => Mode::Write,
        Some(_) | None => Mode::Compare,
    };
    let chosen: Vec<&Scenario> = scenarios.iter().filter(|scenario| scenario.title.contains(&only)).collect();
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|threads| {
        for _ in 0..AT_ONCE.min(chosen.len()) {
            threads.spawn(|| {
                while let Some(scenario) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let played = std::panic::catch_unwind(|| play(scenario, mode));
                    let (written, held) =
                        played.unwrap_or_else(|panic| (Vec::new(), Err((scenario.line, words(&*panic)))));
                    results.lock().unwrap().push((scenario, written, held));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(scenario, ..)| scenario.line);
    let mut checked = Checked::default();
    for (scenario, written, held) in results {
        checked.written.extend(written);
        if let Err((line, reason)) = held {
            checked.failures.push(format!("{name}:{line}: {}\n{reason}", scenario.title));
        }
    }
    checked
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked").to_owned()
}

fn rewritten(text: &str, mut written: Vec<(usize, usize, String)>) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // From the end, so that the numbers of earlier lines stay right.
    written.sort_by_key(|(first, ..)| std::cmp::Reverse(*first));
    for (first, count, expectation) in written {
        lines.splice(first - 1..first - 1 + count, wrapped(&expectation));
    }
    lines.join("\n") + "\n"
}

/// Broken between items only; continued lines are indented.
fn wrapped(expectation: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in expectation.split(" · ") {
        match lines.last_mut() {
            None => lines.push(item.to_owned()),
            Some(last) if last.chars().count() + item.chars().count() + 3 <= COLUMNS => {
                last.push_str(" · ");
                last.push_str(item);
            }
            Some(_) => lines.push(format!("   · {item}")),
        }
    }
    lines
}
