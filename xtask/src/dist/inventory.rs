//! What the program contains: the bill of materials in CycloneDX, and the texts of all licences.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Release;

/// Names of files in which crates have their terms.
const TERMS: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// CycloneDX 1.5: every crate of others with version, licence and where it comes from.
pub(super) fn bill(release: &Release, crates: &[Value]) -> Value {
    let component = |one: &Value| {
        let (name, version) = (text(one, "name"), text(one, "version"));
        let mut component = json!({
            "type": "library",
            "bom-ref": format!("pkg:cargo/{name}@{version}"),
            "name": name,
            "version": version,
            "purl": format!("pkg:cargo/{name}@{version}"),
            "licenses": [{ "expression": text(one, "license").replace('/', " OR ") }],
        });
        if let Some(address) = one["repository"].as_str() {
            component["externalReferences"] = json!([{ "type": "vcs", "url": address }]);
        }
        component
    };
    let (version, target) = (&release.version, &release.target);
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": format!("pkg:cargo/attache@{version}"),
                "name": "attache",
                "version": version,
                "purl": format!("pkg:cargo/attache@{version}"),
                "licenses": [{ "expression": release.license }],
                "properties": [{ "name": "target", "value": target }],
            },
        },
        "components": crates.iter().map(component).collect::<Vec<_>>(),
    })
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

/// Every text once, behind the names of the crates that have it.
pub(super) fn licences(crates: &[Value]) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for one in crates {
        let name = format!("{} {}", text(one, "name"), text(one, "version"));
        let folder = Path::new(text(one, "manifest_path")).parent().unwrap_or(Path::new(""));
        let found = terms(folder).with_context(|| format!("cannot read the licences of {name}"))?;
        if found.is_empty() {
            without.push(format!("{name}: {}", text(one, "license")));
        }
        for terms in found {
            texts.entry(terms).or_default().push(name.clone());
        }
    }
    let mut page = String::from("Licences of the crates that the program contains.\n");
    if !without.is_empty() {
        page += &format!("\nThese name their licence and come without its text:\n{}\n", without.join("\n"));
    }
    let mut sorted: Vec<(String, Vec<String>)> = texts.into_iter().collect();
    sorted.sort_by(|one, other| one.1.cmp(&other.1));
    for (terms, names) in sorted {
        page += &format!("\n{}\n{}\n\n{}\n", "=".repeat(72), names.join(", "), terms.trim());
    }
    Ok(page)
}

fn terms(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && TERMS.iter().any(|start| name.starts_with(start)) {
            found.push(String::from_utf8_lossy(&fs::read(&path)?).replace("\r\n", "\n"));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_there_once_and_nobody_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let package = |name: &str, files: &[(&str, &str)]| {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            for (file, text) in files {
                fs::write(folder.join(file), text).unwrap();
            }
            json!({ "name": name, "version": "1.0.0", "license": "MIT", "manifest_path": folder.join("Cargo.toml") })
        };
        let crates = [
            package("one", &[("LICENSE-MIT", "terms\r\n"), ("main.rs", "x")]),
            package("other", &[("license.txt", "terms\n")]),
            package("bare", &[]),
        ];
        let page = licences(&crates).unwrap();
        assert_eq!(page.matches("\nterms\n").count(), 1, "{page}");
        assert!(page.contains("one 1.0.0, other 1.0.0") && page.contains("bare 1.0.0: MIT"), "{page}");
    }
}
