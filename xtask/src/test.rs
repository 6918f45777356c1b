//! `cargo xtask test`: everything that must hold before a change lands, from a clean clone on. `cargo xtask
//! soak`: the same hunts for longer.

use std::process::Command;

use anyhow::Result;

use crate::fuzz::{self, Effort};
use crate::house::{self, House, is_installed};
use crate::limits::{SLOWEST_TESTS, SOAK_CASES_PER_MINUTE, SOAK_MINUTES_PER_REPEAT, SOAK_SEEDS_PER_MINUTE};
use crate::steps::Steps;
use crate::{book, dist, lints, peers, publish, supply, test_report, tidy};

/// What is quick and finds most comes first. Nothing of ours is compiled twice: the build lints, and the tests
/// and the demo run what it made.
pub(crate) fn run(house: &House, effort: Effort) -> Result<()> {
    let mut steps = Steps::default();
    steps.step("format", || house::run(house.cargo().args(["fmt", "--all", "--check"])));
    steps.step("format of the fuzz targets", || {
        house::run(house.cargo().args(["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"]))
    });
    steps.step("tidy", || tidy::run(house));
    steps.step("pages and links", || book::check(house));
    steps.step("licences", || supply::check(house));
    steps.step("packages of crates", || publish::check(house));
    steps.step("peers", || peers::install(house).map(drop));
    steps.step("build with lints", || {
        house::run(lints::cargo(house)?.args(["build", "--workspace", "--all-targets"]))
    });
    steps.step("tests", || tests(house, lints::cargo(house)?, AfterFailure::RunAgain));
    steps.step("demo", || {
        let program = house.target().join("debug/attache");
        house::run(house.program(&program.to_string_lossy()).arg("demo"))
    });
    steps.step("fuzzing", || fuzz::run(house, effort));
    steps.finish()
}

/// Tests that generate their cases read these variables and go on for longer.
pub(crate) fn soak(house: &House, minutes: u32) -> Result<()> {
    let mut steps = Steps::default();
    steps.step("peers", || peers::install(house).map(drop));
    // What a release hands out, made of the real program: the tests install it in an empty container.
    steps.step("packages of a release", || dist::run(house, None));
    if is_installed("mdbook") {
        steps.step("site", || book::build(house));
    }
    steps.step("packages of crates, each built", || publish::dry_run(house));
    steps.step("tests", || {
        let mut cargo = lints::cargo(house)?;
        cargo.env("TEST_PACKAGES", house.target().join("packages"));
        let repeats = (minutes / SOAK_MINUTES_PER_REPEAT).max(1);
        cargo.env("TEST_SOAK", repeats.to_string());
        cargo.env("TEST_SIM_SEEDS", (minutes * SOAK_SEEDS_PER_MINUTE).to_string());
        cargo.env("PROPTEST_CASES", (minutes * SOAK_CASES_PER_MINUTE).to_string());
        tests(house, cargo, AfterFailure::Fail)
    });
    steps.step("fuzzing", || fuzz::run(house, Effort::Soak { minutes }));
    steps.finish()
}

/// What becomes of a test that failed. A change is not held up by a machine that stood still for a second: such
/// a test is run once more, and named. A hunt wants to know of every failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterFailure {
    RunAgain,
    Fail,
}

/// nextest runs tests side by side in processes of their own; without it cargo's runner does the same work
/// slower.
fn tests(house: &House, mut cargo: Command, after_failure: AfterFailure) -> Result<()> {
    match is_installed("cargo-nextest") {
        true => {
            let retries = match after_failure {
                AfterFailure::RunAgain => "1",
                AfterFailure::Fail => "0",
            };
            let words = ["nextest", "run", "--workspace", "--no-fail-fast", "--retries", retries];
            let outcome = house::run(cargo.args(words));
            let report = house.target().join("nextest/default/junit.xml");
            eprint!("\n{}", test_report::told(&report, SLOWEST_TESTS)?);
            outcome
        }
        false => {
            house::run(cargo.args(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"]))
        }
    }
}
