//! Reads that name no secret and may come across one: asked about where there is one, and only there.

use std::path::Path;

use attache_shell::{Context, Nature, Touch, read};

use super::{FakeDisk, context};

fn only_reads(command: &str, context: &Context<'_>) -> bool {
    read(command, context).touches.iter().all(|touch| match touch {
        Touch::Command(command) => command.nature == Nature::ReadOnly,
        Touch::Read(_) => true,
        Touch::Write(_) | Touch::Host(_) => false,
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
    let with_keys = Context { disk: &FakeDisk { has_key: |_| true }, ..context() };
    for command in SEARCHES {
        assert!(only_reads(command, &context()), "{command} without keys");
        assert!(!only_reads(command, &with_keys), "{command} with keys");
    }
    for command in ["grep x file", "cat a.txt", "cat *.txt", "find . -name id_rsa", "ls -R"] {
        assert!(only_reads(command, &with_keys), "{command} reads what it names");
    }
}

#[test]
fn the_directory_that_is_searched_is_the_one_that_is_looked_at() {
    let disk = FakeDisk { has_key: |directory| directory == Path::new("/w/src/deploy") };
    let context = Context { disk: &disk, ..context() };
    assert!(!only_reads("cd src && grep -r x deploy", &context));
    assert!(!only_reads("cat src/deploy/*", &context));
    assert!(only_reads("grep -r x src", &context));
}

#[test]
fn a_home_is_not_searched_without_a_question() {
    let home = Context { directory: Path::new("/home/u"), ..context() };
    for command in ["grep -r x .", "rg x", "cat .s*/config", "cat .n*", "cat .*/*"] {
        assert!(!only_reads(command, &home), "{command}");
    }
    for command in ["grep -r x work", "cat *", "cat .x*/x", "cat work/.s*/config"] {
        assert!(only_reads(command, &home), "{command}");
    }
}
