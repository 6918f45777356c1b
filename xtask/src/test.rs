//! `cargo xtask test`: everything that must hold before a change lands, from a clean clone on. `cargo xtask soak`: the same
//! hunts for longer.

use anyhow::Result;

use crate::fuzz::{self, Effort};
use crate::house::{self, House, is_installed};
use crate::limits::SOAK_SEEDS;
use crate::steps::Steps;
use crate::{peers, tidy};

pub(crate) fn run(house: &House, effort: Effort) -> Result<()> {
    let mut steps = Steps::default();
    steps.step("format", || house::run(house.cargo().args(["fmt", "--all", "--check"])));
    steps.step("format of the fuzz targets", || {
        house::run(house.cargo().args(["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"]))
    });
    steps.step("lints", || {
        house::run(house.cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    });
    // A workspace of its own, which the lints above pass over. What it shares with this one is checked once.
    steps.step("lints of the fuzz targets", || {
        let target = house.target();
        house::run(
            house
                .cargo()
                .args(["clippy", "--manifest-path", "fuzz/Cargo.toml", "--all-targets", "--target-dir"])
                .arg(target)
                .args(["--", "-D", "warnings"]),
        )
    });
    steps.step("tidy", || tidy::run(house));
    steps.step("peers", || peers::install(house).map(drop));
    steps.step("build", || house::run(house.cargo().args(["build", "--workspace", "--bins"])));
    steps.step("tests", || tests(house));
    steps.step("documentation tests", || {
        house::run(house.cargo().args(["test", "--workspace", "--doc", "--quiet"]))
    });
    steps.step("peers' own tests", || peers::test(house));
    steps.step("fuzzing", || fuzz::run(house, effort));
    steps.step("demo", || {
        house::run(house.cargo().args(["run", "--quiet", "--package", "attache", "--", "demo"]))
    });
    steps.finish()
}

/// Tests that generate their cases read these variables and go on for longer.
pub(crate) fn soak(house: &House) -> Result<()> {
    let mut steps = Steps::default();
    steps.step("peers", || peers::install(house).map(drop));
    steps.step("tests", || {
        let seeds = SOAK_SEEDS.to_string();
        let mut command = house.cargo();
        command.args(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"]);
        house::run(command.env("TEST_SOAK", "1").env("TEST_SIM_SEEDS", &seeds).env("PROPTEST_CASES", "20000"))
    });
    steps.step("fuzzing", || fuzz::run(house, Effort::Soak));
    steps.finish()
}

/// nextest runs tests side by side in processes of their own; without it cargo's runner does the same work slower.
fn tests(house: &House) -> Result<()> {
    match is_installed("cargo-nextest") {
        true => house::run(house.cargo().args(["nextest", "run", "--workspace", "--no-fail-fast"])),
        false => house::run(house.cargo().args([
            "test",
            "--workspace",
            "--no-fail-fast",
            "--lib",
            "--bins",
            "--tests",
        ])),
    }
}
