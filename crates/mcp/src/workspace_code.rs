//! Whether what a server runs is of the workspace, where an agent could change it: then it reaches no network
//! and writes nothing there, unless its entry says so. In doubt it is.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::Workspace;

use crate::program::ResolvedProgram;

/// They run what they are given: a file, a directory with one in it, or a text. By the beginning of their
/// names: `python3.12` is `python`.
const INTERPRETERS: [&str; 26] = [
    "python",
    "pypy",
    "ipython",
    "node",
    "deno",
    "bun",
    "ts-node",
    "tsx",
    "ruby",
    "jruby",
    "perl",
    "php",
    "lua",
    "Rscript",
    "julia",
    "tclsh",
    "java",
    "groovy",
    "elixir",
    "pwsh",
    "nu",
    "osascript",
    "guile",
    "racket",
    "dotnet",
    "erl",
];

/// They run what the directory that they start in says.
const RUNNERS: [&str; 29] = [
    "sh", "bash", "dash", "zsh", "fish", "ksh", "env", "make", "just", "task", "cargo", "go", "npm", "pnpm",
    "yarn", "poetry", "pdm", "hatch", "pipenv", "mise", "asdf", "direnv", "nix", "mvn", "gradle", "composer",
    "bundle", "uv", "pixi",
];

/// They run a package by its name, and look for it where they start first.
const PACKAGE_RUNNERS: [&str; 5] = ["npx", "bunx", "pnpx", "uvx", "pipx"];

/// Their options that say where a package comes from.
const SOURCES: [&[u8]; 8] =
    [b"--from", b"--spec", b"--with", b"--with-editable", b"--package", b"-p", b"--prefix", b"--directory"];

/// Blocks: looks at the disk. `path`: where programs are found.
pub(crate) fn is_of(program: &ResolvedProgram, workspace: &Workspace, path: Option<&OsString>) -> bool {
    let Some((command, arguments)) = program.words.split_first() else { return false };
    let place = SeenWorkspace {
        roots: workspace.roots().filter_map(|root| root.canonicalize().ok()).collect(),
        start: program.directory.as_ref().unwrap_or(&workspace.root),
    };
    let own = program.variables.get("PATH").map(OsString::from);
    let found = match command.as_bytes().contains(&b'/') {
        true => vec![PathBuf::from(command)],
        // Whichever of them is started: what comes first today may be gone tomorrow.
        false => own
            .as_ref()
            .or(path)
            .into_iter()
            .flat_map(std::env::split_paths)
            .map(|place| place.join(command))
            .collect(),
    };
    if found.iter().any(|file| place.holds(file)) {
        return true;
    }
    let name = Path::new(command).file_name().and_then(OsStr::to_str).unwrap_or_default();
    if RUNNERS.contains(&name) {
        return true;
    }
    let is_interpreter = INTERPRETERS.iter().any(|known| is_version_of(name, known));
    let is_package_runner = PACKAGE_RUNNERS.contains(&name);
    let package = arguments.iter().position(|word| !word.as_bytes().starts_with(b"-"));
    // An interpreter runs the first file that exists; the arguments after it are data.
    let is_there = |word: &OsString| !word.as_bytes().starts_with(b"-") && place.start.join(word).exists();
    let script = arguments.iter().position(is_there).filter(|_| is_interpreter);
    arguments.iter().enumerate().any(|(at, word)| {
        let after = arguments.get(at + 1);
        match word.as_bytes() {
            // A text, or standard input: whatever it says.
            b"-c" | b"-e" | b"-r" | b"-p" | b"-" | b"--eval" | b"--print" if is_interpreter => return true,
            b"-m" if is_interpreter => return after.is_none_or(|module| place.has_module(module)),
            _ => {}
        }
        let is_source = at > 0 && SOURCES.contains(&arguments[at - 1].as_bytes());
        let is_package = is_package_runner && (package == Some(at) || is_source);
        if is_package && place.has_package(word) {
            return true;
        }
        // `--require=FILE` names one, too.
        let value = word.as_bytes().iter().position(|byte| *byte == b'=');
        let value = value.map(|at| OsStr::from_bytes(&word.as_bytes()[at + 1..]));
        [Some(word.as_os_str()), value].into_iter().flatten().any(|named| {
            let named = Path::new(named);
            // A directory is data of most programs, and code of those that run one.
            place.holds_file(named) || ((script == Some(at) || is_package) && place.holds(named))
        })
    })
}

/// `python` with a version behind it.
fn is_version_of(name: &str, known: &str) -> bool {
    let rest = name.strip_prefix(known);
    rest.is_some_and(|rest| {
        rest.chars().all(|character| character.is_ascii_digit() || ".-w".contains(character))
    })
}

/// The workspace, seen from where the server starts.
struct SeenWorkspace<'a> {
    /// Real paths.
    roots: Vec<PathBuf>,
    start: &'a Path,
}

impl SeenWorkspace<'_> {
    fn real(&self, named: &Path) -> Option<PathBuf> {
        let joined = self.start.join(named);
        // A link in the workspace is of the workspace, wherever it leads.
        let parent = joined.parent().and_then(|parent| parent.canonicalize().ok());
        let is_within = parent.is_some_and(|parent| self.has(&parent)) && joined.symlink_metadata().is_ok();
        let real = joined.canonicalize().ok();
        if is_within { real.map(|_| joined) } else { real.filter(|real| self.has(real)) }
    }

    fn has(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    fn holds(&self, named: &Path) -> bool {
        !named.as_os_str().is_empty() && self.real(named).is_some()
    }

    fn holds_file(&self, named: &Path) -> bool {
        self.real(named).is_some_and(|real| real.is_file())
    }

    /// Python looks where it starts before it looks among what is installed.
    fn has_module(&self, module: &OsStr) -> bool {
        let first = module.to_string_lossy().split('.').next().unwrap_or_default().to_owned();
        [first.clone(), format!("{first}.py")].iter().any(|name| self.holds(Path::new(name)))
    }

    /// `NAME`, `@scope/NAME`, `NAME@1.2`: by the program of that name that the workspace has installed, and by
    /// what it says of itself.
    fn has_package(&self, package: &OsStr) -> bool {
        let package = package.to_string_lossy();
        if package.starts_with('-') {
            return false;
        }
        let name = match package.strip_prefix('@') {
            Some(scoped) => format!("@{}", scoped.split('@').next().unwrap_or_default()),
            None => package.split('@').next().unwrap_or_default().to_owned(),
        };
        let program = name.rsplit('/').next().unwrap_or_default();
        let places = self.start.ancestors().take_while(|place| self.has(place)).flat_map(|place| {
            let modules = place.join("node_modules");
            [modules.join(".bin").join(program), modules.join(&name), place.join(".venv/bin").join(program)]
        });
        places.into_iter().any(|place| place.symlink_metadata().is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    use super::*;
    use attache_core::ids::SessionId;

    #[test]
    fn what_an_agent_could_change_is_of_the_workspace() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let (root, elsewhere) = (base.join("w"), base.join("e"));
        for directory in ["w/sub", "w/tool", "w/.venv/bin", "w/node_modules/.bin", "w/pkg", "e/bin"] {
            std::fs::create_dir_all(base.join(directory)).unwrap();
        }
        for file in [
            "w/server.py",
            "w/sub/run",
            "w/.venv/bin/mysrv",
            "w/node_modules/.bin/srv",
            "e/server.py",
            "e/bin/other",
        ] {
            std::fs::write(base.join(file), "").unwrap();
        }
        symlink(root.join("server.py"), elsewhere.join("link.py")).unwrap();
        symlink(elsewhere.join("bin/other"), root.join("linked")).unwrap();
        let workspace = Workspace {
            session_id: SessionId::new("a"),
            root: root.clone(),
            additional: Vec::new(),
            scratch: base.join("s"),
            guarded: Arc::default(),
            skills: Arc::default(),
        };
        let path =
            std::env::join_paths([root.join(".venv/bin"), elsewhere.join("bin"), "/usr/bin".into()]).unwrap();
        let is_of = |words: &[&str], directory: Option<&Path>| {
            let words = words.iter().map(OsString::from).collect();
            let program = ResolvedProgram {
                words,
                directory: directory.map(Path::to_owned),
                variables: BTreeMap::new(),
            };
            is_of(&program, &workspace, Some(&path))
        };
        let outside = elsewhere.to_str().unwrap();
        for words in [
            &["python3", "./server.py"][..],
            &["python3", "server.py"],
            &["python3", "tool"],
            &["python3.12", "-W", "ignore", "."],
            &["python3", "-m", "pkg"],
            &["python3", "-c", "exec(open('server.py').read())"],
            &["./sub/run"],
            &["./linked"],
            &["mysrv"],
            &["node", "--require=sub/run"],
            &["sh", "-c", "exec python3 server.py"],
            &["bash", "-c", ". ./run.sh"],
            &["npm", "run", "server"],
            &["npx", "-y", "srv"],
            &["npx", "@scope/srv@1.2"],
            &["uvx", "--from", ".", "tool"],
            &["other", "server.py"],
            &["python3", &format!("{outside}/link.py")],
        ] {
            assert!(is_of(words, None), "{words:?}");
        }
        assert!(is_of(&["./run"], Some(&root.join("sub"))));
        for words in [
            &["npx", "-y", "@modelcontextprotocol/server-filesystem", root.to_str().unwrap()][..],
            &["uvx", "mcp-server-git", "--repository", "."],
            &["node", &format!("{outside}/server.py"), root.to_str().unwrap()],
            &["other", "."],
            &["other", "--root", "sub"],
            &["npx", "-y", "@modelcontextprotocol/server-memory"],
            &["python3", "-m", "installed_module"],
            &["python3", &format!("{outside}/server.py")],
        ] {
            assert!(!is_of(words, None), "{words:?}");
        }
        assert!(!is_of(&["python3", "server.py"], Some(&elsewhere)));
    }
}
