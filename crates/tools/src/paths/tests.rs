//! How paths are read and shown.

use std::sync::Arc;

use attache_core::ids::SessionId;
use attache_core::scope::Guarded;
use proptest::prelude::*;

use super::*;

fn workspace(root: &str, home: Option<&str>) -> Workspace {
    Workspace {
        session_id: SessionId::new("ses_1"),
        root: root.into(),
        additional: vec![],
        scratch: "/scratch".into(),
        guarded: Arc::new(Guarded::new(home.map(PathBuf::from), vec![])),
        skills: Default::default(),
    }
}

fn read(path: &str) -> PathBuf {
    absolute(&workspace("/p", Some("/home/me")), path).unwrap()
}

#[test]
fn relative_paths_stand_on_the_root_and_are_normal() {
    assert_eq!(read("a/./b/../c"), Path::new("/p/a/c"));
    assert_eq!(read("/x//y"), Path::new("/x/y"));
    assert_eq!(read("../../../x"), Path::new("/x"));
    assert!(absolute(&workspace("/p", None), &"x".repeat(5_000)).is_err());
    for wrong in ["", "a\0b", "a%00b", "file:///a%00b", "file://other/x", "file://C:/x"] {
        assert!(absolute(&workspace("/p", None), wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_home_and_addresses_are_understood() {
    for (written, meant) in [
        ("~", "/home/me"),
        ("~/x", "/home/me/x"),
        ("~//x", "/home/me/x"),
        ("~me/x", "/p/~me/x"),
        ("a/~", "/p/a/~"),
        ("file:///x/y", "/x/y"),
        ("FILE://localhost/x", "/x"),
        ("file:///x%20y", "/x y"),
        ("file:///x.rs#L10", "/x.rs"),
        ("file:///x.rs?a=b", "/x.rs"),
        ("file:/x", "/p/file:/x"),
    ] {
        assert_eq!(read(written), Path::new(meant), "{written}");
    }
    assert!(absolute(&workspace("/p", None), "~/x").unwrap_err().contains("home"));
}

#[test]
fn the_variables_of_every_command_are_understood_and_no_others() {
    for (written, meant) in [
        ("$TMPDIR", "/scratch"),
        ("$TMPDIR/x/y", "/scratch/x/y"),
        ("${TMPDIR}/x", "/scratch/x"),
        ("${TMPDIR}//x", "/scratch/x"),
        ("$HOME/x", "/home/me/x"),
        ("${HOME}", "/home/me"),
        ("$PWD/src/a.rs", "/p/src/a.rs"),
        ("./$TMPDIR/x", "/p/$TMPDIR/x"),
        ("src/$id/x.tsx", "/p/src/$id/x.tsx"),
        ("$id.tsx", "/p/$id.tsx"),
        ("$id", "/p/$id"),
        ("$TMPDIRS", "/p/$TMPDIRS"),
        ("$1/x", "/p/$1/x"),
        ("$/x", "/p/$/x"),
        ("${TMPDIR/x", "/p/${TMPDIR/x"),
    ] {
        assert_eq!(read(written), Path::new(meant), "{written}");
    }
    for unknown in ["$OUT/x", "${OUT}/x", "$dir/x", "$TMPDIRS/x"] {
        let problem = absolute(&workspace("/p", Some("/home/me")), unknown).unwrap_err();
        assert!(problem.contains("$TMPDIR, $HOME and $PWD"), "{unknown}: {problem}");
    }
    assert!(absolute(&workspace("/p", None), "$HOME/x").unwrap_err().contains("home"));
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("$OUT")).unwrap();
    let space = workspace(place.path().to_str().unwrap(), None);
    assert_eq!(absolute(&space, "$OUT/x").unwrap(), place.path().join("$OUT/x"));
}

#[test]
fn the_name_as_it_is_written_wins_where_it_exists() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().to_str().unwrap();
    let space = workspace(root, Some("/home/me"));
    let read = |path: &str| absolute(&space, path).unwrap();
    let below = |name: &str| place.path().join(name);
    // Neither exists: the name counts as written, except in an address.
    assert_eq!(read("a%20b"), below("a%20b"));
    assert_eq!(read(&format!("file://{root}/a%20b")), below("a b"));
    std::fs::write(below("a b"), "").unwrap();
    assert_eq!(read("a%20b"), below("a b"));
    std::fs::write(below("a%20b"), "").unwrap();
    assert_eq!(read("a%20b"), below("a%20b"));
    assert_eq!(read(&format!("file://{root}/a%20b")), below("a b"));
    assert_eq!(read(&format!("file://{root}/a%2520b")), below("a%20b"));
    // A new file in an existing directory.
    std::fs::create_dir(below("my dir")).unwrap();
    assert_eq!(read("my%20dir/new%20file"), below("my dir/new file"));
    assert_eq!(read("100%/x%zz"), below("100%/x%zz"));
    std::fs::create_dir(below("~")).unwrap();
    assert_eq!(read("~/x"), below("~/x"));
    std::fs::write(below("x#1"), "").unwrap();
    assert_eq!(read(&format!("file://{root}/x#1")), below("x#1"));
}

#[test]
fn titles_are_relative_and_quoted() {
    let space = workspace("/p", None);
    for (path, title) in [
        ("/p/src/__init__.py", "`src/__init__.py`"),
        ("/p", "`.`"),
        ("/px/a", "`/px/a`"),
        ("/p/a`b", "``a`b``"),
        ("/p/`", "`` ` ``"),
        ("/p/a\u{202e}b\nc", "`a\\u{202e}b⏎c`"),
    ] {
        assert_eq!(titled(Path::new(path), &space), title);
    }
}

#[test]
fn the_most_similar_names_come_first() {
    let names = ["main.rs", "zzz", "domain.rs"].map(str::to_owned);
    assert_eq!(nearest_names("mian.rs", names.into_iter()), "; nearest names there: main.rs, domain.rs");
    let names = ["Cargo.toml", "src", "tests"].map(str::to_owned);
    assert_eq!(most_similar("scr", names.into_iter()).next().as_deref(), Some("src"));
    assert_eq!(nearest_names("q", std::iter::empty()), "");
}

proptest! {
    /// Any text gives an absolute, normal path or an error, never a panic.
    #[test]
    fn every_path_is_absolute_and_normal(written in any::<String>()) {
        if let Ok(path) = absolute(&workspace("/p", Some("/home/me")), &written) {
            prop_assert!(path.is_absolute());
            prop_assert_eq!(normal(&path), path);
        }
    }

    #[test]
    fn what_is_encoded_is_decoded(name in "[a-z %#é]{1,12}") {
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        prop_assert_eq!(read(&format!("file:///nowhere/{encoded}")), Path::new("/nowhere").join(&name));
    }
}
