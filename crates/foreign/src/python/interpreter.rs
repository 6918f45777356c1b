//! Finds the interpreter of an agent.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::ForeignError;

/// Where an environment has it.
const IN_ENVIRONMENT: &str = ".venv/bin/python";

/// What is looked for on the search path.
const ON_PATH: [&str; 2] = ["python3", "python"];

/// Where one is looked for, in this order.
#[derive(Clone, Copy, Debug)]
pub(super) struct InterpreterPlaces<'a> {
    /// The session's directory, if a program of it may be run.
    pub(super) workspace: Option<&'a Path>,
    /// The agent's.
    pub(super) directory: &'a Path,
    pub(super) search_path: Option<&'a OsStr>,
}

/// The configured one and no other; else that of an environment, or the one on the search path.
pub(super) fn find(
    configured: Option<&Path>,
    places: InterpreterPlaces<'_>,
) -> Result<PathBuf, ForeignError> {
    if let Some(configured) = configured {
        return find_configured(configured, places);
    }
    let environments = places.workspace.into_iter().chain([places.directory]);
    let own = environments.map(|place| place.join(IN_ENVIRONMENT)).find(|path| path.is_file());
    let found = || ON_PATH.iter().find_map(|name| on_path(places.search_path, Path::new(name)));
    own.or_else(found).ok_or_else(|| {
        let looked = match places.workspace {
            Some(_) => "a .venv in the workspace or in the agent's directory",
            None => "a .venv in the agent's directory",
        };
        ForeignError::new(format!(
            "there is no Python: neither {looked} nor python3 on the search path; set `python` of this agent"
        ))
    })
}

/// A name is looked for on the search path, a path is one.
fn find_configured(configured: &Path, places: InterpreterPlaces<'_>) -> Result<PathBuf, ForeignError> {
    let is_name = !configured.as_os_str().as_encoded_bytes().contains(&b'/');
    let (found, place) = match is_name {
        true => (on_path(places.search_path, configured), "called"),
        false => (Some(places.directory.join(configured)).filter(|path| path.is_file()), "at"),
    };
    found.ok_or_else(|| {
        let on_path = if is_name { " on the search path" } else { "" };
        ForeignError::new(format!(
            "there is no interpreter {place} {}{on_path}: `python` of this agent names it",
            configured.display()
        ))
    })
}

/// Entries that are not absolute would name another place in each directory.
fn on_path(search_path: Option<&OsStr>, name: &Path) -> Option<PathBuf> {
    let mut places = std::env::split_paths(search_path?).filter(|place| place.is_absolute());
    places.find_map(|place| Some(place.join(name)).filter(|path| path.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine(tempfile::TempDir);

    impl Machine {
        /// With these files below it, and a program on the search path.
        fn with(files: &[&str]) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            for file in ["bin/python3"].iter().chain(files) {
                let path = machine.at(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "").unwrap();
            }
            machine
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// Below the machine.
        fn found(&self, configured: Option<&str>, workspace: Option<&str>) -> Result<String, String> {
            let (workspace, directory) = (workspace.map(|name| self.at(name)), self.at("agent"));
            let search_path = self.at("bin").into_os_string();
            let places = InterpreterPlaces {
                workspace: workspace.as_deref(),
                directory: &directory,
                search_path: Some(&search_path),
            };
            let found = find(configured.map(Path::new), places).map_err(|error| error.message)?;
            Ok(found.strip_prefix(self.0.path()).unwrap().to_str().unwrap().to_owned())
        }
    }

    #[test]
    fn an_environment_comes_before_the_search_path() {
        assert_eq!(Machine::with(&[]).found(None, Some("w")).unwrap(), "bin/python3");
        let machine = Machine::with(&["agent/.venv/bin/python"]);
        assert_eq!(machine.found(None, Some("w")).unwrap(), "agent/.venv/bin/python");
        let machine = Machine::with(&["w/.venv/bin/python", "agent/.venv/bin/python"]);
        assert_eq!(machine.found(None, Some("w")).unwrap(), "w/.venv/bin/python");
    }

    #[test]
    fn the_environment_of_a_workspace_that_nobody_trusts_is_left() {
        let machine = Machine::with(&["w/.venv/bin/python"]);
        assert_eq!(machine.found(None, None).unwrap(), "bin/python3");
        assert!(machine.found(Some(".venv/bin/python"), None).is_err());
    }

    #[test]
    fn a_name_is_looked_for_on_the_search_path_only() {
        let machine = Machine::with(&["agent/python3.12", "w/python3.12"]);
        assert_eq!(machine.found(Some("python3"), Some("w")).unwrap(), "bin/python3");
        let error = machine.found(Some("python3.12"), Some("w")).unwrap_err();
        assert!(error.contains("called python3.12 on the search path"), "{error}");
    }

    #[test]
    fn a_path_that_is_not_there_is_named_and_nothing_else_is_run() {
        let machine = Machine::with(&["agent/venv/bin/python"]);
        assert_eq!(machine.found(Some("venv/bin/python"), None).unwrap(), "agent/venv/bin/python");
        for missing in ["/nope/python3", "nope/python3", "./python3"] {
            let error = machine.found(Some(missing), Some("w")).unwrap_err();
            assert!(error.contains(missing), "{error}");
        }
    }

    #[test]
    fn entries_of_the_search_path_that_are_not_absolute_are_passed_over() {
        for path in ["", ".", "bin:"] {
            assert_eq!(on_path(Some(OsStr::new(path)), Path::new("Cargo.toml")), None, "{path}");
        }
    }
}
