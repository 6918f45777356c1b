//! One conversation, drawn on four terminals and compared with reviewed pictures.

use super::*;

/// A talk with a little of everything, stopped while a command runs.
fn busy(columns: u16, rows: u16, theme: ScreenTheme) -> ScreenState {
    let mut talk = talk_on(columns, rows, theme);
    let usage = UsageUpdate::new(24_000, 200_000).cost(Cost::new(0.0312, "USD"));
    talk.update(SessionUpdate::UsageUpdate(usage));
    say(&mut talk, "Fix the typo in a.txt and run the tests, please.");
    let thought = "The user wants a **typo** fixed. I look at the file first.";
    talk.update(SessionUpdate::AgentThoughtChunk(ContentChunk::new(thought.into())));
    answer(&mut talk, "I will *look* at `a.txt` first:\n\n1. read it\n2. fix it\n\n");
    answer(
        &mut talk,
        "```rust\nfn main() {\n    println!(\"hi\"); // a comment that is long enough to wrap\n}\n```\n",
    );
    answer(&mut talk, "\n| file | state |\n|---|---|\n| a.txt | has a typo |\n\n");
    let read = ToolCall::new("c1", "Read `a.txt`").kind(ToolKind::Read).status(ToolCallStatus::Completed);
    talk.update(SessionUpdate::ToolCall(read));
    let diff = Diff::new("/w/a.txt", "one\nthe second line\n").old_text("one\nteh second line\n".to_owned());
    let edit = ToolCall::new("c2", "Edit `a.txt`")
        .kind(ToolKind::Edit)
        .status(ToolCallStatus::Completed)
        .locations(vec![ToolCallLocation::new("/w/a.txt").line(12)])
        .content(vec![ToolCallContent::Diff(diff)]);
    talk.update(SessionUpdate::ToolCall(edit));
    let entry = |text: &str, status| PlanEntry::new(text, PlanEntryPriority::Medium, status);
    talk.update(SessionUpdate::Plan(Plan::new(vec![
        entry("fix the typo", PlanEntryStatus::Completed),
        entry("run the tests", PlanEntryStatus::InProgress),
    ])));
    let output: String = (1..=8).map(|number| format!("test number_{number} ... ok\n")).collect();
    let run = ToolCall::new("c3", "cargo test --workspace")
        .kind(ToolKind::Execute)
        .status(ToolCallStatus::InProgress)
        .content(vec![format!("```\n{output}```").into()]);
    talk.update(SessionUpdate::ToolCall(run));
    say(&mut talk, "Then commit it.");
    talk.at(Duration::from_secs(12));
    talk
}

fn asking(columns: u16, rows: u16, theme: ScreenTheme) -> ScreenState {
    let mut talk = talk_on(columns, rows, theme);
    say(&mut talk, "Change it");
    talk.at(Duration::from_secs(5));
    let diff = Diff::new("/w/src/lib.rs", "fn a() {}\nfn total() {}\n")
        .old_text("fn a() {}\nfn sum() {}\n".to_owned());
    let content: Vec<ToolCallContent> =
        vec![ToolCallContent::Diff(diff), "Asks because: it changes a file".to_owned().into()];
    let fields = ToolCallUpdateFields::new()
        .title("Edit `src/lib.rs`".to_owned())
        .kind(ToolKind::Edit)
        .locations(vec![ToolCallLocation::new("/w/src/lib.rs").line(41)])
        .content(content);
    let options = vec![
        PermissionOption::new("once", "Allow once", PermissionOptionKind::AllowOnce),
        PermissionOption::new(
            "always",
            "Always allow changes of `src/lib.rs` in this session",
            PermissionOptionKind::AllowAlways,
        ),
        PermissionOption::new("edits", "Allow all edits in the workspace", PermissionOptionKind::AllowAlways),
        PermissionOption::new("no", "Reject", PermissionOptionKind::RejectOnce),
    ];
    let request = RequestPermissionRequest::new("s", ToolCallUpdate::new("c", fields), options);
    talk.ask_permission(QuestionNumber(1), request);
    press(&mut talk, KeyCode::Down);
    talk
}

fn choosing(columns: u16, rows: u16, theme: ScreenTheme) -> ScreenState {
    let mut talk = talk_on(columns, rows, theme);
    talk.composer.files.add(["src/main.rs", "src/domain.rs", "README.md"].map(Into::into).into());
    type_in(&mut talk, "look at @main");
    talk
}

fn picture(mut talk: ScreenState) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in screen(&mut talk) {
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n") + "\n"
}

fn holds(name: &str, shown: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/screen/conversation/screens")
        .join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{name}: UPDATE_EXPECT=1 rewrites it");
}

type Scene = fn(u16, u16, ScreenTheme) -> ScreenState;

#[test]
fn the_screens_are_as_they_were_reviewed() {
    let scenes: [(&str, Scene); 3] = [("busy", busy), ("asking", asking), ("choosing", choosing)];
    for (scene, talk) in scenes {
        holds(&format!("{scene}-80x24"), &picture(talk(80, 24, RICH)));
        holds(&format!("{scene}-200x50"), &picture(talk(200, 50, RICH)));
        holds(&format!("{scene}-40x12"), &picture(talk(40, 12, RICH)));
        holds(&format!("{scene}-plain"), &picture(talk(80, 24, BARE)));
    }
}

#[test]
fn without_unicode_and_colours_the_screen_is_ascii_without_colours() {
    for talk in [busy, asking, choosing] {
        let mut talk = talk(80, 24, BARE);
        let mut lines = talk.take_finished();
        lines.extend(talk.view().lines);
        for line in lines {
            assert!(line.to_string().is_ascii(), "{line}");
            assert!(line.spans.iter().all(|span| span.style.fg.is_none()), "{line}");
        }
    }
}

#[test]
fn a_picture_is_named_and_a_link_shown() {
    let mut talk = talk();
    let image = agent_client_protocol_schema::v1::ImageContent::new("A".repeat(4000), "image/png");
    talk.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::Image(image))));
    assert_eq!(screen(&mut talk)[0], "  [image: image/png, 3 kB]");
}
