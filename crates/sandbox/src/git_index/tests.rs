//! Compares with what the real git writes, and tries arbitrary bytes.

use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::*;

fn git(place: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git").args(arguments).current_dir(place).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// An index as git writes it: many names with common beginnings, a long one, one that is only intended to be
/// added, two modules.
fn written(format: &str, version: &str) -> (tempfile::TempDir, Vec<u8>, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    git(place.path(), &["init", "-q", &format!("--object-format={format}"), "."]);
    let long = format!("deep/{}/x", vec!["d".repeat(200); 3].join("/"));
    for number in 0..40 {
        let name = place.path().join(format!("src/part{number}/file.rs"));
        std::fs::create_dir_all(name.parent().unwrap()).unwrap();
        std::fs::write(name, "x").unwrap();
    }
    let deep = place.path().join(&long);
    std::fs::create_dir_all(deep.parent().unwrap()).unwrap();
    std::fs::write(deep, "x").unwrap();
    std::fs::write(place.path().join("later"), "x").unwrap();
    git(place.path(), &["add", "src", "deep"]);
    // Such an entry has extended flags.
    git(place.path(), &["add", "--intent-to-add", "later"]);
    let id = "1".repeat(if format == "sha1" { 40 } else { 64 });
    for module in ["node_modules/x", "a"] {
        git(place.path(), &["update-index", "--add", "--cacheinfo", &format!("160000,{id},{module}")]);
    }
    git(place.path(), &["update-index", "--index-version", version]);
    let index = std::fs::read(place.path().join(".git/index")).unwrap();
    let names = git(place.path(), &["ls-files"]).lines().map(str::to_owned).collect();
    (place, index, names)
}

#[test]
fn names_and_modules_are_those_that_git_tells() {
    for format in ["sha1", "sha256"] {
        for version in ["2", "3", "4"] {
            let (_place, index, expected) = written(format, version);
            let mut names = Vec::new();
            files(&index, |name| names.push(String::from_utf8(name.to_vec()).unwrap())).unwrap();
            assert_eq!(names, expected, "{format} {version}");
            let found: Vec<Vec<u8>> = modules(&index, IndexParts::One).into_iter().collect();
            assert_eq!(found, [b"a".to_vec(), b"node_modules/x".to_vec()], "{format} {version}");
        }
    }
}

#[test]
fn an_index_in_two_files_is_not_whole() {
    let (place, _, _) = written("sha1", "2");
    git(place.path(), &["update-index", "--split-index"]);
    let index = std::fs::read(place.path().join(".git/index")).unwrap();
    assert_eq!(files(&index, |_| {}), None);
}

#[test]
fn an_index_that_leaves_directories_out_is_not_whole() {
    let place = tempfile::tempdir().unwrap();
    git(place.path(), &["init", "-q", "."]);
    for name in ["in/a", "out/b"] {
        std::fs::create_dir_all(place.path().join(name).parent().unwrap()).unwrap();
        std::fs::write(place.path().join(name), "x").unwrap();
    }
    git(place.path(), &["add", "."]);
    git(place.path(), &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x"]);
    git(place.path(), &["sparse-checkout", "init", "--cone", "--sparse-index"]);
    let index = std::fs::read(place.path().join(".git/index")).unwrap();
    assert_eq!(files(&index, |_| {}), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut index = bytes;
        files(&index, |_| {});
        modules(&index, IndexParts::One);
        if index.len() > 12 {
            index[..8].copy_from_slice(b"DIRC\0\0\0\x04");
            index.extend(MODULE.to_be_bytes());
            files(&index, |_| {});
            modules(&index, IndexParts::One);
        }
    }
}

#[test]
fn a_real_index_may_be_broken_anywhere() {
    for version in ["2", "4"] {
        let (_place, index, _) = written("sha1", version);
        for at in 0..index.len() {
            modules(&index[..at], IndexParts::Several);
            files(&index[..at], |_| {});
            let mut changed = index.clone();
            changed[at] ^= 0xff;
            modules(&changed, IndexParts::One);
            files(&changed, |_| {});
        }
    }
}
