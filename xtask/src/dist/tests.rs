//! Packages around a stand-in for the program: what is in them, and that others read them.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::json;

use super::*;

/// Answers what `dist` asks, and tells what else it was given.
const STAND_IN: &str = r#"#!/bin/sh
case "$1" in
--version) echo "attache VERSION (0123456789ab, x86_64-unknown-linux-gnu)" ;;
manual) mkdir -p "$2" && echo page > "$2/attache.1" ;;
completions) echo "completions of $2" ;;
sleep) exec sleep 60 ;;
*) echo "given: $*"; cat; exit 7 ;;
esac
"#;

struct Packed {
    place: tempfile::TempDir,
    release: Release,
}

impl Packed {
    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("packages").join(name)
    }

    fn archive(&self) -> PathBuf {
        self.path(&format!("{}.tar.gz", self.release.folder()))
    }
}

fn packed() -> Packed {
    let house = House::here();
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("attache");
    let version = env!("CARGO_PKG_VERSION");
    fs::write(&program, STAND_IN.replace("VERSION", version)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let release = Release::of(&house, program).unwrap();
    pack(&house, &release, &place.path().join("packages")).unwrap();
    Packed { place, release }
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_version_is_that_of_the_workspace_and_the_target_that_of_the_program() {
    assert_eq!(
        target_of("attache 1.2.3 (0123456789ab, x86_64-unknown-linux-gnu)\n", "1.2.3").unwrap(),
        "x86_64-unknown-linux-gnu"
    );
    assert_eq!(target_of("attache 1.2.3 (aarch64-apple-darwin)", "1.2.3").unwrap(), "aarch64-apple-darwin");
    for other in ["attache 1.2.30 (x)", "attache 1.2.2 (x)", "attache 1.2.3", "goose 1.2.3 (x)"] {
        assert_eq!(target_of(other, "1.2.3"), None, "{other}");
    }
}

#[test]
fn tar_dpkg_and_sha256sum_read_what_was_made() {
    let packed = packed();
    let (folder, version) = (packed.release.folder(), &packed.release.version);
    let listed = said(Command::new("tar").arg("-tvzf").arg(packed.archive()));
    for name in [
        "attache",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "THIRD-PARTY.md",
        "LICENCES.txt",
        "man/attache.1",
        "completions/_attache",
        "completions/attache.bash",
        "sbom.cdx.json",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(&format!(" {folder}/{name}"))), "{name}: {listed}");
    }
    let program = listed.lines().find(|line| line.ends_with(&format!("{folder}/attache"))).unwrap();
    assert!(program.starts_with("-rwxr-xr-x root/root"), "{program}");

    let sums = Command::new("sha256sum")
        .arg("--check")
        .arg("SHA256SUMS")
        .current_dir(packed.path(""))
        .output()
        .unwrap();
    assert!(sums.status.success(), "{sums:?}");

    // Debian's own reader, where this is Debian; the package needs nobody's writer.
    let package = packed.path(&format!("attache_{version}_amd64.deb"));
    assert!(fs::read(&package).unwrap().starts_with(b"!<arch>\ndebian-binary "));
    if house::is_installed("dpkg-deb") {
        let about = said(Command::new("dpkg-deb").arg("--info").arg(&package));
        assert!(
            about.contains(&format!("Version: {version}")) && about.contains("Depends: libc6"),
            "{about}"
        );
        let inside = said(Command::new("dpkg-deb").arg("--contents").arg(&package));
        for place in [
            "./usr/bin/attache",
            "./usr/lib/systemd/user/attache.service",
            "./usr/share/man/man1/attache.1",
            "./usr/share/zsh/vendor-completions/_attache",
        ] {
            assert!(inside.lines().any(|line| line.ends_with(place)), "{place}: {inside}");
        }
    }
}

#[test]
fn the_same_commit_makes_the_same_bytes() {
    let (one, other) = (packed(), packed());
    let sums = |packed: &Packed| fs::read_to_string(packed.path("SHA256SUMS")).unwrap();
    assert_eq!(sums(&one), sums(&other));
}

#[test]
fn the_bill_of_materials_names_every_crate_of_the_list() {
    let packed = packed();
    let bill: Value = serde_json::from_slice(
        &fs::read(packed.path(&format!("{}/sbom.cdx.json", packed.release.folder()))).unwrap(),
    )
    .unwrap();
    assert_eq!((bill["bomFormat"].as_str(), bill["specVersion"].as_str()), (Some("CycloneDX"), Some("1.5")));
    let components = bill["components"].as_array().unwrap();
    let list = fs::read_to_string(House::here().path("THIRD-PARTY.md")).unwrap();
    for component in components {
        let row = format!(
            "| {} | {} |",
            component["name"].as_str().unwrap(),
            component["version"].as_str().unwrap()
        );
        assert!(list.contains(&row), "{row}");
    }
    for known in ["tokio", "serde", "rusqlite", "landlock"] {
        assert!(components.iter().any(|component| component["name"] == known), "{known}");
    }
}

#[test]
fn the_registry_takes_the_entry() {
    let schema: Value = serde_json::from_str(include_str!("../../schema/acp-registry-agent.json")).unwrap();
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let mut release = packed().release;
    for repository in [None, Some("https://forge.example/attache/attache".to_owned())] {
        release.repository = repository;
        let entry = registry::entry(&release, "attache-x.tar.gz", &"0".repeat(64));
        let problems: Vec<String> = schema.iter_errors(&entry).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{problems:?}: {entry:#}");
        assert_eq!(entry["distribution"]["binary"].is_object(), release.repository.is_some());
    }
    for broken in [
        json!({}),
        json!({"id": "Attache", "name": "x", "version": "1.0.0", "description": "x", "distribution": {"npx": {"package": "x"}}}),
    ] {
        assert!(!schema.is_valid(&broken), "{broken}");
    }
}

/// `node_modules` as npm lays it out.
fn installed(packed: &Packed) -> PathBuf {
    let modules = packed.place.path().join("node_modules");
    let version = &packed.release.version;
    for (folder, package) in [("attache", "attache-npm"), ("attache-linux-x64", "attache-linux-x64")] {
        let place = modules.join(folder);
        fs::create_dir_all(&place).unwrap();
        let archive = packed.path(&format!("{package}-{version}.tgz"));
        said(Command::new("tar").arg("-xzf").arg(archive).arg("--strip-components=1").arg("-C").arg(place));
    }
    modules
}

fn launched(modules: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.arg(modules.join("attache/bin/attache.js")).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ended(mut command: Command, input: &str) -> Output {
    use std::io::Write;
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn the_npm_package_hands_everything_on() {
    let packed = packed();
    let modules = installed(&packed);
    let manifest: Value =
        serde_json::from_slice(&fs::read(modules.join("attache/package.json")).unwrap()).unwrap();
    assert_eq!(manifest["version"], packed.release.version);
    assert_eq!(manifest["optionalDependencies"]["attache-linux-x64"], packed.release.version);
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return;
    }
    let output = ended(launched(&modules, &["acp", "a b"]), "said\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "given: acp a b\nsaid\n");
    assert_eq!(output.status.code(), Some(7));

    fs::remove_dir_all(modules.join("attache-linux-x64")).unwrap();
    let output = ended(launched(&modules, &[]), "");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("attache-linux-x64 is not installed"), "{told}");
}

#[test]
fn a_signal_to_the_npm_package_ends_the_program() {
    use std::os::unix::process::ExitStatusExt;
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return;
    }
    let packed = packed();
    let modules = installed(&packed);
    let mut child = launched(&modules, &["sleep"]).spawn().unwrap();
    let node = child.id().to_string();
    // The program is there once it is a child of the launcher.
    let children = || fs::read_to_string(format!("/proc/{node}/task/{node}/children")).unwrap_or_default();
    let started = std::time::Instant::now();
    while children().is_empty() {
        assert!(started.elapsed().as_secs() < 20, "the program was not started");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let program = children().trim().to_owned();
    said(Command::new("kill").args(["-TERM", &node]));
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(15), "{status:?}");
    assert!(!Path::new(&format!("/proc/{program}")).exists(), "the program is left behind");
}
