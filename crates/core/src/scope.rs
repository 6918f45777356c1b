//! The capability check: what a session may reach without its user's word. Lexical; tools check the real path again at use.

mod guarded;

use std::path::{Component, PathBuf};

use crate::ports::tool::{Access, Workspace};

pub use guarded::{Guarded, HiddenBelow};

/// What the grant says of one access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    Inside,
    /// Outside of every root: the user may grant this directory.
    Outside(PathBuf),
    /// Refused without asking, with the reason.
    Protected(String),
}

/// The strictest reach over everything a call would touch.
pub fn reach(accesses: &[Access], workspace: &Workspace, granted: &[PathBuf]) -> Reach {
    let mut outside = None;
    for access in accesses {
        match reach_of(access, workspace, granted) {
            Reach::Inside => {}
            Reach::Outside(directory) => outside = outside.or(Some(directory)),
            protected @ Reach::Protected(_) => return protected,
        }
    }
    outside.map_or(Reach::Inside, Reach::Outside)
}

fn reach_of(access: &Access, workspace: &Workspace, granted: &[PathBuf]) -> Reach {
    let (path, writes) = match access {
        Access::ReadPath(path) => (path, false),
        Access::WritePath(path) => (path, true),
        Access::Command(command) => (&command.directory, false),
        Access::Network { .. } => return Reach::Inside,
    };
    if path.components().any(|component| component == Component::ParentDir) {
        return Reach::Protected(format!("{} is not a plain path", path.display()));
    }
    let guarded = &workspace.guarded;
    let refused = match writes {
        true => guarded.protects(path, &workspace.scratch),
        false => guarded.hides(path, &workspace.scratch),
    };
    if let Some(reason) = refused {
        return Reach::Protected(reason);
    }
    let inside = workspace.roots().chain(granted).any(|root| path.starts_with(root));
    if inside { Reach::Inside } else { Reach::Outside(path.parent().unwrap_or(path).to_path_buf()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::SessionId;

    fn workspace() -> Workspace {
        Workspace {
            session_id: SessionId::new("ses_x"),
            root: "/w/proj".into(),
            additional: vec!["/lib".into()],
            scratch: "/scratch/ses_x".into(),
            guarded: Arc::default(),
        }
    }

    #[test]
    fn a_root_is_a_directory_not_a_prefix_of_a_name() {
        let reads = |path: &str| reach(&[Access::ReadPath(path.into())], &workspace(), &[]);
        assert_eq!(reads("/w/proj/a"), Reach::Inside);
        assert_eq!(reads("/lib/x"), Reach::Inside);
        assert_eq!(reads("/w/proj-evil/a"), Reach::Outside("/w/proj-evil".into()));
        assert!(matches!(reads("/w/proj/../secret"), Reach::Protected(_)));
    }

    #[test]
    fn a_grant_widens_and_protection_stays() {
        let granted = [PathBuf::from("/other")];
        let writes = |path: &str| reach(&[Access::WritePath(path.into())], &workspace(), &granted);
        assert_eq!(writes("/other/file"), Reach::Inside);
        assert!(matches!(writes("/w/proj/.git/hooks/pre-commit"), Reach::Protected(_)));
        assert!(matches!(writes("/w/proj/.GIT/config"), Reach::Protected(_)));
        assert_eq!(writes("/w/proj/.github/config"), Reach::Inside);
    }
}
