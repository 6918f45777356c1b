//! The Python package that is part of this program: unpacked once for each content, and put on the path of an
//! interpreter that does not have the same version installed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use attache_core::prompt::digest;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../python/attache_agents/", $name)))),*]
    };
}

/// All files of the package; a test compares them with the folder.
const FILES: [(&str, &str); 33] = files![
    "__init__.py",
    "__main__.py",
    "_version.py",
    "acp_script.py",
    "answer.py",
    "blocks.py",
    "client.py",
    "failures.py",
    "host.py",
    "langgraph_agent/__init__.py",
    "langgraph_agent/adapter.py",
    "langgraph_agent/events.py",
    "langgraph_agent/history.py",
    "langgraph_agent/interrupts.py",
    "langgraph_agent/prompt.py",
    "langgraph_agent/threads.py",
    "loading.py",
    "parts.py",
    "pipe.py",
    "progress.py",
    "protocol.py",
    "py.typed",
    "pydantic_agent/__init__.py",
    "pydantic_agent/adapter.py",
    "pydantic_agent/events.py",
    "pydantic_agent/history.py",
    "pydantic_agent/nested.py",
    "pydantic_agent/prompt.py",
    "pydantic_agent/servers.py",
    "run.py",
    "secrets.py",
    "values.py",
    "watching.py",
];

/// What the interpreter is told to run: the installed package where it has this version, else ours. The
/// directory that it was started in is no place to import from.
const BOOTSTRAP: &str = "\
import sys
sys.path[:] = [entry for entry in sys.path if entry]
try:
    from importlib.metadata import version
    installed = version('attache-agents')
except Exception:
    installed = None
if installed != sys.argv[1]:
    sys.path.insert(0, sys.argv[2])
sys.argv[1:] = []
import runpy
runpy.run_module('attache_agents', run_name='__main__')
";

/// The version that the package has.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Unpacks it below `packages`, unless it is there. Gives what goes on the path.
pub(super) fn unpack(packages: &Path) -> io::Result<PathBuf> {
    let content: String = FILES.iter().map(|(name, text)| format!("{name}\0{text}\0")).collect();
    let digest = digest(content.as_bytes());
    let place = packages.join(format!("attache_agents-{VERSION}-{}", &digest[..16]));
    if place.is_dir() {
        return Ok(place);
    }
    // Whole or not at all: another process may unpack it at the same time.
    let half = packages.join(format!(".{}-{}", &digest[..16], std::process::id()));
    for (name, text) in FILES {
        let path = half.join("attache_agents").join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    match fs::rename(&half, &place) {
        Ok(()) => Ok(place),
        Err(error) => {
            fs::remove_dir_all(&half)?;
            if place.is_dir() { Ok(place) } else { Err(error) }
        }
    }
}

/// The arguments of the interpreter.
pub(super) fn arguments(unpacked: &Path) -> Vec<std::ffi::OsString> {
    vec!["-u".into(), "-c".into(), BOOTSTRAP.into(), VERSION.into(), unpacked.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(folder: &Path, below: &str, names: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name == "__pycache__" {
                continue;
            }
            match entry.file_type().unwrap().is_dir() {
                true => found(&entry.path(), &format!("{below}{name}/"), names),
                false => names.push(format!("{below}{name}")),
            }
        }
    }

    #[test]
    fn every_file_of_the_package_is_in_this_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/attache_agents");
        let mut names = Vec::new();
        found(&folder, "", &mut names);
        names.sort();
        let mut listed: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        listed.sort_unstable();
        assert_eq!(listed, names);
    }

    #[test]
    fn the_package_has_the_version_of_this_program() {
        let (_, text) = FILES.iter().find(|(name, _)| *name == "_version.py").unwrap();
        assert!(text.contains(&format!("__version__ = \"{VERSION}\"")), "{text}");
    }

    #[test]
    fn it_is_unpacked_whole_and_once() {
        let packages = tempfile::tempdir().unwrap();
        let place = unpack(packages.path()).unwrap();
        let written = fs::read_to_string(place.join("attache_agents/langgraph_agent/prompt.py")).unwrap();
        assert!(written.contains("def content_items"));
        assert_eq!(unpack(packages.path()).unwrap(), place);
        assert_eq!(fs::read_dir(packages.path()).unwrap().count(), 1);
    }
}
