//! Finds the interpreter of an agent.

use std::path::{Path, PathBuf};

use crate::ForeignError;

/// Where an environment has it.
const IN_ENVIRONMENT: &str = ".venv/bin/python";

/// What is looked for on the search path.
const ON_PATH: [&str; 2] = ["python3", "python"];

/// The configured one, that of the workspace or of the agent's directory, or the one on the search path.
pub(super) fn find(
    configured: Option<&Path>,
    places: &[&Path],
    search_path: Option<&std::ffi::OsStr>,
) -> Result<PathBuf, ForeignError> {
    if let Some(configured) = configured {
        let found = places.iter().map(|place| place.join(configured)).find(|path| path.is_file());
        // The configuration makes every path one below its own directory, the name of a program too.
        let by_name = || on_path(search_path, Path::new(configured.file_name()?));
        return found.or_else(by_name).ok_or_else(|| {
            let text = format!(
                "there is no interpreter at {}: `python` of this agent names it",
                configured.display()
            );
            ForeignError::new(text)
        });
    }
    let own = places.iter().map(|place| place.join(IN_ENVIRONMENT)).find(|path| path.is_file());
    let found = || ON_PATH.iter().find_map(|name| on_path(search_path, Path::new(name)));
    own.or_else(found).ok_or_else(|| {
        let text = "there is no Python: neither a .venv in the workspace nor python3 on the search path; set `python` \
                    of this agent";
        ForeignError::new(text)
    })
}

fn on_path(search_path: Option<&std::ffi::OsStr>, name: &Path) -> Option<PathBuf> {
    std::env::split_paths(search_path?).map(|place| place.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspaces_environment_comes_before_the_search_path() {
        let (workspace, bin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(bin.path().join("python3"), "").unwrap();
        let path = bin.path().as_os_str();
        let found = || find(None, &[workspace.path()], Some(path)).unwrap();
        assert_eq!(found(), bin.path().join("python3"));
        std::fs::create_dir_all(workspace.path().join(".venv/bin")).unwrap();
        std::fs::write(workspace.path().join(IN_ENVIRONMENT), "").unwrap();
        assert_eq!(found(), workspace.path().join(IN_ENVIRONMENT));
    }

    #[test]
    fn a_configured_one_that_is_missing_is_named() {
        let workspace = tempfile::tempdir().unwrap();
        let error = find(Some(Path::new("venv/bin/python")), &[workspace.path()], None).unwrap_err();
        assert!(error.message.contains("venv/bin/python"), "{}", error.message);
    }
}
