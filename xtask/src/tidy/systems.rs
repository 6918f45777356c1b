//! What only Linux has is used in modules of that name alone, so that other systems build the rest as it is.

use super::{Finding, SourceFile};

/// Functions, types and crates that other systems lack, or have in another form.
const ONLY_LINUX: &[&str] = &[
    "openat2",
    "ResolveFlags",
    "OFlags::PATH",
    "OFlags::TMPFILE",
    "renameat_with",
    "RenameFlags",
    "statx",
    "StatxFlags",
    "fstatfs",
    "memfd_create",
    "mknodat",
    "mkfifoat",
    "pipe_with",
    "PipeFlags",
    "eventfd",
    "epoll",
    "signalfd",
    "timerfd",
    "inotify",
    "pidfd",
    "prctl",
    "set_dumpable_behavior",
    "close_range",
    "copy_file_range",
    "fallocate",
    "landlock",
    "seccompiler",
    "mallopt",
    "libc::SYS_",
    "os::linux",
];

/// In text, since it is a name and no word of the language.
const OF_THIS_PROCESS: &str = "\"/proc/self";

pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let ours = files.iter().filter(|file| is_for_every_system(&file.path));
    ours.flat_map(|file| {
        let lines: Vec<&str> = file.text.lines().collect();
        file.code().product().filter_map(move |(number, code)| {
            let written = lines.get(number - 1).copied().unwrap_or_default();
            let named = written.contains(OF_THIS_PROCESS).then_some("/proc/self");
            let word = ONLY_LINUX.iter().copied().find(|word| code.contains(word)).or(named)?;
            let place = format!("{}:{number}", file.path);
            Some(Finding::new(place, format!("only Linux has `{word}`: it belongs into a module `linux`")))
        })
    })
    .collect()
}

/// What is built elsewhere: not what a system has of its own, and no tools of the tests.
fn is_for_every_system(path: &str) -> bool {
    let is_built = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    let is_of_one = |name: &str| matches!(name, "linux" | "linux.rs" | "portable" | "portable.rs");
    let is_of_tests = |name: &str| name == "tests.rs" || name == "tests" || name == "testkit";
    is_built && !path.split('/').any(|name| is_of_one(name) || is_of_tests(name))
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    #[test]
    fn what_only_linux_has_is_found_outside_of_its_modules() {
        let code = "//! Opens by openat2.\nfn open() {\n    fs::openat2(root);\n    read(\"/proc/self/exe\");\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn make() {\n        mknodat();\n    }\n}\n";
        let found = check(&[
            file("crates/a/src/open.rs", code),
            file("crates/a/src/platform/linux.rs", code),
            file("crates/a/src/linux/open.rs", code),
            file("crates/testkit/src/open.rs", code),
            file("crates/a/tests/open.rs", code),
        ]);
        let places: Vec<&str> = found.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["crates/a/src/open.rs:3", "crates/a/src/open.rs:4"]);
        assert!(found[0].message.contains("`openat2`"), "{found:?}");
    }

    #[test]
    fn what_every_system_has_passes() {
        let code = "//! Opens.\nfn open() {\n    fs::openat(root, OFlags::RDONLY);\n}\n";
        assert_eq!(check(&[file("crates/a/src/open.rs", code)]), []);
    }
}
