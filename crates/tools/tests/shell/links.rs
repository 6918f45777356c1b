//! Links within the workspace that lead to what rules keep from being read, and words that the shell fills in:
//! they count as what they come to.

use std::os::unix::fs::symlink;

use attache_core::watchdog::Action;
use attache_shell::Touch;

use super::git::{Place, covered};

/// `.env` and `secret/plan.txt` under other names, and a directory elsewhere.
fn linked() -> Place {
    let place =
        Place::with(&["a.txt", "secret/plan.txt", "d/own.txt", "e/own.txt", "plain/b.txt", "keys/x.pem"]);
    place.put(".env");
    let root = &place.root;
    std::fs::create_dir(root.with_file_name("outside")).unwrap();
    symlink(".env", root.join("top.txt")).unwrap();
    symlink("../.env", root.join("d/env.txt")).unwrap();
    symlink("../keys", root.join("d/certificates")).unwrap();
    symlink("../secret", root.join("e/inner")).unwrap();
    symlink("../a.txt", root.join("plain/c.txt")).unwrap();
    symlink("../outside", root.join("out")).unwrap();
    place
}

#[test]
fn a_pattern_or_a_search_that_follows_links_shows_what_they_lead_to() {
    let place = linked();
    for command in [
        "cat to*",
        "cat t?p.txt",
        "for f in t*; do cat \"$f\"; done",
        "cat < t*",
        "cat d/*",
        "cat d/c*/x.pem",
        "grep -R x d",
        "rg -L x d",
        "find -L d -type f -exec cat {} +",
        "ls -LR d",
        "ls -l --dereference --recursive d",
        "ls -RL",
        "du -aL d",
        "tree -l d",
        "fd -L x d",
        "fd --follow x",
        "eza -T --follow-symlinks d",
        "find d -type l -exec cat {} +",
        "diff -rN d plain",
    ] {
        let footprint = place.read_in(&place.root, command, &[]);
        let shown = |path: &str| footprint.touches.contains(&Touch::Read(place.root.join(path)));
        assert!(shown(".env") || shown("keys/x.pem"), "{command}: {footprint:?}");
    }
    for command in [
        "cat plain/*",
        "grep -R x plain",
        "rg x plain",
        "cat a*",
        "ls d",
        "ls -R d",
        "ls -LR plain",
        "tree d",
        "rg x secret",
    ] {
        assert!(place.passes(command, &[]), "{command}");
    }
}

#[test]
fn a_rule_that_denies_holds_behind_links() {
    let place = linked();
    let rules = [("secret/*", Action::Deny)];
    for command in ["cat e/*/plan.txt", "grep -R x e", "rg -L x e", "cat e/i*/*"] {
        assert!(!place.passes(command, &rules), "{command}");
    }
    for command in ["cat e/own*", "rg x plain"] {
        assert!(place.passes(command, &rules), "{command}");
    }
}

#[test]
fn always_covers_no_word_that_the_shell_fills_in_with_what_asks() {
    let place = linked();
    for words in [
        ".e*",
        ".en[v]",
        "t*",
        "d/*",
        "out/*",
        "../outside/*",
        "../outside",
        "out",
        "$(echo .env)",
        "$X",
        "d",
    ] {
        let command = format!("npm test -- {words}");
        let footprint = place.read_in(&place.root, &command, &[]);
        let (prefix, reads) = covered(&footprint);
        let asked = [".env", "keys/x.pem", "out"].map(|name| place.root.join(name));
        let outside = place.root.with_file_name("outside");
        let is_named = reads.iter().any(|path| asked.iter().any(|asked| asked == path) || *path == outside);
        assert!(prefix == 0 || is_named, "{command}: {footprint:?}");
    }
    for words in ["plain/*", "a*", "plain", "'[fast]'"] {
        let command = format!("npm test -- {words}");
        let footprint = place.read_in(&place.root, &command, &[]);
        assert!(covered(&footprint).0 > 0, "{command}: {footprint:?}");
    }
}
