//! `cargo xtask dist`: everything that a release hands out for one target, in `target/packages`: archive,
//! Debian package, npm packages, entry for the registry of ACP agents, checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::house::{self, House, output};
use crate::limits::PROGRAM_BYTES;
use crate::supply;

mod debian_package;
mod inventory;
mod npm;
mod registry;
mod tape;

use tape::{EntryKind, Tape};

/// Shell → file of its completions.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "attache.bash"),
    ("zsh", "_attache"),
    ("fish", "attache.fish"),
    ("elvish", "attache.elv"),
    ("powershell", "_attache.ps1"),
];

/// What all packages are made of.
#[derive(Clone, Debug)]
struct Release {
    /// The one number of the workspace.
    version: String,
    target: String,
    program: PathBuf,
    readme: PathBuf,
    description: String,
    license: String,
    /// Where releases are; `None` while the workspace does not say.
    repository: Option<String>,
    /// Of the commit, in seconds since 1970: the same commit makes the same packages.
    time: u64,
}

/// Builds the program, unless one is named, and packs it.
pub(crate) fn run(house: &House, program: Option<&Path>) -> Result<()> {
    let program = match program {
        Some(program) => std::path::absolute(program)?,
        None => {
            house::run(house.cargo().args(["build", "--locked", "--profile", "dist", "--bin", "attache"]))?;
            house.target().join("dist/attache")
        }
    };
    let size = fs::metadata(&program).with_context(|| format!("cannot read {}", program.display()))?.len();
    if size > PROGRAM_BYTES {
        bail!("{} has {size} bytes, more than {PROGRAM_BYTES}: is it stripped?", program.display());
    }
    let release = Release::of(house, program)?;
    let made = pack(house, &release, &house.target().join("packages"))?;
    for (name, bytes) in made {
        eprintln!("{bytes:>10}  {name}");
    }
    if release.repository.is_none() {
        eprintln!(
            "the registry entry has npm only: name the `repository` in Cargo.toml, under which releases are"
        );
    }
    Ok(())
}

impl Release {
    fn of(house: &House, program: PathBuf) -> Result<Self> {
        let said = output(house.program(&program.to_string_lossy()).arg("--version"))?;
        let metadata = output(house.cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
        let metadata: Value = serde_json::from_str(&metadata)?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let package = packages.into_iter().find(|package| package["name"] == "attache");
        let package = package.context("there is no package `attache`")?;
        let field = |name: &str| package[name].as_str().map(str::to_owned);
        let version = field("version").context("`attache` has no version")?;
        let target = target_of(&said, &version)
            .with_context(|| format!("the program is another version than {version}: {}", said.trim()))?;
        Ok(Self {
            version,
            target,
            program,
            readme: house.path("README.md"),
            description: field("description").context("`attache` has no description")?,
            license: field("license").context("`attache` has no license")?,
            repository: field("repository"),
            time: time(house)?,
        })
    }

    /// What the archive and the directory in it are called.
    fn folder(&self) -> String {
        format!("attache-{}-{}", self.version, self.target)
    }
}

/// From what `attache --version` says.
fn target_of(said: &str, version: &str) -> Option<String> {
    let rest = said.trim().strip_prefix("attache ")?.strip_prefix(version)?.strip_prefix(" (")?;
    Some(rest.strip_suffix(')')?.rsplit(", ").next()?.to_owned())
}

fn time(house: &House) -> Result<u64> {
    if let Ok(stated) = std::env::var("SOURCE_DATE_EPOCH") {
        return stated.parse().context("SOURCE_DATE_EPOCH is no number of seconds");
    }
    match output(house.program("git").args(["log", "-1", "--format=%ct"])) {
        Ok(said) => said.trim().parse().context("git told no time"),
        // Not a checkout.
        Err(_) => Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs()),
    }
}

/// Makes all packages; gives their names and sizes.
fn pack(house: &House, release: &Release, place: &Path) -> Result<Vec<(String, usize)>> {
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    let crates = supply::shipped_packages(house, &release.target)?;
    let stage = place.join(release.folder());
    fill(house, release, &crates, &stage)?;
    let mut archive = Tape::new(release.time);
    archive.entry(&format!("{}/", release.folder()), EntryKind::Directory, &[])?;
    archive.tree(&stage, &format!("{}/", release.folder()))?;
    let name = format!("{}.tar.gz", release.folder());
    let mut packages = vec![(name.clone(), archive.compressed()?)];
    packages.extend(debian_package::package(release, &stage)?);
    packages.extend(npm::packages(release, &house.path("packaging/attache.js"))?);
    let entry = registry::entry(release, &name, &sum(&packages[0].1));
    packages.push(("agent.json".to_owned(), format!("{entry:#}\n").into_bytes()));
    packages.push(("icon.svg".to_owned(), fs::read(house.path("packaging/icon.svg"))?));
    let sums: String = packages.iter().map(|(name, bytes)| format!("{}  {name}\n", sum(bytes))).collect();
    packages.push(("SHA256SUMS".to_owned(), sums.into_bytes()));
    for (name, bytes) in &packages {
        fs::write(place.join(name), bytes).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(packages.into_iter().map(|(name, bytes)| (name, bytes.len())).collect())
}

/// The directory that is in the archive.
fn fill(house: &House, release: &Release, crates: &[Value], stage: &Path) -> Result<()> {
    fs::create_dir_all(stage.join("completions"))?;
    fs::copy(&release.program, stage.join("attache"))?;
    for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.md"] {
        fs::copy(house.path(name), stage.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    let unit = "attache.service";
    fs::copy(house.path("packaging").join(unit), stage.join(unit)).context("cannot copy the unit")?;
    let program = release.program.to_string_lossy();
    house::run(house.program(&program).arg("manual").arg(stage.join("man")))?;
    for (shell, file) in COMPLETIONS {
        let script = output(house.program(&program).args(["completions", shell]))?;
        fs::write(stage.join("completions").join(file), script)?;
    }
    fs::write(stage.join("LICENCES.txt"), inventory::licences(crates)?)?;
    let bill = inventory::bill(release, crates);
    fs::write(stage.join("sbom.cdx.json"), format!("{bill:#}\n"))?;
    Ok(())
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
