//! The capability check: what a session may reach without the user's permission. Compares paths as text; tools
//! check the real path again when they open it.

mod guarded;

use std::path::{Component, Path, PathBuf};

use crate::legible::legible_path;
use crate::ports::tool::{Access, Workspace};

pub(crate) use guarded::name_fits;
pub use guarded::{
    ChainStep, Guarded, HiddenBelow, LedTo, LinkChain, LinkChains, ProtectedKind, ProtectedName, WhenMissing,
    Where,
};

/// Whether an access is within what the session may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessReach {
    /// In a directory of the session, or in one that the user granted.
    Inside,
    /// Outside of every root. The user may grant this place: the directory of a file, or the file itself if its
    /// directory holds too much.
    Outside(PathBuf),
    /// Refused without a question, with the reason.
    Protected(String),
}

/// Hosts on the network lie in no directory: rules decide about them.
pub fn reach(access: &Access, workspace: &Workspace, granted: &[PathBuf]) -> AccessReach {
    let guarded = &workspace.guarded;
    let (path, refused) = match access {
        Access::ReadPath(path) => (path, guarded.hides(path, &workspace.scratch)),
        Access::WritePath(path) => (path, guarded.protects(path, &workspace.scratch)),
        Access::Command(command) => {
            (&command.directory, guarded.hides(&command.directory, &workspace.scratch))
        }
        Access::Network { .. } => return AccessReach::Inside,
    };
    if path.components().any(|component| component == Component::ParentDir) {
        return AccessReach::Protected(format!("{} is not a plain path", legible_path(path)));
    }
    if let Some(reason) = refused {
        return AccessReach::Protected(reason);
    }
    if workspace.roots().chain(granted).any(|root| path.starts_with(root)) {
        return AccessReach::Inside;
    }
    // Files of skills may be read, nothing more.
    let is_read = matches!(access, Access::ReadPath(_));
    if is_read && workspace.skills.directories.iter().any(|directory| path.starts_with(directory)) {
        return AccessReach::Inside;
    }
    AccessReach::Outside(match access {
        Access::Command(_) => path.clone(),
        Access::ReadPath(_) | Access::WritePath(_) | Access::Network { .. } => place_of(path, workspace),
    })
}

/// The place to grant for a file: its directory, unless that also holds unrelated things.
fn place_of(path: &Path, workspace: &Workspace) -> PathBuf {
    let parent = path.parent().filter(|parent| is_grantable(parent, workspace));
    parent.unwrap_or(path).to_path_buf()
}

/// System directories that a command sees in a version of its own or not at all: no grant reaches them or
/// anything below.
const NEVER: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/var/run"];

/// Directories shared by all users or all homes.
const SHARED: [&str; 5] = ["/var/tmp", "/private/tmp", "/private/var", "/home", "/Users"];

/// Whether the user can grant a place with everything below it. Not the root of the file system, not a home or
/// a directory of homes, not a directory that contains a root of the session: those hold other people's files
/// and other projects.
pub(crate) fn is_grantable(place: &Path, workspace: &Workspace) -> bool {
    let is_top = place.parent().is_none_or(|parent| parent.parent().is_none());
    let is_home = |path: &Path| {
        let holds_homes = |parent: &Path| {
            matches!(parent.to_str(), Some("/home" | "/Users"))
                || workspace.guarded.home().is_some_and(|home| home.parent() == Some(parent))
        };
        path.parent().is_some_and(holds_homes)
            || workspace.guarded.home().is_some_and(|home| home.starts_with(path))
    };
    !is_top
        && !NEVER.iter().any(|never| place.starts_with(never))
        && !SHARED.iter().any(|shared| place == Path::new(shared))
        && !is_home(place)
        && !workspace.roots().any(|root| root.starts_with(place))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::SessionId;
    use crate::ports::tool::{CommandAccess, CommandNature};
    use crate::skills::Skills;

    fn workspace() -> Workspace {
        Workspace {
            session_id: SessionId::new("ses_x"),
            root: "/w/proj".into(),
            additional: vec!["/lib".into()],
            scratch: "/scratch/ses_x".into(),
            guarded: Arc::default(),
            skills: Default::default(),
        }
    }

    #[test]
    fn a_root_is_a_directory_not_a_prefix_of_a_name() {
        let reads = |path: &str| reach(&Access::ReadPath(path.into()), &workspace(), &[]);
        assert_eq!(reads("/w/proj/a"), AccessReach::Inside);
        assert_eq!(reads("/lib/x"), AccessReach::Inside);
        assert_eq!(reads("/w/proj-evil/a"), AccessReach::Outside("/w/proj-evil".into()));
        assert!(matches!(reads("/w/proj/../secret"), AccessReach::Protected(_)));
    }

    #[test]
    fn a_directory_that_holds_other_things_is_not_granted_for_one_file() {
        let guarded = Guarded::new(Some("/people/u".into()), Vec::new());
        let workspace = Workspace { guarded: Arc::new(guarded), ..workspace() };
        let place = |path: &str| match reach(&Access::WritePath(path.into()), &workspace, &[]) {
            AccessReach::Outside(place) => place.to_str().unwrap().to_owned(),
            other => panic!("{path}: {other:?}"),
        };
        for (path, expected) in [
            ("/tmp/x/f", "/tmp/x"),
            ("/tmp/f", "/tmp/f"),
            ("/opt/f", "/opt/f"),
            ("/opt/tool/f", "/opt/tool"),
            ("/data", "/data"),
            ("/var/tmp/f", "/var/tmp/f"),
            ("/people/u/notes.txt", "/people/u/notes.txt"),
            ("/people/u/notes/a", "/people/u/notes"),
            ("/people/v/notes.txt", "/people/v/notes.txt"),
            ("/home/v/notes.txt", "/home/v/notes.txt"),
            ("/w/other.txt", "/w/other.txt"),
            ("/w/other/a.txt", "/w/other"),
            ("/scratch/other", "/scratch/other"),
            ("/run/user/1000/x", "/run/user/1000/x"),
        ] {
            assert_eq!(place(path), expected, "{path}");
        }
    }

    #[test]
    fn no_place_that_holds_homes_roots_or_the_system_is_granted() {
        let guarded = Guarded::new(Some("/people/u".into()), Vec::new());
        let workspace = Workspace { guarded: Arc::new(guarded), ..workspace() };
        for place in [
            "/",
            "/tmp",
            "/run",
            "/proc",
            "/dev",
            "/sys",
            "/etc",
            "/run/user/1000",
            "/proc/1",
            "/dev/shm",
            "/sys/fs",
            "/var/run/x",
            "/people",
            "/people/u",
            "/people/v",
            "/home/v",
            "/w",
            "/w/proj",
            "/scratch",
        ] {
            assert!(!is_grantable(Path::new(place), &workspace), "{place}");
        }
        for place in ["/tmp/x", "/people/u/notes", "/w/other", "/opt/tool", "/etc/hosts"] {
            assert!(is_grantable(Path::new(place), &workspace), "{place}");
        }
    }

    #[test]
    fn what_belongs_to_skills_may_be_read_and_not_changed() {
        let skills = Skills { directories: vec!["/people/u/.agents/skills".into()], ..Skills::default() };
        let workspace = Workspace { skills: Arc::new(skills), ..workspace() };
        let path = PathBuf::from("/people/u/.agents/skills/pdf/more.md");
        assert_eq!(reach(&Access::ReadPath(path.clone()), &workspace, &[]), AccessReach::Inside);
        assert_ne!(reach(&Access::WritePath(path), &workspace, &[]), AccessReach::Inside);
        let beside = Access::ReadPath("/people/u/.agents/other".into());
        assert!(matches!(reach(&beside, &workspace, &[]), AccessReach::Outside(_)));
    }

    #[test]
    fn a_command_is_where_it_runs() {
        let runs = |directory: &str| {
            let command = CommandAccess {
                words: vec!["make".into()],
                directory: directory.into(),
                nature: CommandNature::Effects,
                prefix: 0,
                input: None,
                why: None,
            };
            reach(&Access::Command(command), &workspace(), &[])
        };
        assert_eq!(runs("/w/proj/sub"), AccessReach::Inside);
        assert_eq!(runs("/other/place"), AccessReach::Outside("/other/place".into()));
    }

    #[test]
    fn a_grant_widens_and_protection_stays() {
        let granted = [PathBuf::from("/other")];
        let writes = |path: &str| reach(&Access::WritePath(path.into()), &workspace(), &granted);
        assert_eq!(writes("/other/file"), AccessReach::Inside);
        assert!(matches!(writes("/w/proj/.git/hooks/pre-commit"), AccessReach::Protected(_)));
        assert!(matches!(writes("/w/proj/.GIT/config"), AccessReach::Protected(_)));
        assert_eq!(writes("/w/proj/.github/config"), AccessReach::Inside);
    }
}
