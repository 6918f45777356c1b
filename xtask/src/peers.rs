//! Installs the programs of others that the tests talk to: `peers/<name>` with its pins becomes
//! `target/peers/<name>`. From npm or from PyPI, by what the folder holds.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::debian;
use crate::house::{House, is_installed, run};

/// Written last, so that an installation that was cut short is done again.
const STAMP: &str = ".installed";

/// What says which packages a peer needs, and from where.
const NPM: &str = "package.json";
const PYPI: &str = "requirements.txt";

/// Gives the directory that holds them, the value of `TEST_PEERS`.
pub(crate) fn install(house: &House) -> Result<PathBuf> {
    debian::install(house)?;
    let target = house.target().join("peers");
    for peer in peers(house)? {
        install_one(house, &peer, &target)?;
    }
    Ok(target)
}

fn peers(house: &House) -> Result<Vec<PathBuf>> {
    let directory = house.path("peers");
    let entries = fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| [NPM, PYPI].iter().any(|manifest| path.join(manifest).is_file()))
        .collect();
    found.sort();
    Ok(found)
}

fn install_one(house: &House, peer: &Path, target: &Path) -> Result<()> {
    let name = name_of(peer);
    let is_npm = peer.join(NPM).is_file();
    let wanted = match is_npm {
        true => {
            let (manifest, lock) = (read(&peer.join(NPM))?, read(&peer.join("package-lock.json"))?);
            check_pins(&manifest).with_context(|| format!("peers/{name}/{NPM}"))?;
            format!("{manifest}\n{lock}")
        }
        false => read(&peer.join(PYPI))?,
    };
    let destination = target.join(name);
    fs::create_dir_all(&destination)?;
    copy_files(peer, &destination)?;
    let stamp = destination.join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        eprintln!("{name}: up to date");
        return Ok(());
    }
    eprintln!("{name}: installing");
    match is_npm {
        true => install_npm(house, &destination)?,
        false => install_pypi(house, &destination)?,
    }
    fs::write(stamp, wanted)?;
    Ok(())
}

fn install_npm(house: &House, destination: &Path) -> Result<()> {
    if !is_installed("npm") {
        bail!("npm is missing: the tests need Node 20 or newer with npm on the search path");
    }
    let options = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    run(house.program("npm").args(options).current_dir(destination))
}

/// How a list begins whose packages are compiled for each kind of machine.
const OF_THIS_MACHINE: &str = "# Wheels of this machine";

/// Into `python` beside the script. Wheels only, so that nothing is built; for any platform, each with its
/// hash, unless the list says that there are none such.
fn install_pypi(house: &House, destination: &Path) -> Result<()> {
    if !is_installed("python3") {
        bail!("python3 is missing: the tests need Python 3 with pip on the search path");
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore"];
    let options: &[&str] = match read(&destination.join(PYPI))?.starts_with(OF_THIS_MACHINE) {
        true => &["--no-deps", "--only-binary=:all:", "--upgrade"],
        false => &["--no-deps", "--require-hashes", "--only-binary=:all:", "--platform=any", "--upgrade"],
    };
    let into = ["--target=python", "-r", PYPI];
    run(house.program("python3").args(pip).args(options).args(into).current_dir(destination))
}

/// Ranges let npm fall back to much older versions without a word, so only exact versions pass.
fn check_pins(manifest: &str) -> Result<()> {
    let manifest: serde_json::Value = serde_json::from_str(manifest).context("not JSON")?;
    for group in ["dependencies", "devDependencies", "optionalDependencies"] {
        for (name, version) in manifest[group].as_object().into_iter().flatten() {
            let version = version.as_str().unwrap_or_default();
            let numbers: Vec<&str> =
                version.split(['-', '+']).next().unwrap_or_default().split('.').collect();
            let exact = numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u64>().is_ok());
            if !exact {
                bail!("{name} must be pinned to one version, not {version:?}");
            }
        }
    }
    Ok(())
}

/// Everything but what an installation in place would have made.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() == "node_modules" {
            continue;
        }
        let destination = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&destination)?;
            copy_files(&entry.path(), &destination)?;
        } else {
            fs::copy(entry.path(), &destination)
                .with_context(|| format!("cannot copy to {}", destination.display()))?;
        }
    }
    Ok(())
}

fn name_of(peer: &Path) -> &str {
    peer.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_versions_are_pins() {
        assert!(check_pins(r#"{"dependencies": {"a": "2.4.0", "b": "1.0.0-beta.1"}}"#).is_ok());
        for loose in ["^2.4.0", "~2.4.0", "2.x", "*", "latest", "2.4", ">=2.4.0", ""] {
            let manifest = format!(r#"{{"dependencies": {{"a": "{loose}"}}}}"#);
            assert!(check_pins(&manifest).is_err(), "{loose}");
        }
    }

    #[test]
    fn the_script_goes_where_its_packages_are() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(from.path().join("cases")).unwrap();
        fs::create_dir_all(from.path().join("node_modules/x")).unwrap();
        fs::write(from.path().join("cases/a.mjs"), "1").unwrap();
        copy_files(from.path(), to.path()).unwrap();
        assert!(to.path().join("cases/a.mjs").is_file());
        assert!(!to.path().join("node_modules").exists());
    }
}
