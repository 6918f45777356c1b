//! Reads that name no secret and may come across one: asked about where there is one, and only there.

use std::path::Path;

use attache_core::ports::tool::{Access, CommandNature};
use attache_tools::shell::{Ground, Keys, read};

use super::ground;

fn only_reads(command: &str, ground: &Ground<'_>) -> bool {
    read(command, ground).accesses.iter().all(|access| match access {
        Access::Command(command) => command.nature == CommandNature::ReadOnly,
        Access::ReadPath(_) => true,
        Access::WritePath(_) | Access::Network { .. } => false,
    })
}

const SEARCHES: [&str; 12] = [
    "grep -r . .",
    "grep -rn token",
    "grep -R x src deploy",
    "grep --recursive x .",
    "diff a b",
    "grep -d recurse x .",
    "rg x",
    "rg x deploy/*",
    "find . -type f -exec cat {} +",
    "find deploy -exec head -n 3 {} \\;",
    "cat deploy/*",
    "diff -r a deploy",
];

#[test]
fn a_search_is_asked_about_where_keys_lie() {
    let with_keys = Ground { keys: |_| Keys::Found, ..ground() };
    for command in SEARCHES {
        assert!(only_reads(command, &ground()), "{command} without keys");
        assert!(!only_reads(command, &with_keys), "{command} with keys");
    }
    for command in ["grep x file", "cat a.txt", "cat *.txt", "find . -name id_rsa", "ls -R"] {
        assert!(only_reads(command, &with_keys), "{command} reads what it names");
    }
}

#[test]
fn the_directory_that_is_searched_is_the_one_that_is_looked_at() {
    let keys =
        |directory: &Path| if directory == Path::new("/w/src/deploy") { Keys::Found } else { Keys::Unseen };
    let ground = Ground { keys, ..ground() };
    assert!(!only_reads("cd src && grep -r x deploy", &ground));
    assert!(!only_reads("cat src/deploy/*", &ground));
    assert!(only_reads("grep -r x src", &ground));
}

#[test]
fn a_home_is_not_searched_without_a_question() {
    let home = Ground { directory: Path::new("/home/u"), ..ground() };
    for command in ["grep -r x .", "rg x", "cat .s*/config", "cat .n*", "cat .*/*"] {
        assert!(!only_reads(command, &home), "{command}");
    }
    for command in ["grep -r x work", "cat *", "cat .x*/x", "cat work/.s*/config"] {
        assert!(only_reads(command, &home), "{command}");
    }
}
