//! Programs of the project by the names of harmless ones: whatever `PATH` says, they are asked about.

use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use attache_sandbox::programs::Programs;
use attache_shell::{Context, Nature, Touch, read};
use attache_tools::DiskOfWorkspace;

use super::context;

fn program(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Whether every command of a line is known to read only, in a root with programs of its own; and what is said
/// of others.
fn footprint(line: &str, path: &str) -> Result<(), String> {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().canonicalize().unwrap();
    let root = base.join("w");
    for name in [".venv/bin/ls", ".venv/bin/python3", "ls", "sub/ls", "node_modules/.bin/cat"] {
        program(&root.join(name));
    }
    for name in ["ls", "cat", "xargs", "timeout", "bash", "wc", "python3"] {
        program(&base.join("system").join(name));
    }
    symlink(root.join(".venv/bin"), base.join("linked")).unwrap();
    std::fs::create_dir(base.join("bin")).unwrap();
    symlink(root.join("ls"), base.join("bin/ls")).unwrap();
    let path = path.replace('@', base.to_str().unwrap());
    let own: Vec<PathBuf> = vec![root.clone()];
    let programs = Programs::new(Some(OsStr::new(&path)), own.iter());
    let disk = DiskOfWorkspace::new(programs);
    let context = Context { directory: &root, disk: &disk, ..context() };
    let line = line.replace('@', base.to_str().unwrap());
    for touch in read(&line, &context).touches {
        if let Touch::Command(command) = touch
            && command.nature != Nature::ReadOnly
        {
            return Err(command.why.unwrap_or_default());
        }
    }
    Ok(())
}

#[test]
fn what_resolves_into_a_root_asks_and_says_why() {
    let venv = "@/w/.venv/bin:@/system";
    for (line, path) in [
        ("ls", venv),
        ("ls", "@/linked:@/system"),
        ("ls", "@/bin:@/system"),
        ("./ls", "@/system"),
        ("sub/ls", "@/system"),
        ("@/w/ls", "@/system"),
        ("cd sub && ./ls", "@/system"),
        ("cat", "@/w/node_modules/.bin:@/system"),
        ("echo x | cat", "@/w/node_modules/.bin:@/system"),
        ("timeout 5 ls", venv),
        ("env ls", venv),
        ("find . -exec ls {} +", venv),
        ("bash -c ls", venv),
        ("echo $(ls)", venv),
        ("python3 --version", venv),
    ] {
        let said = footprint(line, path);
        assert!(
            said.as_ref().is_err_and(|why| why.contains("a program of the workspace")),
            "{line} {said:?}"
        );
    }
}

/// A shim lies outside and runs what the project says.
#[test]
fn a_program_of_a_version_manager_asks_where_the_project_chooses() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().canonicalize().unwrap();
    let root = base.join("w");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    for name in ["jq", "rg", "python3", "node", "git"] {
        program(&base.join(".asdf/shims").join(name));
    }
    program(&base.join("system/ls"));
    let npm = base.join("system/npm");
    program(&npm);
    std::fs::write(&npm, "#!/usr/bin/env node\n").unwrap();
    let path = format!("{0}/.asdf/shims:{0}/system", base.display());
    let own: Vec<PathBuf> = vec![root.clone()];
    let disk = DiskOfWorkspace::new(Programs::new(Some(OsStr::new(&path)), own.iter()));
    let context = Context { directory: &root, disk: &disk, ..context() };
    let why = |line: &str| {
        read(line, &context).touches.into_iter().find_map(|touch| match touch {
            Touch::Command(command) if command.nature != Nature::ReadOnly => command.why,
            Touch::Command(_) | Touch::Read(_) | Touch::Write(_) | Touch::Host(_) => None,
        })
    };
    let lines =
        ["jq . a", "rg x", "python3 -V", "node --version", "npm --version", "cd sub && jq . a", "env jq . a"];
    for line in lines {
        assert_eq!(why(line), None, "{line}");
    }
    std::fs::write(root.join(".tool-versions"), "jq path:evil").unwrap();
    for line in lines {
        assert!(why(line).is_some_and(|why| why.contains(".tool-versions")), "{line}");
    }
    assert_eq!(why("ls"), None);
}

#[test]
fn what_resolves_elsewhere_passes() {
    for (line, path) in [
        ("ls", "@/system"),
        ("ls", "@/system:@/w/.venv/bin"),
        ("wc -l a", "@/w/.venv/bin:@/system"),
        ("echo x", "@/w/.venv/bin:@/system"),
        ("ls", ".:bin::@/system"),
        ("python3 --version", "@/system"),
    ] {
        assert_eq!(footprint(line, path), Ok(()), "{line}");
    }
}
