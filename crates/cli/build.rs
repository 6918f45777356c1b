//! Says in `--version` for which target this is and of which commit it was made.

use std::path::Path;
use std::process::Command;

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (version, target) = (variable("CARGO_PKG_VERSION"), variable("TARGET"));
    println!("cargo::rerun-if-changed=build.rs");
    // Only what is shipped names its commit: else every commit would compile and link the tests anew.
    let commit = if variable("PROFILE") == "release" { commit() } else { None };
    let made_of = commit.map(|commit| format!("{commit}, ")).unwrap_or_default();
    // `cargo run` gives it to the program, too: under a name of ours it would be taken for a setting.
    println!("cargo::rustc-env=BUILT_VERSION={version} ({made_of}{target})");
}

/// Of the checkout that is built, or of the one that the published package was made of.
fn commit() -> Option<String> {
    let published = Path::new(".cargo_vcs_info.json");
    let digits = match std::fs::read_to_string(published) {
        Ok(info) => {
            let (_, behind) = info.split_once("\"sha1\"")?;
            behind.split('"').nth(1)?.to_owned()
        }
        Err(_) => {
            let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
            println!("cargo::rerun-if-changed={log}");
            git(&["rev-parse", "HEAD"])?
        }
    };
    digits.chars().all(|c| c.is_ascii_hexdigit()).then(|| digits.chars().take(12).collect())
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
    let said = String::from_utf8(output.stdout).ok()?;
    Some(said.trim().to_owned()).filter(|said| !said.is_empty())
}
