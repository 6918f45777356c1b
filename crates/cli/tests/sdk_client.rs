//! The official TypeScript SDK drives the binary through every method; each line is held to the schema and the
//! order.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use attache_testkit::binary::Home;
use attache_testkit::checker::{Client, Direction, Ending, WireChecker};
use attache_testkit::schema::{Side, Validator};

const SCRIPT: &str = include_str!("../../../peers/acp-sdk/model.script");
const LIFE_SCRIPT: &str = include_str!("../../../peers/acp-sdk/life.script");
const EDITOR_SCRIPT: &str = include_str!("../../../peers/acp-sdk/editor.script");

#[tokio::test]
async fn the_official_sdk_drives_every_method() {
    let drive = Drive { script: SCRIPT, program: "drive.mjs", connections: 2, least_steps: 27 };
    check_every_method(&drive.run().await);
}

#[tokio::test]
async fn the_official_sdk_is_an_editor_with_files_and_terminals_of_its_own() {
    Drive { script: EDITOR_SCRIPT, program: "editor.mjs", connections: 2, least_steps: 8 }.run().await;
}

#[tokio::test]
async fn the_official_sdk_queues_steers_rewinds_copies_plans_delegates_and_compacts() {
    Drive { script: LIFE_SCRIPT, program: "life.mjs", connections: 2, least_steps: 11 }.run().await;
}

struct Drive {
    /// What the model says.
    script: &'static str,
    program: &'static str,
    /// Processes of the agent that it starts.
    connections: usize,
    least_steps: usize,
}

impl Drive {
    /// Gives everything the program printed, once all of it was right.
    async fn run(&self) -> String {
        let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
        let home = Home::new(env!("CARGO_BIN_EXE_attache"), self.script);
        let output = home
            .program("node")
            .arg(PathBuf::from(peers).join("acp-sdk").join(self.program))
            .env("TEST_BINARY", home.binary())
            .env("TEST_WORKSPACE", home.workspace())
            .output()
            .await
            .expect("node must be installed");
        let report = String::from_utf8(output.stdout).unwrap();
        let steps: Vec<&str> = report.lines().filter(|line| !is_traffic(line)).collect();
        assert!(
            output.status.success(),
            "{}\n{}\nlast lines:\n{}",
            steps.join("\n"),
            String::from_utf8_lossy(&output.stderr),
            last_lines(&report)
        );
        let done = steps.iter().filter(|line| line.starts_with("ok ")).count();
        assert!(done >= self.least_steps, "{}", steps.join("\n"));
        check_wire(&report, self.connections);
        assert_eq!(home.orphans(), []);
        report
    }
}

/// Each connection on its own: `1> …` and `1< …` are what went to and came from the first process.
fn check_wire(report: &str, connections: usize) {
    let mut checkers: BTreeMap<&str, WireChecker> = BTreeMap::new();
    for (connection, direction, line) in report.lines().filter_map(traffic) {
        checkers
            .entry(connection)
            .or_insert_with(|| WireChecker::new(Client::Adversary))
            .feed(direction, line.as_bytes());
    }
    assert_eq!(checkers.len(), connections, "processes that were driven");
    for (connection, checker) in checkers {
        let violations: Vec<String> =
            checker.finish(Ending::Complete).iter().map(|violation| violation.to_string()).collect();
        assert!(violations.is_empty(), "connection {connection}:\n{}", violations.join("\n"));
    }
}

fn check_every_method(report: &str) {
    let sent: BTreeSet<String> = report
        .lines()
        .filter_map(traffic)
        .filter(|(_, direction, _)| *direction == Direction::FromClient)
        .filter_map(|(_, _, line)| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message["method"].as_str().map(str::to_owned))
        .collect();
    let validator = Validator::shared();
    let missing: Vec<&str> = validator
        .methods()
        .filter(|method| validator.side(method) == Some(Side::Agent) && !sent.contains(*method))
        .collect();
    assert!(missing.is_empty(), "never sent: {missing:?}");
}

fn traffic(line: &str) -> Option<(&str, Direction, &str)> {
    let (head, message) = line.split_once(' ')?;
    let connection = &head[..head.len().checked_sub(1)?];
    let direction = match head.chars().last()? {
        '>' => Direction::FromClient,
        '<' => Direction::FromAgent,
        _ => return None,
    };
    connection.parse::<u32>().is_ok().then_some((connection, direction, message))
}

fn is_traffic(line: &str) -> bool {
    traffic(line).is_some()
}

fn last_lines(report: &str) -> String {
    let lines: Vec<&str> = report.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
