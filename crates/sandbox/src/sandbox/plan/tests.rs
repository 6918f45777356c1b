//! Random trees × random policies, checked by an oracle that knows only how later mounts cover earlier ones.

use std::collections::BTreeMap;
use std::ffi::OsString;

use attache_core::ports::tool::{NetworkGrant, WriteGrant};
use attache_core::scope::Guarded;

use super::super::directory_tree::{DirectoryEntries, DirectoryTree, NodeKind};
use super::super::lost_writes::LostWrites;
use super::super::policy::WritableCache;
use super::*;

/// Number of plans; `TEST_SOAK` multiplies it.
const CASES: u64 = 100_000;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    PlaceHolder,
    Unreadable,
    Closed,
    File,
    Socket,
    Link(PathBuf),
}

/// A tree as we might have read it; it also contains every parent of its entries.
#[derive(Clone, Debug, Default)]
struct Made(BTreeMap<PathBuf, Node>);

impl DirectoryTree for Made {
    fn list(&self, directory: &Path) -> DirectoryEntries {
        match self.0.get(directory) {
            Some(Node::Directory | Node::PlaceHolder) => {}
            Some(Node::Unreadable) => return DirectoryEntries::Unreadable,
            Some(Node::Closed | Node::File | Node::Socket | Node::Link(_)) | None => {
                return DirectoryEntries::Closed;
            }
        }
        let below = self.0.range(directory.to_owned()..).skip(1);
        let below = below.take_while(|(path, _)| path.starts_with(directory));
        let entries = below.filter(|(path, _)| path.parent() == Some(directory));
        let entry = |(path, node): (&PathBuf, &Node)| -> (OsString, NodeKind) {
            let kind = match node {
                Node::Directory | Node::PlaceHolder | Node::Unreadable | Node::Closed => NodeKind::Directory,
                Node::File => NodeKind::Other,
                Node::Socket => NodeKind::Socket,
                Node::Link(_) => NodeKind::Link,
            };
            (path.file_name().unwrap().to_owned(), kind)
        };
        DirectoryEntries::Entries(entries.map(entry).collect())
    }

    fn is_place_holder(&self, directory: &Path) -> bool {
        self.0.get(directory) == Some(&Node::PlaceHolder)
    }
}

impl Made {
    /// The first link on the way to a path, which may be its end.
    fn link_on_the_way<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let is_link = |place: &&Path| matches!(self.0.get(*place), Some(Node::Link(_)));
        path.ancestors().find(is_link)
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}

const NAMES: [&str; 20] = [
    "a",
    "b",
    "c",
    ".git",
    ".git",
    ".GIT",
    "modules",
    "worktrees",
    "HEAD",
    "hooks",
    "config",
    "config.worktree",
    ".vscode",
    ".claude",
    ".mcp.json",
    ".config",
    "fish",
    ".zshrc",
    ".envrc",
    "id_rsa",
];

const TARGETS: [&str; 9] = ["/", "/home/u", "/home/u/.ssh", "/run", "/proc", ".", "..", "../../..", "a"];

fn tree(random: &mut Random) -> Made {
    let mut made = Made::default();
    for directory in ["/", "/home", "/home/u", "/home/u/w", "/data", "/own", "/own/scratch", "/own/scratch/s"]
    {
        made.0.insert(directory.into(), Node::Directory);
    }
    let mut open: Vec<PathBuf> = ["/home/u", "/home/u/w", "/home/u/w", "/data"].map(PathBuf::from).to_vec();
    for _ in 0..random.below(14) {
        let path = open[random.below(open.len())].join(NAMES[random.below(NAMES.len())]);
        let node = match random.below(12) {
            0..=5 => Node::Directory,
            6 | 7 => Node::Link(TARGETS[random.below(TARGETS.len())].into()),
            8 => Node::File,
            9 => [Node::Unreadable, Node::Closed][random.below(2)].clone(),
            10 => Node::PlaceHolder,
            _ => Node::Socket,
        };
        if made.0.contains_key(&path) {
            continue;
        }
        if node == Node::Directory {
            open.push(path.clone());
        }
        made.0.insert(path, node);
    }
    made
}

fn policy(random: &mut Random, tree: &Made) -> Policy {
    let directories: Vec<&PathBuf> = tree
        .0
        .iter()
        .filter(|(path, node)| **node == Node::Directory && path.components().count() > 1)
        .map(|(path, _)| path)
        .collect();
    let mut writable: Vec<PathBuf> = (0..random.below(4))
        .map(|_| directories[random.below(directories.len())].clone())
        .filter(|path| !path.starts_with("/own"))
        .collect();
    writable.sort();
    writable.dedup();
    let all: Vec<&PathBuf> = tree.0.keys().collect();
    let is_link = |path: &&PathBuf| tree.link_on_the_way(path).is_none();
    let mut hidden: Vec<PathBuf> = (0..random.below(4))
        .map(|_| all[random.below(all.len())])
        .filter(|path| is_link(path) && path.components().count() > 2 && !path.starts_with("/own"))
        .cloned()
        .collect();
    hidden.push("/own".into());
    hidden.sort();
    hidden.dedup();
    let inner = hidden.clone();
    hidden.retain(|path| !inner.iter().any(|other| path != other && path.starts_with(other)));
    let readable = directories.iter().filter(|_| random.below(8) == 0).map(|path| (*path).clone()).collect();
    let overlaps = |one: &Path, other: &Path| one.starts_with(other) || other.starts_with(one);
    let is_apart = |path: &Path| !writable.iter().chain(&hidden).any(|other| overlaps(path, other));
    let caches = directories.iter().filter(|path| random.below(8) == 0 && is_apart(path)).take(2);
    let caches = caches.filter(|path| !Path::new("/home/u").starts_with(path));
    let caches = caches.map(|path| WritableCache { name: "pip", path: (*path).clone() }).collect();
    Policy {
        directory: "/home/u/w".into(),
        places: writable.clone(),
        writable,
        caches,
        readable,
        scratch: "/own/scratch/s".into(),
        hidden,
        protected: Vec::new(),
        protected_missing: Vec::new(),
        protected_links: Vec::new(),
        home: Some("/home/u".into()),
        network: NetworkGrant::Withheld,
        writes: WriteGrant::Granted,
        notes: Vec::new(),
        told: Vec::new(),
        lost_writes: LostWrites::default(),
    }
}

/// The mount that decides about a path: the last one at it or above it.
fn decisive<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    mounts.iter().rev().find(|mount| path.starts_with(&mount.at))
}

/// What is wrong with a plan.
fn problem(policy: &Policy, tree: &Made, mounts: &[Mount]) -> Option<String> {
    for (index, mount) in mounts.iter().enumerate() {
        if let Some(cover) = mounts.iter().skip(index + 1).find(|later| mount.at.starts_with(&later.at)) {
            return Some(format!("{cover:?} covers {mount:?}"));
        }
        let is_bind = !mount.what.is_cover();
        if is_bind && tree.link_on_the_way(&mount.at).is_some() {
            return Some(format!("{mount:?} follows a link"));
        }
        let is_allowed = policy.is_writable(&mount.at) || mount.at.starts_with(&policy.scratch);
        if mount.what == MountKind::Writable && !is_allowed {
            return Some(format!("{mount:?} is writable"));
        }
    }
    let shown = |path: &Path| decisive(mounts, path).is_some_and(|mount| !mount.what.is_cover());
    if let Some(hidden) = policy.hidden.iter().find(|path| shown(path)) {
        return Some(format!("{} is shown", hidden.display()));
    }
    // Nothing that is writable may be protected.
    let is_written = |path: &Path| {
        decisive(mounts, path).is_some_and(|mount| mount.what == MountKind::Writable)
            && policy.is_writable(path)
    };
    let names: Vec<&str> = Guarded::protected_names().collect();
    for root in &policy.writable {
        let is_seen = tree.0.get(root) == Some(&Node::Directory);
        for name in names.iter().filter(|_| is_seen) {
            let path = root.join(name);
            let is_of_home =
                Guarded::names_read_at_home().contains(name) && policy.home.as_ref() != Some(root);
            let is_there = tree.0.contains_key(&path);
            let is_whole = path
                .ancestors()
                .skip(1)
                .take_while(|above| *above != root)
                .all(|above| !matches!(tree.0.get(above), Some(Node::Link(_) | Node::Closed)));
            let is_link = matches!(tree.0.get(&path), Some(Node::Link(_)));
            // Below another root that is hidden or protected, that root decides.
            if is_whole && !is_link && (is_there || !is_of_home) && is_written(&path) {
                return Some(format!("{} can be written", path.display()));
            }
        }
    }
    (mounts.len() > 4_000).then(|| format!("{} mounts", mounts.len()))
}

#[test]
fn no_tree_makes_a_plan_that_shows_or_opens_more() {
    let soak: u64 = std::env::var("TEST_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let cases = CASES * soak;
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    std::thread::scope(|scope| {
        for part in 0..threads {
            scope.spawn(move || {
                for seed in (part..cases).step_by(usize::try_from(threads).unwrap()) {
                    let mut random = Random(seed);
                    let tree = tree(&mut random);
                    let policy = policy(&mut random, &tree);
                    let protection = Protection::of(&policy, &tree);
                    let hidden: Vec<Hidden> = policy.hidden.iter().map(|path| form(&tree, path)).collect();
                    let mounts = plan(&policy, &protection, &hidden);
                    if let Some(problem) = problem(&policy, &tree, &mounts) {
                        panic!("case {seed}: {problem}\n{tree:#?}\n{policy:#?}\n{mounts:#?}");
                    }
                }
            });
        }
    });
}

fn form(tree: &Made, path: &Path) -> Hidden {
    let is_file = matches!(tree.0.get(path), Some(Node::File | Node::Socket));
    Hidden { path: path.to_owned(), form: if is_file { HolderForm::File } else { HolderForm::Directory } }
}

/// The check at the end of a plan works alone, whatever comes before it.
#[test]
fn a_plan_that_is_wrong_is_made_safe() {
    let mut random = Random(1);
    let policy = Policy {
        writable: vec!["/home/u/w".into()],
        hidden: vec!["/home/u/.ssh".into(), "/own".into()],
        ..policy(&mut random, &tree(&mut Random(1)))
    };
    let mount = |at: &str, what: MountKind| Mount { at: at.into(), what };
    let wrong = vec![
        mount("/home/u", MountKind::Writable),
        mount("/home/u/.ssh/keys", MountKind::ReadOnly),
        mount("/own", MountKind::Writable),
        mount("/home/u/w", MountKind::Writable),
        mount("/data", MountKind::Writable),
        mount("/own/scratch/s", MountKind::Writable),
    ];
    let safe = safe(wrong, &policy);
    let expected = [
        // It lies above something hidden that no later mount covers, so it is left out.
        mount("/home/u/w", MountKind::Writable),
        mount("/data", MountKind::ReadOnly),
        mount("/own/scratch/s", MountKind::Writable),
    ];
    assert_eq!(safe, expected);
}
