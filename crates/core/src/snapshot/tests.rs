//! Where files move, given the states before and after calls.

use super::*;

fn file(content: &str) -> FileState {
    FileState::File { digest: content.to_owned(), blob: None, mode: None }
}

fn change(path: &str, before: FileState, after: FileState) -> CallSnapshot {
    let file = FileSnapshot {
        path: path.into(),
        keeper: FileKeeper::Disk,
        before,
        after: Some(after),
        made_directories: 0,
    };
    CallSnapshot { title: "call".into(), files: vec![file], ..CallSnapshot::default() }
}

fn moves(plan: &FilePlan) -> Vec<(String, FileState, FileState)> {
    let listed = plan.moves.iter();
    listed.map(|moved| (moved.path.display().to_string(), moved.from.clone(), moved.to.clone())).collect()
}

#[test]
fn a_file_goes_from_what_the_last_call_left_to_what_the_first_found() {
    let calls = [
        change("/a", file("1"), file("2")),
        change("/b", FileState::Absent, file("x")),
        change("/a", file("2"), FileState::Absent),
    ];
    let back = plan(&calls, MoveDirection::Back);
    assert_eq!(
        moves(&back),
        [("/b".into(), file("x"), FileState::Absent), ("/a".into(), FileState::Absent, file("1"))]
    );
    let forward = plan(&calls, MoveDirection::Forward);
    assert_eq!(
        moves(&forward),
        [("/a".into(), file("1"), FileState::Absent), ("/b".into(), FileState::Absent, file("x"))]
    );
    assert!(back.conflicts.is_empty() && back.not_covered.is_empty());
}

#[test]
fn a_change_by_hand_between_two_calls_is_where_it_ends() {
    let calls = [change("/a", file("1"), file("2")), change("/a", file("by hand"), file("4"))];
    let back = plan(&calls, MoveDirection::Back);
    assert_eq!(moves(&back), [("/a".into(), file("4"), file("by hand"))]);
    assert_eq!(back.conflicts.len(), 1);
    assert_eq!(moves(&plan(&calls, MoveDirection::Forward)), [("/a".into(), file("by hand"), file("4"))]);
}

#[test]
fn what_was_not_kept_is_told_and_stays() {
    let unkept = FileState::Unkept { reason: "too large".into() };
    let mut open = change("/c", file("1"), file("2"));
    open.files[0].after = None;
    let calls = [
        change("/a", unkept.clone(), file("2")),
        change("/a", file("2"), file("3")),
        open,
        CallSnapshot { title: "make".into(), uncovered: Some("unknown".into()), ..CallSnapshot::default() },
    ];
    let back = plan(&calls, MoveDirection::Back);
    assert!(back.moves.is_empty() && back.conflicts.is_empty());
    let told: Vec<_> = back.not_covered.iter().map(|left| left.what.as_str()).collect();
    assert_eq!(told, ["make", "/a", "/c"]);
}

#[test]
fn what_comes_back_to_itself_is_not_touched() {
    let calls = [change("/a", file("1"), file("2")), change("/a", file("2"), file("1"))];
    assert_eq!(plan(&calls, MoveDirection::Back), FilePlan::default());
}

#[test]
fn a_snapshot_is_read_as_it_was_stored() {
    let mut call = change("/a", file("1"), FileState::Link { target: "/b".into() });
    call.files[0].keeper = FileKeeper::Client;
    call.files[0].made_directories = 2;
    let stored = serde_json::to_string(&call).unwrap();
    assert_eq!(serde_json::from_str::<CallSnapshot>(&stored).unwrap(), call);
}
