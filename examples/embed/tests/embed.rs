//! The example does what its page says: its own tool runs once it is allowed, and the answer streams.

use std::process::Command;

#[test]
fn the_example_asks_runs_its_tool_and_prints_the_stream() {
    let output = Command::new(env!("CARGO_BIN_EXE_attache-embed")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    let place = |line: &str| {
        lines.iter().position(|found| *found == line).unwrap_or_else(|| panic!("{line}: {said}"))
    };
    let in_order = [
        "- start",
        "asked: thermometer {\"city\":\"Oslo\"}",
        "result: \"Oslo: 21 degrees\"",
        "text: It is 21 degrees in Oslo.",
        "- finish",
        "Finished(Stop)",
    ];
    assert!(in_order.map(place).is_sorted(), "{said}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("asked: ")).count(), 1, "{said}");
}

/// The page shows the program as it is.
#[test]
fn the_example_stays_short_enough_to_be_read() {
    let source = include_str!("../src/main.rs");
    let is_code = |line: &&str| {
        let line = line.trim();
        !(line.is_empty() || line.starts_with("use ") || line.starts_with("//"))
    };
    let count = source.lines().filter(is_code).count();
    assert!(count <= 60, "{count} lines of code");
}
