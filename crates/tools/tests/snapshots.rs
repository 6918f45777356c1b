//! Snapshots of files: what calls tell before they change something, and files that go back and forth.

mod model;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use attache_core::ids::{CallId, SessionId};
use attache_core::ports::snapshots::MoveOutcome;
use attache_core::ports::{BoxFuture, FileMover, SnapshotSink, ToolOutcome, ToolRuntime};
use attache_core::snapshot::{self, CallSnapshot, FilePlan, MoveDirection, SnapshotShelf};
use attache_testkit::fakes::blobs::MemoryBlobs;
use attache_testkit::fakes::delegate::{FakeEditor, Manner};
use attache_tools::{Equipment, FileTurns, SnapshotMover};
use serde_json::{Value, json};

use crate::trial::Trial;

/// Keeps what calls tell, in their order.
#[derive(Debug)]
pub(crate) struct Kept {
    shelf: Arc<SnapshotShelf>,
    calls: Mutex<Vec<(CallId, CallSnapshot)>>,
}

/// What one call tells.
#[derive(Debug)]
struct OfCall(Arc<Kept>, CallId);

impl SnapshotSink for OfCall {
    fn keep(&self, content: Vec<u8>) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(self.0.shelf.keep(content))
    }

    fn record(&self, snapshot: CallSnapshot) -> BoxFuture<'_, Result<(), String>> {
        let mut calls = self.0.calls.lock().unwrap();
        match calls.iter_mut().find(|(call, _)| *call == self.1) {
            Some((_, told)) => *told = snapshot,
            None => calls.push((self.1.clone(), snapshot)),
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A workspace whose calls are kept, and can be taken back.
pub(crate) struct Rewindable {
    pub(crate) trial: Trial,
    pub(crate) kept: Arc<Kept>,
    mover: SnapshotMover,
    count: Mutex<usize>,
}

/// What became of files, by their names below the root.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Became {
    pub(crate) moved: Vec<String>,
    pub(crate) conflicts: Vec<String>,
    pub(crate) not_covered: Vec<String>,
}

impl Rewindable {
    pub(crate) fn new() -> Self {
        Self::on(Trial::new())
    }

    pub(crate) fn on(mut trial: Trial) -> Self {
        let turns = FileTurns::default();
        let equipment = Equipment { sandbox: Arc::clone(&trial.sandbox), turns, ..Equipment::bare() };
        let mover = SnapshotMover::new(&equipment.turns);
        trial.tools = attache_tools::builtin(equipment);
        let shelf = SnapshotShelf::new(Arc::new(MemoryBlobs::default()), &SessionId::new("ses_1"));
        let kept = Arc::new(Kept { shelf: Arc::new(shelf), calls: Mutex::default() });
        Self { trial, kept, mover, count: Mutex::default() }
    }

    pub(crate) async fn call(&self, tool: &str, input: Value) -> Result<(), String> {
        let call_id = {
            let mut count = self.count.lock().unwrap();
            *count += 1;
            CallId::new(format!("call_{count}"))
        };
        let sink = Arc::new(OfCall(Arc::clone(&self.kept), call_id.clone()));
        let runtime = ToolRuntime { call_id, snapshots: Some(sink), ..self.trial.runtime() };
        match self.trial.tool(tool).run(input, runtime).await {
            ToolOutcome::Output { .. } | ToolOutcome::Picture { .. } => Ok(()),
            ToolOutcome::Error { text, .. } => Err(text),
        }
    }

    /// How many calls have told something.
    pub(crate) fn told(&self) -> usize {
        self.kept.calls.lock().unwrap().len()
    }

    /// Whether the last call said that it may change more than it names.
    pub(crate) fn is_last_uncovered(&self) -> bool {
        self.kept.calls.lock().unwrap().last().is_some_and(|(_, told)| told.uncovered.is_some())
    }

    pub(crate) fn plan(&self, from: usize, direction: MoveDirection) -> FilePlan {
        let calls = self.kept.calls.lock().unwrap();
        let calls: Vec<_> = calls[from..].iter().map(|(_, told)| told.clone()).collect();
        snapshot::plan(&calls, direction)
    }

    /// Moves the files of all calls from this one on.
    pub(crate) async fn move_files(&self, from: usize, direction: MoveDirection) -> Became {
        let plan = self.plan(from, direction);
        let (site, shelf) = (self.trial.site(), Arc::clone(&self.kept.shelf));
        let outcomes = self.mover.move_files(site, shelf, plan.moves.clone()).await;
        assert_eq!(outcomes.len(), plan.moves.len());
        let name =
            |path: &Path| path.strip_prefix(&self.trial.root).unwrap_or(path).to_string_lossy().into_owned();
        let mut became = Became {
            moved: Vec::new(),
            conflicts: plan.conflicts.iter().map(|left| name(&left.path)).collect(),
            not_covered: plan.not_covered.iter().map(|left| name(Path::new(&left.what))).collect(),
        };
        for (wanted, outcome) in plan.moves.iter().zip(outcomes) {
            match outcome {
                MoveOutcome::Moved => became.moved.push(name(&wanted.path)),
                MoveOutcome::Unneeded => {}
                MoveOutcome::Conflict(_) => became.conflicts.push(name(&wanted.path)),
                MoveOutcome::NotCovered(_) => became.not_covered.push(name(&wanted.path)),
            }
        }
        for list in [&mut became.moved, &mut became.conflicts, &mut became.not_covered] {
            list.sort();
            list.dedup();
        }
        became
    }

    fn root(&self) -> &PathBuf {
        &self.trial.root
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn what_tools_did_is_taken_back_and_brought_again() {
    let files = Rewindable::new();
    files.trial.put("a.txt", "one\ntwo\n");
    files.trial.put("run.sh", "echo\n");
    std::fs::set_permissions(files.root().join("run.sh"), PermissionsExt::from_mode(0o750)).unwrap();
    files.call("edit", json!({"path": "a.txt", "old_string": "two", "new_string": "2"})).await.unwrap();
    files.call("write", json!({"path": "deep/er/new.txt", "content": "new\n"})).await.unwrap();
    files.call("write", json!({"path": "deep/er/other.txt", "content": "other\n"})).await.unwrap();
    let patch = "*** Begin Patch\n*** Delete File: run.sh\n*** End Patch\n";
    files.call("apply_patch", json!({ "patch": patch })).await.unwrap();
    let became = files.move_files(0, MoveDirection::Back).await;
    let all = names(&["a.txt", "deep/er/new.txt", "deep/er/other.txt", "run.sh"]);
    assert_eq!(became, Became { moved: all.clone(), ..Became::default() });
    assert_eq!(files.trial.text("a.txt"), "one\ntwo\n");
    assert_eq!(files.trial.names(), ["a.txt", "run.sh"], "directories that were made go, too");
    assert_eq!(files.root().join("run.sh").metadata().unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(files.move_files(0, MoveDirection::Back).await, Became::default(), "a second time is nothing");
    let became = files.move_files(0, MoveDirection::Forward).await;
    assert_eq!(became, Became { moved: all, ..Became::default() });
    assert_eq!(files.trial.text("a.txt"), "one\n2\n");
    assert_eq!(files.trial.text("deep/er/new.txt"), "new\n");
    assert_eq!(files.trial.names(), ["a.txt", "deep"]);
}

#[tokio::test]
async fn what_was_changed_by_hand_is_never_overwritten() {
    let files = Rewindable::new();
    for name in ["edited", "gone", "linked", "mode", "line_end"] {
        files.trial.put(name, "before\n");
        files.call("write", json!({"path": name, "content": "after\n"})).await.unwrap();
    }
    files.call("write", json!({"path": "made", "content": "after\n"})).await.unwrap();
    let path = |name: &str| files.root().join(name);
    std::fs::write(path("edited"), "by hand\n").unwrap();
    std::fs::remove_file(path("gone")).unwrap();
    std::fs::remove_file(path("linked")).unwrap();
    symlink("mode", path("linked")).unwrap();
    std::fs::set_permissions(path("mode"), PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(path("line_end"), "after\r\n").unwrap();
    std::fs::write(path("made"), "mine").unwrap();
    let became = files.move_files(0, MoveDirection::Back).await;
    assert_eq!(became.moved, ["mode"]);
    assert_eq!(became.conflicts, ["edited", "gone", "line_end", "linked", "made"]);
    assert_eq!(files.trial.text("edited"), "by hand\n");
    assert_eq!(files.trial.text("line_end"), "after\r\n");
    assert_eq!(files.trial.text("made"), "mine");
    assert!(!path("gone").exists() && path("linked").is_symlink());
    assert_eq!(files.trial.text("mode"), "before\n");
    assert_eq!(path("mode").metadata().unwrap().permissions().mode() & 0o777, 0o600, "modes are the user's");
}

#[tokio::test]
async fn no_link_leads_a_rewind_elsewhere() {
    let files = Rewindable::new();
    files.trial.put("dir/a.txt", "before\n");
    files.call("write", json!({"path": "dir/a.txt", "content": "after\n"})).await.unwrap();
    let outside = files.trial.base.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.txt"), "after\n").unwrap();
    std::fs::rename(files.root().join("dir"), files.root().join("moved")).unwrap();
    symlink(&outside, files.root().join("dir")).unwrap();
    let became = files.move_files(0, MoveDirection::Back).await;
    assert_eq!(became.not_covered, ["dir/a.txt"]);
    assert_eq!(std::fs::read_to_string(outside.join("a.txt")).unwrap(), "after\n");
    // The same within the root: what is there now is another file.
    std::fs::remove_file(files.root().join("dir")).unwrap();
    symlink("moved", files.root().join("dir")).unwrap();
    assert_eq!(files.move_files(0, MoveDirection::Back).await.not_covered, ["dir/a.txt"]);
    assert_eq!(files.trial.text("moved/a.txt"), "after\n");
}

#[tokio::test]
async fn commands_are_covered_where_their_files_are_known() {
    let files = Rewindable::new();
    for name in ["kept", "removed", "moved"] {
        files.trial.put(name, "before\n");
    }
    symlink("kept", files.root().join("link")).unwrap();
    for command in ["echo after > kept", "rm removed", "mv moved new_name", "rm link", "cat kept"] {
        files.call("bash", json!({ "command": command })).await.unwrap();
    }
    let became = files.move_files(0, MoveDirection::Back).await;
    assert_eq!(became.moved, ["kept", "link", "moved", "new_name", "removed"], "{became:?}");
    assert_eq!(files.trial.names(), ["kept", "link", "moved", "removed"]);
    assert_eq!(files.trial.text("kept"), "before\n");
    assert_eq!(files.root().join("link").read_link().unwrap(), Path::new("kept"));
    let told = files.told();
    for command in ["sh -c 'echo x > other'", "mkdir new; python3 -c 1", "cp -r kept new/"] {
        files.call("bash", json!({ "command": command })).await.unwrap();
    }
    let became = files.move_files(told, MoveDirection::Back).await;
    assert_eq!(became.not_covered.len(), 3, "{became:?}");
    assert!(became.moved.is_empty());
    files.call("bash", json!({"command": "python3 -c 2", "background": true})).await.unwrap();
    assert_eq!(files.move_files(told, MoveDirection::Back).await.not_covered.len(), 4);
}

#[tokio::test]
async fn what_is_too_large_is_told_as_not_covered() {
    let files = Rewindable::new();
    files.trial.put("large", "x".repeat(17 * 1024 * 1024));
    files.call("write", json!({"path": "large", "content": "small\n"})).await.unwrap();
    let plan = files.plan(0, MoveDirection::Back);
    assert!(plan.moves.is_empty());
    assert!(plan.not_covered[0].reason.contains("up to 16 MiB"), "{plan:?}");
}

#[tokio::test]
async fn a_change_that_can_not_be_told_is_not_made() {
    #[derive(Debug)]
    struct Broken;
    impl SnapshotSink for Broken {
        fn keep(&self, _: Vec<u8>) -> BoxFuture<'_, Result<String, String>> {
            Box::pin(std::future::ready(Err("no room".to_owned())))
        }
        fn record(&self, _: CallSnapshot) -> BoxFuture<'_, Result<(), String>> {
            Box::pin(std::future::ready(Err("disk full".to_owned())))
        }
    }
    let trial = Trial::with_file("a.txt", "before\n");
    for (tool, input) in [
        ("write", json!({"path": "a.txt", "content": "after\n"})),
        ("bash", json!({"command": "echo after > a.txt"})),
    ] {
        let runtime = ToolRuntime { snapshots: Some(Arc::new(Broken)), ..trial.runtime() };
        let ToolOutcome::Error { text, .. } = trial.tool(tool).run(input, runtime).await else {
            panic!("{tool} went on");
        };
        assert!(text.contains("disk full"), "{text}");
        assert_eq!(trial.text("a.txt"), "before\n");
    }
}

/// A rewind sets no bit that makes a program run as somebody else, and makes no link that leads out.
#[tokio::test]
async fn a_move_gives_no_rights_and_leads_nowhere_else() {
    use std::os::unix::fs::PermissionsExt;

    use attache_core::snapshot::{FileKeeper, FileMove, FileState};
    let world = Rewindable::new();
    let shelf = Arc::clone(&world.kept.shelf);
    let digest = shelf.keep(b"#!/bin/sh\n".to_vec()).await.unwrap();
    let root = world.trial.root.clone();
    world.trial.put("dir/inside", "x");
    let to = |name: &str, to: FileState| FileMove {
        path: root.join(name),
        keeper: FileKeeper::Disk,
        from: FileState::Absent,
        to,
        made_directories: 0,
    };
    let link = |name: &str, target: &str| to(name, FileState::Link { target: target.into() });
    let moves = vec![
        to("program", FileState::File { digest, blob: None, mode: Some(0o7755) }),
        link("dir/good", "inside"),
        link("bad0", "dir/../dir2"),
        link("up", "dir/inside"),
        link("bad1", "/etc/passwd"),
        link("bad2", "../outside"),
        link("dir/bad3", "../../outside"),
    ];
    let outcomes = world.mover.move_files(world.trial.site(), shelf, moves).await;
    let moved: Vec<bool> = outcomes.iter().map(|outcome| *outcome == MoveOutcome::Moved).collect();
    assert_eq!(moved, [true, true, false, true, false, false, false], "{outcomes:?}");
    let mode = root.join("program").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    assert!(
        ["bad0", "bad1", "bad2", "dir/bad3"].iter().all(|name| root.join(name).symlink_metadata().is_err())
    );
}

/// No client removes a file: one that was made goes from the disk, if that has what the editor shows.
#[tokio::test]
async fn a_file_that_was_made_in_an_editor_goes_if_it_was_saved() {
    let mut trial = Trial::new();
    let editor = FakeEditor::with_texts();
    trial.client = Some(Arc::new(editor.clone()));
    let files = Rewindable::on(trial);
    for name in ["new/saved.txt", "new/unsaved.txt", "other/changed.txt"] {
        files.call("write", json!({"path": name, "content": "made\n"})).await.unwrap();
    }
    files.trial.put("new/saved.txt", "made\r\n");
    files.trial.put("other/changed.txt", "made\nand formatted\n");
    let became = files.move_files(0, MoveDirection::Back).await;
    let expected = Became {
        moved: names(&["new/saved.txt"]),
        conflicts: names(&["other/changed.txt"]),
        not_covered: names(&["new/unsaved.txt"]),
    };
    assert_eq!(became, expected);
    assert_eq!(files.trial.names(), ["other"], "directories that were made go, too");
    assert_eq!(files.trial.text("other/changed.txt"), "made\nand formatted\n");
    assert_eq!(editor.buffer(files.root().join("new/unsaved.txt")).unwrap(), "made\n");
    editor.behave(Manner::Silent);
    assert_eq!(files.move_files(0, MoveDirection::Forward).await.not_covered.len(), 3);
}
