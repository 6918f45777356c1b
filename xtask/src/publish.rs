//! What goes to crates.io: every crate that the program is made of, complete, under one version number.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::house::{self, House, output};

/// Packs every crate and looks at what is in the packages. Compiles nothing.
pub(crate) fn check(house: &House) -> Result<()> {
    let metadata = output(house.cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let mut findings = manifests(&metadata);
    let published = published(&metadata);
    let mut pack = house.cargo();
    pack.args(["package", "--no-verify", "--allow-dirty", "--offline", "--quiet"]);
    pack.args(published.iter().flat_map(|package| ["--package", name(package)]));
    output(&mut pack)?;
    for package in &published {
        let listed = output(house.cargo().args([
            "package",
            "--list",
            "--allow-dirty",
            "--offline",
            "--package",
            name(package),
        ]))?;
        let listed: BTreeSet<&str> = listed.lines().collect();
        findings.extend(missing_files(package, &listed)?);
    }
    match findings.is_empty() {
        true => eprintln!("{} crates can be published", published.len()),
        false => bail!("{}", findings.join("\n")),
    }
    Ok(())
}

/// The same, and builds each package from nothing but what is in it, as cargo does before it uploads.
pub(crate) fn dry_run(house: &House) -> Result<()> {
    check(house)?;
    house::run(house.cargo().args(["publish", "--dry-run", "--workspace", "--allow-dirty"]))
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap_or_default()
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

fn published(metadata: &Value) -> Vec<&Value> {
    packages(metadata).filter(|package| is_published(package)).collect()
}

fn manifests(metadata: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    let of_ours = |name: &Value| packages(metadata).find(|package| package["name"] == *name);
    let Some(program) = packages(metadata).find(|package| name(package) == "attache") else {
        return vec!["there is no package `attache`".to_owned()];
    };
    for package in published(metadata) {
        let mut find = |what: String| findings.push(format!("{}: {what}", name(package)));
        for field in ["description", "license", "readme", "rust_version"] {
            if package[field].is_null() {
                find(format!("has no `{field}`"));
            }
        }
        if package["version"] != program["version"] {
            find(format!("has version {} and the program {}", package["version"], program["version"]));
        }
        for needed in package["dependencies"].as_array().into_iter().flatten() {
            let Some(other) = of_ours(&needed["name"]) else { continue };
            let (only_for_tests, wanted) =
                (needed["kind"] == "dev", needed["req"].as_str().unwrap_or_default());
            if only_for_tests && wanted != "*" {
                find(format!(
                    "needs {} for tests: name its path alone, or neither can be the first",
                    name(other)
                ));
            } else if !only_for_tests && !is_published(other) {
                find(format!("needs {}, which is not published", name(other)));
            } else if !only_for_tests
                && Some(wanted) != program["version"].as_str().map(|own| format!("^{own}")).as_deref()
            {
                find(format!("needs {} {wanted}, not the version of the program", name(other)));
            }
        }
    }
    findings
}

/// Files that the code takes in when it is compiled must be in the package.
fn missing_files(package: &Value, listed: &BTreeSet<&str>) -> Result<Vec<String>> {
    let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
    let root = manifest.parent().unwrap_or(Path::new("."));
    let mut findings = Vec::new();
    for source in listed.iter().filter(|path| path.starts_with("src/") && path.ends_with(".rs")) {
        let is_for_tests = source.split('/').any(|part| part == "tests" || part == "documents")
            || source.ends_with("tests.rs");
        if is_for_tests {
            continue;
        }
        let text = fs::read_to_string(root.join(source)).with_context(|| format!("cannot read {source}"))?;
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for included in included(code) {
            let path = beside(source, included);
            if !path.as_deref().is_some_and(|path| listed.contains(path)) {
                findings.push(format!(
                    "{}: {source} takes in {included}, which is not in the package",
                    name(package)
                ));
            }
        }
    }
    Ok(findings)
}

fn included(code: &str) -> impl Iterator<Item = &str> {
    let macros = ["include_str!(\"", "include_bytes!(\"", "include!(\""];
    macros
        .into_iter()
        .flat_map(move |start| code.split(start).skip(1).filter_map(|rest| rest.split('"').next()))
}

fn beside(source: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = source.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, version: &str, dependencies: Value) -> Value {
        json!({
            "name": name, "version": version, "publish": null, "dependencies": dependencies,
            "description": "x", "license": "MIT", "readme": "README.md", "rust_version": "1.95",
        })
    }

    #[test]
    fn what_would_be_refused_or_come_apart_is_found() {
        let needs = |name: &str, req: &str, kind: Value| json!({"name": name, "req": req, "kind": kind});
        let good = json!([needs("core", "^0.1.0", Value::Null), needs("kit", "*", json!("dev"))]);
        let kit = json!({"name": "kit", "version": "0.1.0", "publish": [], "dependencies": []});
        let all = |program: Value, core: Value| json!({"packages": [program, core, kit]});
        let core = package("core", "0.1.0", json!([]));
        assert_eq!(manifests(&all(package("attache", "0.1.0", good), core.clone())), Vec::<String>::new());
        for (dependency, expected) in [
            (needs("core", "^0.2.0", Value::Null), "not the version of the program"),
            (needs("core", "*", Value::Null), "not the version of the program"),
            (needs("kit", "^0.1.0", Value::Null), "which is not published"),
            (needs("core", "^0.1.0", json!("dev")), "name its path alone"),
        ] {
            let found = manifests(&all(package("attache", "0.1.0", json!([dependency])), core.clone()));
            assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
        }
        let other =
            manifests(&all(package("attache", "0.1.0", json!([])), package("core", "0.2.0", json!([]))));
        assert_eq!(other.len(), 1, "{other:?}");
        let mut bare = package("core", "0.1.0", json!([]));
        bare["description"] = Value::Null;
        assert_eq!(manifests(&all(package("attache", "0.1.0", json!([])), bare)).len(), 1);
    }

    #[test]
    fn a_file_outside_of_the_package_is_found() {
        let root = tempfile::tempdir().unwrap();
        let source = "const A: &str = include_str!(\"a.txt\");\nconst B: &str = include_str!(\"../../../docs/b.md\");\n\
                      #[cfg(test)]\nmod tests {\n    const C: &str = include_str!(\"../../c\");\n}\n";
        fs::create_dir(root.path().join("src")).unwrap();
        fs::write(root.path().join("src/lib.rs"), source).unwrap();
        let package = json!({"name": "x", "manifest_path": root.path().join("Cargo.toml")});
        let found = missing_files(&package, &BTreeSet::from(["src/lib.rs", "src/a.txt"])).unwrap();
        assert_eq!(found, ["x: src/lib.rs takes in ../../../docs/b.md, which is not in the package"]);
    }
}
