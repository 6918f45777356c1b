//! Files that are none, and what is asked for and not there.

use super::*;

#[tokio::test]
async fn a_broken_file_is_named_and_the_rest_is_taken() {
    let moving = Moving::with_everything();
    moving.put(".claude/projects/x/broken.jsonl", "{\"type\":\"user\"\nnonsense\n{}\n");
    moving.put(".codex/sessions/2026/11/19/rollout-x.jsonl", "{\"type\":\"session_meta\",\"payload\":{}}\n");
    moving.put(".gemini/tmp/x/chats/session-x.json", "{\"messages\":[]}");
    moving.put(".claude/projects/x/binary.jsonl", "\u{0}\u{1}\u{2}");
    let said = moving.import(&["--all"]).await;
    assert_eq!(said.code, Some(0), "what could be read was taken: {}", said.told);
    assert_eq!(said.answer.matches("imported ses_").count(), 5, "{}", said.answer);
    for (file, why) in [
        ("broken.jsonl", "line 1: it is not JSON"),
        ("rollout-x.jsonl", "it has no id"),
        ("session-x.json", "it has no sessionId"),
        ("binary.jsonl", "line 1: it is not JSON"),
    ] {
        let line = said
            .told
            .lines()
            .find(|line| line.contains(file))
            .unwrap_or_else(|| panic!("{file}: {}", said.told));
        assert!(line.starts_with("left out: ") && line.contains(why), "{line}");
    }
}

#[tokio::test]
async fn a_file_that_breaks_behind_its_beginning_does_not_stop_the_others() {
    let moving = Moving::with_everything();
    let file = moving.place(".claude/projects/-srv-shop/64b73ad4.jsonl");
    let long = "x".repeat(2 * 1024 * 1024);
    let mut text = std::fs::read_to_string(&file).unwrap().lines().take(6).collect::<Vec<_>>().join("\n");
    text.push_str(&format!("\n{{\"type\":\"x\",\"y\":\"{long}\"}}\nbroken here\n{{}}\n"));
    std::fs::write(&file, text).unwrap();
    let said = moving.import(&["--all"]).await;
    assert_eq!(said.code, Some(1), "{}", said.told);
    assert_eq!(said.answer.matches("imported ses_").count(), 4, "{}", said.answer);
    assert!(
        said.told.contains("left out: claude Fix the total in the cart: line 8: it is not JSON"),
        "{}",
        said.told
    );
    assert_eq!(moving.home.orphans(), []);
}

#[tokio::test]
async fn what_a_database_of_others_can_not_give_is_said() {
    let moving = Moving::new();
    moving
        .put(".local/share/opencode/opencode.db", "this is no database, however long it may be, and no more");
    let file = moving.put(".local/share/goose/sessions/sessions.db", "");
    Connection::open(file).unwrap().execute_batch("CREATE TABLE other (id)").unwrap();
    let said = moving.import(&[]).await;
    assert_eq!(said.code, Some(1), "{}", said.answer);
    assert!(said.told.contains("opencode.db: the database can't be read"), "{}", said.told);
    assert!(said.told.contains("sessions.db: it has no tables of sessions and messages"), "{}", said.told);
    assert!(said.told.contains("no session of another agent was found"), "{}", said.told);
}

#[tokio::test]
async fn what_is_not_there_is_an_error_in_one_line() {
    let moving = Moving::with_everything();
    for (arguments, words) in [
        (&["claude", "7"][..], "there is no session 7"),
        (&["codex", "nope"], "there is no session nope"),
        (&["goose", "--from", "/nowhere"], "--from: there is nothing at /nowhere"),
        (&["--all", "--workspace", "/nowhere"], "--workspace /nowhere"),
    ] {
        let said = moving.import(arguments).await;
        assert_eq!((said.code, said.answer.as_str()), (Some(1), ""), "{arguments:?}: {}", said.told);
        assert!(said.told.contains(words) && said.told.lines().count() == 1, "{arguments:?}: {}", said.told);
    }
    assert_eq!(moving.import(&["cursor"]).await.code, Some(2));
}

#[tokio::test]
async fn nothing_that_a_terminal_would_obey_is_written() {
    let moving = Moving::new();
    let sample = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/samples/claude.jsonl"),
    )
    .unwrap();
    let sample = sample.replace("Fix the cart's total", "evil \\u001b[2J\\u202e");
    moving.put(".claude/projects/x/1.jsonl", &sample);
    for arguments in [&[][..], &["--all"]] {
        let said = moving.import(arguments).await;
        let all = format!("{}{}", said.answer, said.told);
        assert!(all.contains("evil \\u{1b}[2J\\u{202e}"), "{all}");
        assert!(!all.contains('\u{1b}') && !all.contains('\u{202e}'), "{all}");
    }
}
