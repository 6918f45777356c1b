//! The npm packages: `attache`, which starts the program, and one for each platform, which has it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::Release;
use super::tape::{EntryKind, Tape};

/// Targets for which there is a package, as Node names them: system, processor.
const PLATFORMS: [(&str, &str, &str); 2] =
    [("x86_64-unknown-linux-gnu", "linux", "x64"), ("aarch64-unknown-linux-gnu", "linux", "arm64")];

/// Name and content of the archives, as `npm publish` takes them.
pub(super) fn packages(release: &Release, launcher: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let launcher = fs::read(launcher).with_context(|| format!("cannot read {}", launcher.display()))?;
    let readme = fs::read(&release.readme).context("cannot read the README")?;
    let mut made = Vec::new();
    let mut main = Tape::new(release.time);
    main.entry("package/package.json", EntryKind::File, written(&main_manifest(release)).as_bytes())?;
    main.entry("package/README.md", EntryKind::File, &readme)?;
    main.entry("package/bin/attache.js", EntryKind::Program, &launcher)?;
    made.push((format!("attache-npm-{}.tgz", release.version), main.compressed()?));
    if let Some((_, system, processor)) = PLATFORMS.iter().find(|(target, _, _)| *target == release.target) {
        let name = format!("attache-{system}-{processor}");
        let manifest = platform_manifest(release, &name, system, processor);
        let program = fs::read(&release.program).context("cannot read the program")?;
        let mut platform = Tape::new(release.time);
        platform.entry("package/package.json", EntryKind::File, written(&manifest).as_bytes())?;
        platform.entry("package/bin/attache", EntryKind::Program, &program)?;
        made.push((format!("{name}-{}.tgz", release.version), platform.compressed()?));
    }
    Ok(made)
}

fn written(manifest: &Value) -> String {
    format!("{manifest:#}\n")
}

fn main_manifest(release: &Release) -> Value {
    let of_platform = |(_, system, processor): &(&str, &str, &str)| {
        (format!("attache-{system}-{processor}"), json!(release.version))
    };
    let platforms: Map<String, Value> = PLATFORMS.iter().map(of_platform).collect();
    let mut manifest = json!({
        "name": "attache",
        "version": release.version,
        "description": release.description,
        "license": release.license,
        "bin": { "attache": "bin/attache.js" },
        "files": ["bin"],
        "engines": { "node": ">=18" },
        "optionalDependencies": platforms,
    });
    if let Some(repository) = &release.repository {
        manifest["repository"] = json!({ "type": "git", "url": repository });
    }
    manifest
}

fn platform_manifest(release: &Release, name: &str, system: &str, processor: &str) -> Value {
    let mut manifest = json!({
        "name": name,
        "version": release.version,
        "description": format!("The program attache for {system} on {processor}"),
        "license": release.license,
        "files": ["bin"],
        "os": [system],
        "cpu": [processor],
    });
    if system == "linux" {
        manifest["libc"] = json!(["glibc"]);
    }
    manifest
}
