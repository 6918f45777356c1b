//! Paths as text.

use std::path::{Component, Path, PathBuf};

/// Without `.` and `..`, as text: links are not looked at.
pub fn normal(path: &Path) -> PathBuf {
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
