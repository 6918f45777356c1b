//! The branch that is checked out, for the line of facts. Reads git's own files; starts nothing.

use std::fs;
use std::path::Path;

/// Its name, or the beginning of the commit where there is none.
pub(crate) fn of(directory: &Path) -> Option<String> {
    let git = directory.ancestors().map(|above| above.join(".git")).find(|git| git.exists())?;
    let git = match git.is_dir() {
        true => git,
        // A worktree names its directory in a file.
        false => {
            let text = fs::read_to_string(&git).ok()?;
            let named = Path::new(text.strip_prefix("gitdir:")?.trim());
            git.parent()?.join(named)
        }
    };
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    let head = head.trim();
    match head.strip_prefix("ref: ") {
        Some(name) => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        None => head.get(..7).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_from_below_in_worktrees_and_without_a_name() {
        let home = tempfile::tempdir().unwrap();
        let (git, inner) = (home.path().join("a/.git"), home.path().join("a/b/c"));
        fs::create_dir_all(&git).unwrap();
        fs::create_dir_all(&inner).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        assert_eq!(of(&inner).as_deref(), Some("feature/x"));
        fs::write(git.join("HEAD"), "0123456789abcdef\n").unwrap();
        assert_eq!(of(&inner).as_deref(), Some("0123456"));
        let tree = home.path().join("tree");
        fs::create_dir_all(&tree).unwrap();
        fs::write(tree.join(".git"), "gitdir: ../a/.git\n").unwrap();
        assert_eq!(of(&tree).as_deref(), Some("0123456"));
    }
}
