//! Where paths lead, by both routes: never out of the roots, always into another root.

use std::os::unix::fs::symlink;

use attache_core::ids::SessionId;

use super::*;

struct World {
    _directory: tempfile::TempDir,
    base: PathBuf,
    workspace: Workspace,
}

fn world() -> World {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    for name in ["proj/src", "proj-evil", "lib", "outside"] {
        std::fs::create_dir_all(base.join(name)).unwrap();
    }
    let workspace = Workspace {
        session_id: SessionId::new("ses_1"),
        root: base.join("proj"),
        additional: vec![base.join("lib")],
        scratch: base.join("scratch/ses_1"),
        guarded: Arc::new(Guarded::new(Some(base.join("home")), vec![base.join("scratch")])),
        skills: Default::default(),
    };
    World { _directory: directory, base, workspace }
}

impl World {
    fn both(&self) -> [OpenRoots; 2] {
        let reach = OpenRoots::new(&self.workspace, &[]);
        [reach.clone(), reach.by_walking()]
    }

    /// Where `path` leads; both routes must agree.
    fn real(&self, path: &str) -> Result<PathBuf, String> {
        let [direct, walked] = self.both().map(|reach| {
            let found = reach.resolve(&self.base.join(path));
            found.map(|place| place.real).map_err(|error| match error {
                FileError::Outside { .. } => "outside".to_owned(),
                FileError::Directory { .. } => "directory".to_owned(),
                other => other.to_string(),
            })
        });
        assert_eq!(direct, walked, "{path}");
        walked.map(|real| real.strip_prefix(&self.base).unwrap().to_owned())
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        symlink(target, self.base.join(name)).unwrap();
    }
}

fn at(path: &str) -> Result<PathBuf, String> {
    Ok(path.into())
}

fn outside() -> Result<PathBuf, String> {
    Err("outside".into())
}

#[test]
fn a_root_is_a_directory_not_the_beginning_of_a_name() {
    let world = world();
    assert_eq!(world.real("proj/src/a.rs"), at("proj/src/a.rs"));
    assert_eq!(world.real("lib/a"), at("lib/a"));
    assert_eq!(world.real("proj-evil/a"), outside());
    assert_eq!(world.real("outside"), outside());
    assert_eq!(world.real("proj"), Err("directory".into()));
}

#[test]
fn links_out_are_refused_whether_what_they_point_to_exists_or_not() {
    let world = world();
    world.link("../outside", "proj/out");
    world.link("../outside/new", "proj/dangling");
    world.link(world.base.join("outside"), "proj/absolute");
    world.link("../../..", "proj/src/up");
    world.link("/proc/self/root/etc", "proj/magic");
    for path in [
        "proj/out/x",
        "proj/out/missing/below",
        "proj/dangling",
        "proj/absolute/x",
        "proj/src/up/x",
        "proj/magic/passwd",
    ] {
        assert_eq!(world.real(path), outside(), "{path}");
    }
}

#[test]
fn links_within_reach_are_followed_also_absolute_ones_and_into_other_roots() {
    let world = world();
    world.link("src", "proj/relative");
    world.link(world.base.join("proj/src"), "proj/absolute");
    world.link("../../lib", "proj/src/lib");
    world.link(world.base.join("lib/new/leaf"), "proj/dangling");
    world.link("../proj/src/../relative", "proj/winding");
    assert_eq!(world.real("proj/relative/a"), at("proj/src/a"));
    assert_eq!(world.real("proj/absolute/a"), at("proj/src/a"));
    assert_eq!(world.real("proj/src/lib/a"), at("lib/a"));
    assert_eq!(world.real("proj/dangling"), at("lib/new/leaf"));
    assert_eq!(world.real("proj/winding/a"), at("proj/src/a"));
}

#[test]
fn a_root_that_is_named_by_a_link_is_known_by_both_names() {
    let mut world = world();
    world.link("proj", "named");
    world.workspace.root = world.base.join("named");
    std::fs::write(world.base.join("proj/a"), "").unwrap();
    assert_eq!(world.real("named/a"), at("proj/a"));
    assert_eq!(world.real("proj/a"), at("proj/a"));
    let place = OpenRoots::new(&world.workspace, &[]).resolve(&world.base.join("proj/a")).unwrap();
    assert_eq!(place.named, world.base.join("named/a"));
}

/// A link outside is followed into the root as well: what counts is where a path ends.
#[test]
fn the_way_in_may_lie_outside() {
    let world = world();
    world.link("../proj/src", "outside/in");
    world.link("../outside/in", "proj/detour");
    assert_eq!(world.real("outside/in/a"), at("proj/src/a"));
    assert_eq!(world.real("proj/detour/a"), at("proj/src/a"));
}

#[test]
fn a_loop_and_a_file_on_the_way_are_errors() {
    let world = world();
    world.link("loop", "proj/loop");
    std::fs::write(world.base.join("proj/file"), "").unwrap();
    assert!(world.real("proj/loop").unwrap_err().contains("Too many levels"));
    assert!(world.real("proj/file/x").unwrap_err().contains("Not a directory"));
}

/// A directory inside a root that is named as a root, too, could be swapped for a link to anywhere.
#[test]
fn a_root_below_a_root_leads_nowhere_else() {
    let mut world = world();
    world.workspace.additional.push(world.base.join("proj/vendor"));
    world.link("../outside", "proj/vendor");
    assert_eq!(world.real("proj/vendor/x"), outside());
}

#[test]
fn what_is_guarded_is_judged_by_its_real_path() {
    let world = world();
    std::fs::create_dir_all(world.base.join("proj/.git")).unwrap();
    world.link(".git", "proj/innocent");
    world.link("innocent/hooks/new/leaf", "proj/leaf");
    world.link(".VSCODE/tasks.json", "proj/tasks");
    for reach in world.both() {
        for path in ["proj/innocent/config", "proj/leaf", "proj/tasks", "proj/.Git/Hooks/x"] {
            let place = reach.resolve(&world.base.join(path)).unwrap();
            assert!(
                matches!(reach.may_change(&place.real, &place.real), Err(FileError::Guarded { .. })),
                "{path}"
            );
            assert!(reach.may_show(&place.real).is_ok(), "{path}");
        }
        let own = world.base.join("scratch/ses_1/x");
        assert!(reach.may_change(&own, &own).is_ok());
        assert!(reach.may_show(&world.base.join("scratch/ses_2/x")).is_err());
    }
}

#[test]
fn a_missing_file_names_its_neighbours() {
    let world = world();
    for name in ["main.rs", "zzz", "id_rsa"] {
        std::fs::write(world.base.join("proj").join(name), "").unwrap();
    }
    for reach in world.both() {
        let hint = |path: &str| reach.hint(&reach.resolve(&world.base.join(path)).unwrap());
        assert_eq!(hint("proj/mian.rs"), "; nearest names there: main.rs");
        assert!(!hint("proj/id_rsb").contains("id_rsa"));
        assert!(hint("proj/src/no/where").ends_with("up to src"), "{}", hint("proj/src/no/where"));
    }
}

#[test]
fn a_file_that_was_granted_is_reached_and_nothing_beside_it() {
    let world = world();
    let (file, beside) = (world.base.join("outside/a"), world.base.join("outside/b"));
    for file in [&file, &beside] {
        std::fs::write(file, "x").unwrap();
    }
    let missing = world.base.join("outside/new");
    for granted in [&file, &missing] {
        let judged: Arc<[PathBuf]> = [granted.clone()].into();
        let reach = OpenRoots {
            judged: Some(judged),
            ..OpenRoots::new(&world.workspace, std::slice::from_ref(granted))
        };
        assert_eq!(reach.resolve(granted).unwrap().real, *granted);
        assert!(reach.resolve(&beside).is_err());
    }
}

#[test]
fn a_directory_below_a_missing_one_is_not_the_one_beside_it() {
    let world = world();
    for reach in world.both() {
        assert!(reach.directory(&world.base.join("proj/src")).is_ok());
        let missing = reach.directory(&world.base.join("proj/missing/src"));
        assert!(matches!(missing, Err(FileError::Io { .. })), "{missing:?}");
    }
}
