//! Makes the embedded catalogue of models anew, from the models.dev data that a crate carries. Decides nothing
//! about its content.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::house::{House, output};

/// Carries the data. It is never a dependency of the workspace: its features would change how our own JSON is
/// read.
const CARRIER: &str = "ai-model-directory-router";
const CARRIER_VERSION: &str = "=0.3.0";
const CARRIED: &str = "data/models-dev-api.json";

const CATALOGUE: &str = "crates/models/data/catalogue.json";

pub(crate) fn make(house: &House) -> Result<()> {
    let data = carried_data(house)?;
    from_file(house, &data)
}

/// From a given `api.json`.
pub(crate) fn from_file(house: &House, data: &Path) -> Result<()> {
    let source = File::open(data).with_context(|| format!("cannot read {}", data.display()))?;
    let mut trim = house.cargo();
    trim.args(["run", "--quiet", "--package", "attache-models", "--example", "trim_catalogue"]);
    let made = trim.stdin(source).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(made.status.success(), "{} was not understood", data.display());
    // Written at the end and at once: the example that makes it embeds the old one.
    let path = house.path(CATALOGUE);
    fs::write(&path, &made.stdout).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("{}: {} bytes", CATALOGUE, made.stdout.len());
    Ok(())
}

/// A package of its own asks for the carrier, so that cargo fetches and checks it.
fn carried_data(house: &House) -> Result<PathBuf> {
    let package = house.target().join("catalogue");
    fs::create_dir_all(package.join("src"))?;
    fs::write(package.join("src/lib.rs"), "//! Only asks for data.\n")?;
    fs::write(package.join("Cargo.toml"), manifest())?;
    let mut cargo: Command = house.cargo();
    cargo.current_dir(&package).args(["metadata", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&output(&mut cargo)?).context("cargo metadata is not JSON")?;
    let carrier = carrier_folder(&metadata).with_context(|| format!("cargo did not fetch {CARRIER}"))?;
    Ok(carrier.join(CARRIED))
}

fn manifest() -> String {
    format!(
        "[package]\nname = \"catalogue-data\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{CARRIER} = {{ version = \"{CARRIER_VERSION}\", default-features = false }}\n"
    )
}

fn carrier_folder(metadata: &Value) -> Option<PathBuf> {
    let packages = metadata["packages"].as_array()?;
    let carrier = packages.iter().find(|package| package["name"] == CARRIER)?;
    Path::new(carrier["manifest_path"].as_str()?).parent().map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_folder_of_the_carrier_is_found_among_others() {
        let metadata = json!({"packages": [
            {"name": "serde", "manifest_path": "/r/serde-1/Cargo.toml"},
            {"name": CARRIER, "manifest_path": "/r/carrier/Cargo.toml"},
        ]});
        assert_eq!(carrier_folder(&metadata), Some(PathBuf::from("/r/carrier")));
        assert_eq!(carrier_folder(&json!({"packages": []})), None);
    }
}
