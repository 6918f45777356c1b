//! Where things are, and how programs are started there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

#[derive(Clone, Debug)]
pub(crate) struct House {
    pub root: PathBuf,
}

impl House {
    /// The repository: cargo tells where the guard's own package is when it runs it.
    pub(crate) fn here() -> Self {
        let manifest =
            std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
        let manifest = Path::new(&manifest);
        Self { root: manifest.parent().unwrap_or(manifest).to_path_buf() }
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Build products, wherever cargo was told to put them.
    pub(crate) fn target(&self) -> PathBuf {
        match std::env::var_os("CARGO_TARGET_DIR") {
            Some(directory) => self.root.join(directory),
            None => self.root.join("target"),
        }
    }

    /// The cargo that runs us, in the root. What it told us about our own package is not passed on: some build
    /// scripts look at these variables, and half of the tree would be built again whenever they come or go.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = self.program(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_about_a_package(name)) {
            command.env_remove(name);
        }
        command
    }

    /// Any program, in the root, told where the peers are.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.current_dir(&self.root).env("TEST_PEERS", self.target().join("peers"));
        command
    }
}

fn is_about_a_package(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// Runs to the end with our own output; a failure names the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    match status.success() {
        true => Ok(()),
        false => bail!("`{shown}` ended with {status}"),
    }
}

/// Runs to the end and gives what it wrote to stdout.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}:\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` did not write UTF-8"))
}

/// Whether a program is on the search path.
pub(crate) fn is_installed(program: &str) -> bool {
    let Some(search) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&search).any(|directory| directory.join(program).is_file())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_not_told_of_the_package_that_calls_it() {
        let cargo = House::here().cargo();
        let passed =
            |name: &str| !cargo.get_envs().any(|(removed, value)| removed == name && value.is_none());
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some(), "cargo tells it to tests as it does to us");
        assert!(!passed("CARGO_PKG_NAME") && !passed("CARGO_MANIFEST_DIR"));
        assert!(passed("CARGO_HOME") && passed("PATH"));
    }
}
