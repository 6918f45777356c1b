//! What the program is made of: licences, versions that occur twice, and the list of both that goes into the
//! archive. Reads what cargo knows from the lock file; needs no network. Advisories need one: `cargo deny
//! check` reads `deny.toml`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::house::{self, House, is_installed, output};

/// The list that `cargo xtask licences` writes.
const LIST: &str = "THIRD-PARTY.md";

/// What may be shipped without further duties than to name it.
const ALLOWED: [&str; 12] = [
    "MIT",
    "Apache-2.0",
    "ISC",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "Zlib",
    "Unlicense",
    "Unicode-3.0",
    "CDLA-Permissive-2.0",
    // Of files that are used unchanged.
    "MPL-2.0",
    "Apache-2.0 WITH LLVM-exception",
];

/// Crates that are there in two versions because their users have not met yet.
const TWICE: [&str; 9] = [
    "bitflags",
    "core-foundation",
    "getrandom",
    "hashbrown",
    "indexmap",
    "miniz_oxide",
    "schemars",
    "syn",
    "windows-sys",
];

/// A crate of others that is part of the program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Foreign {
    name: String,
    version: String,
    licence: String,
    source: String,
}

pub(crate) fn check(house: &House) -> Result<()> {
    let crates = shipped(house)?;
    let mut findings = findings(&crates);
    let stored = fs::read_to_string(house.path(LIST)).unwrap_or_default();
    if stored != list(&crates) {
        findings.push(format!("{LIST} is not what the program is made of: run `cargo xtask licences`"));
    }
    match findings.is_empty() {
        true => eprintln!("{} crates of others, all under licences that are allowed", crates.len()),
        false => bail!("{}", findings.join("\n")),
    }
    if is_installed("cargo-deny") {
        house::run(house.cargo().args(["deny", "--offline", "check", "licenses", "bans", "sources"]))?;
    }
    Ok(())
}

pub(crate) fn write(house: &House) -> Result<()> {
    fs::write(house.path(LIST), list(&shipped(house)?)).with_context(|| format!("cannot write {LIST}"))
}

fn findings(crates: &BTreeSet<Foreign>) -> Vec<String> {
    let forbidden = crates.iter().filter(|one| !is_allowed(&one.licence));
    let mut findings: Vec<String> = forbidden
        .map(|one| format!("{} {}: the licence `{}` is not allowed", one.name, one.version, one.licence))
        .collect();
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    for one in crates {
        *versions.entry(&one.name).or_default() += 1;
    }
    let twice: Vec<&str> = versions.iter().filter(|(_, count)| **count > 1).map(|(name, _)| *name).collect();
    let unknown = twice.iter().filter(|name| !TWICE.contains(name));
    findings.extend(unknown.map(|name| format!("{name} is there in several versions: see `cargo tree -d`")));
    let gone = TWICE.iter().filter(|name| !twice.contains(name));
    findings.extend(gone.map(|name| format!("{name} is there once only: take it off the list in xtask")));
    findings
}

/// Any side of an `OR` will do, of an `AND` both have to.
fn is_allowed(licence: &str) -> bool {
    let plain = licence.replace(['(', ')'], " ").replace('/', " OR ");
    let is_one = |name: &str| ALLOWED.contains(&name.trim());
    plain.split(" AND ").all(|either| either.split(" OR ").any(is_one))
}

fn list(crates: &BTreeSet<Foreign>) -> String {
    let mut text = String::from(
        "# Third-party crates\n\nThe program contains these crates, each under the licence that it names. Made by `cargo xtask licences`.\n\n\
         | crate | version | licence | source |\n|---|---|---|---|\n",
    );
    for Foreign { name, version, licence, source } in crates {
        text += &format!("| {name} | {version} | {licence} | {source} |\n");
    }
    text
}

/// What `attache` is linked with on any system; tools of the build and of tests are not.
fn shipped(house: &House) -> Result<BTreeSet<Foreign>> {
    let text = output(house.cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    linked(&serde_json::from_str(&text)?).context("cargo metadata has another form than expected")
}

/// The same on one target, as cargo describes them.
pub(crate) fn shipped_packages(house: &House, target: &str) -> Result<Vec<Value>> {
    let words = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let text = output(house.cargo().args(words))?;
    let metadata = serde_json::from_str(&text)?;
    let packages = linked_packages(&metadata).context("cargo metadata has another form than expected")?;
    Ok(packages.into_iter().cloned().collect())
}

fn linked(metadata: &Value) -> Option<BTreeSet<Foreign>> {
    Some(linked_packages(metadata)?.into_iter().map(foreign).collect())
}

/// In the order of their names.
fn linked_packages(metadata: &Value) -> Option<Vec<&Value>> {
    let nodes = metadata["resolve"]["nodes"].as_array()?;
    let nodes: HashMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let packages = metadata["packages"].as_array()?;
    let program = packages.iter().find(|package| package["name"] == "attache")?;
    let (mut seen, mut open) = (HashSet::new(), vec![program["id"].as_str()?]);
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            let needed = nodes.get(id)?["deps"].as_array()?.iter().filter(|needed| is_linked(needed));
            open.extend(needed.filter_map(|needed| needed["pkg"].as_str()));
        }
    }
    let is_foreign = |package: &&Value| !package["source"].is_null();
    let of = packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| seen.contains(id)));
    let mut linked: Vec<&Value> = of.filter(is_foreign).collect();
    linked.sort_by_key(|package| (package["name"].as_str(), package["version"].as_str()));
    Some(linked)
}

fn is_linked(needed: &Value) -> bool {
    needed["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

fn foreign(package: &Value) -> Foreign {
    let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
    Foreign {
        name: text("name"),
        version: text("version"),
        licence: text("license"),
        source: text("repository"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(name: &str, version: &str, licence: &str) -> Foreign {
        Foreign { name: name.into(), version: version.into(), licence: licence.into(), source: String::new() }
    }

    #[test]
    fn licences_are_read_with_their_choices() {
        for licence in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 AND ISC",
        ] {
            assert!(is_allowed(licence), "{licence}");
        }
        for licence in ["", "GPL-3.0", "MIT AND GPL-3.0", "LGPL-2.1-or-later", "MIT-0x"] {
            assert!(!is_allowed(licence), "{licence}");
        }
    }

    #[test]
    fn a_licence_and_a_second_version_are_found() {
        let crates = [one("a", "1", "GPL-3.0"), one("b", "1", "MIT"), one("b", "2", "MIT")];
        let found = findings(&crates.into_iter().collect());
        assert!(found[0].starts_with("a 1: the licence `GPL-3.0`"), "{found:?}");
        assert!(found[1].starts_with("b is there in several"), "{found:?}");
        assert_eq!(found.len(), 2 + TWICE.len());
    }

    #[test]
    fn what_only_builds_or_tests_need_is_not_shipped() {
        let package = |name: &str| json!({ "id": name, "name": name, "version": "1", "license": "MIT", "source": "registry" });
        let needs = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [
                { "id": "attache", "name": "attache", "version": "1", "source": null },
                package("linked"), package("deeper"), package("built"), package("tested"),
            ],
            "resolve": { "nodes": [
                { "id": "attache", "deps": [needs("linked", Value::Null), needs("built", json!("build")), needs("tested", json!("dev"))] },
                { "id": "linked", "deps": [needs("deeper", Value::Null)] },
                { "id": "deeper", "deps": [] }, { "id": "built", "deps": [] }, { "id": "tested", "deps": [] },
            ] },
        });
        let names: Vec<String> = linked(&metadata).unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["deeper", "linked"]);
    }
}
