//! Names of files: absolute, normal, nearest. Pure; where they lead is found in `reach`.

use std::path::{Component, Path, PathBuf};

use attache_core::ports::tool::Workspace;

use crate::limits::NEAREST_NAMES;

/// `path` against the workspace's root, without `.` and `..`. `~` is an ordinary name.
pub(crate) fn absolute(workspace: &Workspace, path: &str) -> Result<PathBuf, String> {
    if path.is_empty() {
        return Err("field `path` must not be empty".to_owned());
    }
    if path.contains('\0') {
        return Err("field `path` must not contain a NUL character".to_owned());
    }
    Ok(normal(&workspace.root.join(path)))
}

/// Without `.` and `..`, as text: links are not looked at.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => result.push(name),
            Component::ParentDir => {
                result.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    result
}

/// Ends the sentence "does not exist": the names most like the one that was wanted.
pub(crate) fn nearest_names(wanted: &str, names: impl Iterator<Item = String>) -> String {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, String)> = names
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > 0.6)
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    let names: Vec<_> = scored.into_iter().take(NEAREST_NAMES).map(|(_, name)| name).collect();
    if names.is_empty() { String::new() } else { format!("; nearest names there: {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attache_core::ids::SessionId;

    #[test]
    fn relative_paths_stand_on_the_root_and_are_normal() {
        let workspace = Workspace {
            session_id: SessionId::new("ses_1"),
            root: "/p".into(),
            additional: vec![],
            scratch: "/scratch".into(),
            guarded: Default::default(),
        };
        assert_eq!(absolute(&workspace, "a/./b/../c").unwrap(), Path::new("/p/a/c"));
        assert_eq!(absolute(&workspace, "/x//y").unwrap(), Path::new("/x/y"));
        assert_eq!(absolute(&workspace, "../../../x").unwrap(), Path::new("/x"));
        assert_eq!(absolute(&workspace, "~/x").unwrap(), Path::new("/p/~/x"));
        assert!(absolute(&workspace, "").is_err());
        assert!(absolute(&workspace, "a\0b").is_err());
    }

    #[test]
    fn the_most_similar_names_come_first() {
        let names = ["main.rs", "zzz", "domain.rs"].map(str::to_owned);
        assert_eq!(nearest_names("mian.rs", names.into_iter()), "; nearest names there: main.rs, domain.rs");
        assert_eq!(nearest_names("q", std::iter::empty()), "");
    }
}
