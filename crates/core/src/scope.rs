//! The capability check: what a session may reach without its user's word. Lexical; tools check the real path again at use.

mod guarded;

use std::path::{Component, Path, PathBuf};

use crate::legible::legible_path;
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

/// The hosts of the network lie in no directory: rules decide about them.
pub fn reach(access: &Access, workspace: &Workspace, granted: &[PathBuf]) -> Reach {
    let guarded = &workspace.guarded;
    let (path, refused) = match access {
        Access::ReadPath(path) => (path, guarded.hides(path, &workspace.scratch)),
        Access::WritePath(path) => (path, guarded.protects(path, &workspace.scratch)),
        Access::Command(command) => {
            (&command.directory, guarded.hides(&command.directory, &workspace.scratch))
        }
        Access::Network { .. } => return Reach::Inside,
    };
    if path.components().any(|component| component == Component::ParentDir) {
        return Reach::Protected(format!("{} is not a plain path", legible_path(path)));
    }
    if let Some(reason) = refused {
        return Reach::Protected(reason);
    }
    if workspace.roots().chain(granted).any(|root| path.starts_with(root)) {
        return Reach::Inside;
    }
    Reach::Outside(match access {
        Access::Command(_) => path.clone(),
        Access::ReadPath(_) | Access::WritePath(_) | Access::Network { .. } => directory_of(path),
    })
}

/// What is granted for a file. Not the whole machine for what lies at its top: that is most likely a directory itself.
fn directory_of(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| parent.parent().is_some());
    parent.unwrap_or(path).to_path_buf()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::SessionId;
    use crate::ports::tool::{CommandAccess, CommandNature};

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
        let reads = |path: &str| reach(&Access::ReadPath(path.into()), &workspace(), &[]);
        assert_eq!(reads("/w/proj/a"), Reach::Inside);
        assert_eq!(reads("/lib/x"), Reach::Inside);
        assert_eq!(reads("/w/proj-evil/a"), Reach::Outside("/w/proj-evil".into()));
        assert!(matches!(reads("/w/proj/../secret"), Reach::Protected(_)));
    }

    #[test]
    fn nothing_makes_the_whole_machine_the_directory_of_a_file() {
        let reads = |path: &str| reach(&Access::ReadPath(path.into()), &workspace(), &[]);
        assert_eq!(reads("/data"), Reach::Outside("/data".into()));
        assert_eq!(reads("/data/x"), Reach::Outside("/data".into()));
    }

    #[test]
    fn a_command_is_where_it_runs() {
        let runs = |directory: &str| {
            let command = CommandAccess {
                words: vec!["make".into()],
                directory: directory.into(),
                nature: CommandNature::Effects,
                prefix: 0,
            };
            reach(&Access::Command(command), &workspace(), &[])
        };
        assert_eq!(runs("/w/proj/sub"), Reach::Inside);
        assert_eq!(runs("/other/place"), Reach::Outside("/other/place".into()));
    }

    #[test]
    fn a_grant_widens_and_protection_stays() {
        let granted = [PathBuf::from("/other")];
        let writes = |path: &str| reach(&Access::WritePath(path.into()), &workspace(), &granted);
        assert_eq!(writes("/other/file"), Reach::Inside);
        assert!(matches!(writes("/w/proj/.git/hooks/pre-commit"), Reach::Protected(_)));
        assert!(matches!(writes("/w/proj/.GIT/config"), Reach::Protected(_)));
        assert_eq!(writes("/w/proj/.github/config"), Reach::Inside);
    }
}
