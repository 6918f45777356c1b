//! Rewinds against a plain copy of the tree: random calls and random changes by hand, and after each move every
//! file has to be what a reader of nothing but the copies would expect.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use attache_core::snapshot::MoveDirection;
use proptest::prelude::*;
use serde_json::json;

use super::Rewindable;
use crate::trial::Trial;

/// What is at a name, read without any of our code.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    File { bytes: Vec<u8>, mode: u32 },
    Link(PathBuf),
}

impl Entry {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { bytes, .. }, Self::File { bytes: other, .. }) => bytes == other,
            (Self::Link(target), Self::Link(other)) => target == other,
            (Self::File { .. } | Self::Link(_), _) => false,
        }
    }
}

type Tree = BTreeMap<String, Entry>;

fn same(one: Option<&Entry>, other: Option<&Entry>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same(other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Everything but directories.
fn tree(root: &Path) -> Tree {
    fn walk(directory: &Path, root: &Path, tree: &mut Tree) {
        for entry in directory.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let found = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if found.is_dir() {
                walk(&path, root, tree);
            } else if found.is_symlink() {
                tree.insert(name, Entry::Link(path.read_link().unwrap()));
            } else {
                let bytes = std::fs::read(&path).unwrap();
                tree.insert(name, Entry::File { bytes, mode: found.permissions().mode() & 0o777 });
            }
        }
    }
    let mut found = Tree::new();
    walk(root, root, &mut found);
    found
}

const NAMES: [&str; 6] = ["a", "b", "c", "d/e", "d/f", "g/h/i"];

#[derive(Clone, Debug)]
enum Step {
    Write(usize, u8),
    Edit(usize, u8, u8),
    Delete(usize),
    Rename(usize, usize),
    Command(usize, usize, u8),
    HandWrite(usize, u8),
    HandDelete(usize),
    HandRename(usize, usize),
    HandMode(usize, u32),
    HandLink(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    prop_oneof![
        6 => (name(), 0..4u8).prop_map(|(name, content)| Step::Write(name, content)),
        3 => (name(), 0..4u8, 0..4u8).prop_map(|(name, old, new)| Step::Edit(name, old, new)),
        3 => name().prop_map(Step::Delete),
        3 => (name(), name()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (name(), name(), 0..4u8).prop_map(|(one, two, kind)| Step::Command(one, two, kind)),
        2 => (name(), 0..4u8).prop_map(|(name, content)| Step::HandWrite(name, content)),
        1 => name().prop_map(Step::HandDelete),
        1 => (name(), name()).prop_map(|(from, to)| Step::HandRename(from, to)),
        1 => (name(), prop_oneof![Just(0o600u32), Just(0o755), Just(0o640)])
            .prop_map(|(name, mode)| Step::HandMode(name, mode)),
        1 => (name(), name()).prop_map(|(at, to)| Step::HandLink(at, to)),
    ]
}

/// Two contents that differ only in what editors change are among them.
fn content(which: u8) -> String {
    ["zero\n", "one\n", "one\r\n", "three\nlines\nhere\n"][usize::from(which)].to_owned()
}

/// Of the contents, so that an edit has something to replace.
const WORDS: [&str; 4] = ["zero", "one", "three", "lines"];

/// Does what a person could do; what is impossible is not done.
fn by_hand(root: &Path, step: &Step) {
    let path = |name: usize| root.join(NAMES[name]);
    let parents = |path: &Path| drop(std::fs::create_dir_all(path.parent().unwrap()));
    match *step {
        Step::HandWrite(name, which) => {
            parents(&path(name));
            drop(std::fs::remove_file(path(name)));
            drop(std::fs::write(path(name), content(which)));
        }
        Step::HandDelete(name) => drop(std::fs::remove_file(path(name))),
        Step::HandRename(from, to) => {
            parents(&path(to));
            drop(std::fs::rename(path(from), path(to)));
        }
        Step::HandMode(name, mode) => {
            if path(name).symlink_metadata().is_ok_and(|found| found.is_file()) {
                std::fs::set_permissions(path(name), PermissionsExt::from_mode(mode)).unwrap();
            }
        }
        Step::HandLink(at, to) => {
            parents(&path(at));
            drop(std::fs::remove_file(path(at)));
            // Absolute, so that it leads to the same from everywhere; a loop is possible and fine.
            drop(symlink(root.join(NAMES[to]), path(at)));
        }
        Step::Write(..) | Step::Edit(..) | Step::Delete(_) | Step::Rename(..) | Step::Command(..) => {}
    }
}

/// Does what a model would; a call that fails changes nothing.
async fn by_tool(files: &Rewindable, step: &Step) {
    let (tool, input) = match *step {
        Step::Write(name, which) => ("write", json!({"path": NAMES[name], "content": content(which)})),
        Step::Edit(name, old, new) => {
            let [old, new] = [old, new].map(|which| WORDS[usize::from(which)]);
            ("edit", json!({"path": NAMES[name], "old_string": old, "new_string": new}))
        }
        Step::Delete(name) => {
            let patch = format!("*** Begin Patch\n*** Delete File: {}\n*** End Patch\n", NAMES[name]);
            ("apply_patch", json!({ "patch": patch }))
        }
        Step::Rename(from, to) => {
            let mut patch = String::new();
            write!(patch, "diff --git a/{0} b/{1}\nrename from {0}\nrename to {1}\n", NAMES[from], NAMES[to])
                .unwrap();
            ("apply_patch", json!({ "patch": patch }))
        }
        Step::Command(one, two, kind) => {
            let (one, two) = (NAMES[one], NAMES[two]);
            let command = match kind {
                0 => format!("echo command > {one}"),
                1 => format!("rm -f {one}"),
                2 => format!("mv {one} {two}"),
                _ => format!("cp {one} {two}"),
            };
            ("bash", json!({ "command": command }))
        }
        Step::HandWrite(..)
        | Step::HandDelete(_)
        | Step::HandRename(..)
        | Step::HandMode(..)
        | Step::HandLink(..) => return,
    };
    drop(files.call(tool, input).await);
}

/// What calls did to one name, by copies of the tree before and after each: the last link of the chain first.
struct Chain(Vec<(Option<Entry>, Option<Entry>)>);

impl Chain {
    /// Where a rewind of all of it ends: as far back as each call found what the one before it had left.
    fn target(&self) -> Option<&Entry> {
        let mut calls = self.0.iter().rev();
        let mut target = calls.next().and_then(|(before, _)| before.as_ref());
        for (before, after) in calls {
            if !same(after.as_ref(), target) {
                break;
            }
            target = before.as_ref();
        }
        target
    }

    /// Whether it was left alone between two calls.
    fn reaches_the_first(&self) -> bool {
        self.0.windows(2).all(|pair| same(pair[0].1.as_ref(), pair[1].0.as_ref()))
    }

    fn left(&self) -> Option<&Entry> {
        self.0.last().and_then(|(_, after)| after.as_ref())
    }
}

/// The tree as it has to be after a move.
fn expected(now: &Tree, chains: &BTreeMap<String, Chain>, direction: MoveDirection) -> Tree {
    let mut tree = now.clone();
    for (name, chain) in chains {
        let (from, to) = match direction {
            MoveDirection::Back => (chain.left(), chain.target()),
            MoveDirection::Forward => (chain.target(), chain.left()),
        };
        if !same(now.get(name), from) {
            continue;
        }
        match (to, now.get(name)) {
            // A file that is there keeps its mode: that is the user's.
            (Some(Entry::File { bytes, .. }), Some(Entry::File { mode, .. })) => {
                tree.insert(name.clone(), Entry::File { bytes: bytes.clone(), mode: *mode });
            }
            (Some(to), _) => drop(tree.insert(name.clone(), to.clone())),
            (None, _) => drop(tree.remove(name)),
        }
    }
    tree
}

/// Compared without modes of files that came back: what a call left has the mode of a new file.
fn compare(
    now: &Tree,
    expected: &Tree,
    before: &Tree,
    direction: MoveDirection,
) -> Result<(), TestCaseError> {
    let names: BTreeSet<_> = now.keys().chain(expected.keys()).collect();
    for name in names {
        let (now, expected) = (now.get(name), expected.get(name));
        prop_assert!(same(now, expected), "{name} is {now:?}, and has to be {expected:?}");
        if before.contains_key(name) || direction == MoveDirection::Back {
            prop_assert_eq!(now, expected, "{}", name);
        }
    }
    Ok(())
}

/// One case: calls and changes by hand, a rewind of some of them, changes by hand, and the way back.
async fn case(before: Vec<Step>, rewound: Vec<Step>, between: Vec<Step>) -> Result<(), TestCaseError> {
    // In memory where that is possible: every write waits for its disk otherwise.
    let place = match Path::new("/dev/shm").is_dir() {
        true => tempfile::tempdir_in("/dev/shm").unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    std::fs::create_dir(place.path().join("root")).unwrap();
    let files = Rewindable::on(Trial::beneath(place.path().canonicalize().unwrap()));
    let root = files.root().clone();
    for (nth, name) in NAMES.iter().enumerate().filter(|(nth, _)| nth % 2 == 0) {
        files.trial.put(name, content(nth as u8 / 2));
    }
    for step in &before {
        by_hand(&root, step);
        by_tool(&files, step).await;
    }
    let from = files.told();
    let mut chains: BTreeMap<String, Chain> = BTreeMap::new();
    let mut untold = BTreeSet::new();
    for step in &rewound {
        by_hand(&root, step);
        let found = tree(&root);
        by_tool(&files, step).await;
        let left = tree(&root);
        let names: BTreeSet<_> = found.keys().chain(left.keys()).collect();
        for name in names.into_iter().filter(|name| !same(found.get(*name), left.get(*name))) {
            let chain = chains.entry(name.clone()).or_insert_with(|| Chain(Vec::new()));
            chain.0.push((found.get(name).cloned(), left.get(name).cloned()));
            if files.is_last_uncovered() {
                untold.insert(name.clone());
            }
        }
    }
    // Commands beside a link that leads nowhere are told as a whole; nothing is expected of their files.
    chains.retain(|name, _| !untold.contains(name));
    for step in &between[..between.len() / 2] {
        by_hand(&root, step);
    }
    let mut moved_back = BTreeSet::new();
    for (steps, direction) in
        [(&between[between.len() / 2..], MoveDirection::Back), (&[], MoveDirection::Forward)]
    {
        let now = tree(&root);
        let mut wanted = expected(&now, &chains, direction);
        let became = files.move_files(from, direction).await;
        let mut after = tree(&root);
        if direction == MoveDirection::Forward {
            // What a call left is kept when a rewind takes it away: whoever took it away by hand has it alone.
            for name in chains.keys().filter(|name| !moved_back.contains(*name)) {
                if became.not_covered.contains(name) {
                    match now.get(name) {
                        Some(entry) => drop(wanted.insert(name.clone(), entry.clone())),
                        None => drop(wanted.remove(name)),
                    }
                }
            }
        }
        moved_back.extend(became.moved.iter().cloned());
        untold.iter().for_each(|name| {
            wanted.remove(name);
            after.remove(name);
        });
        compare(&after, &wanted, &now, direction)?;
        let changed: BTreeSet<_> =
            chains.keys().filter(|name| !same(now.get(*name), after.get(*name))).cloned().collect();
        let moved = became.moved.iter().filter(|name| !untold.contains(*name));
        prop_assert_eq!(changed, moved.cloned().collect::<BTreeSet<_>>());
        // Everything that calls changed and that is not what it was before them is told.
        for (name, chain) in &chains {
            let wanted = match direction {
                MoveDirection::Back => chain.0.first().and_then(|(before, _)| before.as_ref()),
                MoveDirection::Forward => chain.left(),
            };
            // Calls that left what they had found have nothing to take back.
            let is_undone = same(chain.target(), chain.left()) && chain.reaches_the_first();
            if !same(after.get(name), wanted) && !is_undone {
                let told = became.conflicts.contains(name) || became.not_covered.contains(name);
                prop_assert!(told, "{} is not told: {:?}", name, became);
            }
        }
        for step in steps {
            by_hand(&root, step);
        }
    }
    Ok(())
}

/// `PROPTEST_CASES` asks for more; the long hunts do.
const LEAST_CASES: u32 = 2_000;

#[test]
fn files_are_what_a_plain_copy_says() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let steps = |most| prop::collection::vec(step(), 0..most);
    let usual = ProptestConfig::default();
    let cases = usual.cases.max(LEAST_CASES);
    let configuration = ProptestConfig { cases, failure_persistence: None, ..usual };
    proptest!(configuration, |(before in steps(4), rewound in steps(8), between in steps(4))| {
        runtime.block_on(case(before, rewound, between))?;
    });
}
