//! `cargo xtask portable`: what every Unix but Linux builds from this source, linted and tested on Linux. Says
//! nothing about another kernel: only that no module needs this one.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::house::{self, House, is_installed};
use crate::lints;

/// Crates with a module for each kind of system, and the program: its unit tests hold `doctor` to what it says
/// there.
const WITH_SYSTEMS: [&str; 3] = ["attache-sandbox", "attache-tools", "attache"];

/// Only our own crates are compiled anew: cargo keeps what a wrapper of another name has made apart, and what
/// others wrote is the same.
pub(crate) fn run(house: &House) -> Result<()> {
    let wrapper = wrapper(house)?;
    let cargo = || -> Result<Command> {
        let mut cargo = lints::cargo(house)?;
        cargo.env("RUSTC_WORKSPACE_WRAPPER", &wrapper);
        Ok(cargo)
    };
    house::run(cargo()?.args(PROGRAM))?;
    let program = house.target().join("debug/attache");
    let played = house::run(house.program(&program.to_string_lossy()).arg("demo"));
    // The name belongs to the program of this system: it is there already and only gets it back.
    house::run(lints::cargo(house)?.args(PROGRAM))?;
    played?;
    let mut tests = cargo()?;
    match is_installed("cargo-nextest") {
        true => {
            let wanted = WITH_SYSTEMS.map(|package| format!("package(={package})")).join(" + ");
            tests.args(["nextest", "run", "--workspace", "--lib", "--bin", "attache", "-E", &wanted]);
        }
        false => {
            let packages = WITH_SYSTEMS.into_iter().flat_map(|package| ["--package", package]);
            tests.args(["test", "--lib", "--bin", "attache"]).args(packages);
        }
    }
    house::run(&mut tests)
}

const PROGRAM: [&str; 4] = ["build", "--workspace", "--bin", "attache"];

/// The linting compiler, told which system it compiles for.
fn wrapper(house: &House) -> Result<PathBuf> {
    let directory = house.target().join("portable");
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let path = directory.join("rustc");
    let text = "#!/bin/sh\nexec clippy-driver \"$@\" --cfg attache_portable\n";
    if fs::read_to_string(&path).is_ok_and(|written| written == text) {
        return Ok(path);
    }
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrapper_compiles_what_other_systems_get() {
        let directory = tempfile::tempdir().unwrap();
        let house = House { root: directory.path().to_owned() };
        let wrapper = wrapper(&house).unwrap();
        assert_eq!(super::wrapper(&house).unwrap(), wrapper, "it is written once");
        let file = directory.path().join("sample.rs");
        fs::write(&file, "#[cfg(not(attache_portable))]\ncompile_error!(\"for Linux\");\n").unwrap();
        let compiled = |program: &str| {
            let mut command = Command::new(program);
            command.args(["rustc", "--crate-type=lib", "--emit=metadata"]).arg(&file);
            command.arg("--out-dir").arg(directory.path()).output().unwrap().status.success()
        };
        assert!(compiled(&wrapper.to_string_lossy()) && !compiled("clippy-driver"));
    }
}
