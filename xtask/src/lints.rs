//! One compilation that lints and builds: clippy takes the compiler's place for the crates of this workspace.
//!
//! `cargo clippy` sets the same two variables and stops before machine code is made. A build with them gives
//! the same findings, as errors, and programs that the tests can run. Crates of others are compiled as ever.

use std::process::Command;

use anyhow::{Result, bail};

use crate::house::{House, is_installed};

/// Compiles like rustc and lints.
const DRIVER: &str = "clippy-driver";

/// `-D warnings`, in the form in which `cargo clippy -- -D warnings` hands it on.
const ARGUMENTS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// Cargo, told to lint what it compiles of ours.
pub(crate) fn cargo(house: &House) -> Result<Command> {
    if !is_installed(DRIVER) {
        bail!("{DRIVER} is missing: run `rustup component add clippy`");
    }
    let mut command = house.cargo();
    command.env("RUSTC_WORKSPACE_WRAPPER", DRIVER).env("CLIPPY_ARGS", ARGUMENTS);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What cargo would call for a file of ours: the outcome and what was said.
    fn compiled(source: &str) -> (bool, String) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sample.rs");
        fs::write(&file, source).unwrap();
        let cargo = cargo(&House::here()).unwrap();
        let variable = |name: &str| {
            let set = cargo.get_envs().find(|(key, _)| *key == name).and_then(|(_, value)| value);
            set.unwrap_or_else(|| panic!("{name} is not set")).to_owned()
        };
        let mut driver = Command::new(variable("RUSTC_WORKSPACE_WRAPPER"));
        driver.args(["rustc", "--edition=2024", "--crate-type=lib", "--emit=link"]).arg(&file);
        driver.arg("--out-dir").arg(directory.path()).env("CLIPPY_ARGS", variable("CLIPPY_ARGS"));
        let output = driver.env_remove("RUSTC_WORKSPACE_WRAPPER").output().unwrap();
        let made = directory.path().join("libsample.rlib").exists();
        assert_eq!(made, output.status.success(), "a library is made if nothing was found");
        (made, String::from_utf8_lossy(&output.stderr).into_owned())
    }

    #[test]
    fn what_the_compiler_and_clippy_warn_of_fails_the_build() {
        assert!(compiled("pub fn one() -> u8 {\n    1\n}\n").0);
        let (passed, said) = compiled("fn unused() {}\n");
        assert!(!passed && said.contains("never used"), "{said}");
        let (passed, said) = compiled("pub fn one() -> u8 {\n    return 1;\n}\n");
        assert!(!passed && said.contains("needless_return"), "{said}");
    }
}
