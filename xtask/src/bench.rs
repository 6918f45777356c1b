//! Builds the binary that is shipped and what measures it, and lets it measure. Knows no figure.

use anyhow::Result;

use crate::house::{House, run as run_command};

/// One after the other: built together, what is measured would get the features of what measures.
pub(crate) fn run(house: &House, words: &[&str]) -> Result<()> {
    for package in ["attache", "attache-bench"] {
        run_command(house.cargo().args([
            "build",
            "--quiet",
            "--profile",
            "dist",
            "--locked",
            "--package",
            package,
        ]))?;
    }
    for rival in ["rmcp", "acp-http"] {
        run_command(
            house
                .cargo()
                .args(["build", "--quiet", "--release", "--locked", "--manifest-path"])
                .arg(format!("bench/{rival}/Cargo.toml"))
                .arg("--target-dir")
                .arg(house.target().join(rival)),
        )?;
    }
    let program = house.target().join("dist/attache-bench");
    run_command(house.program(&program.to_string_lossy()).args(words))
}
