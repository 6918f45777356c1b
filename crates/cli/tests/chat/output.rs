//! The forms of an answer: text, one object, updates as lines; in a pipe and on a terminal.

use std::io::Read;

use super::*;

const SCRIPT: &str = r#"
model paid price_input=1 price_output=2
on "look"
  reasoning "let me see"
  text "I look. "
  usage input=1000 output=100 reasoning=10 cache_read=50
  call glob {"pattern":"*.txt"}
  ---
  text "There is "
  text "nothing."
  usage input=2000 output=50
on "evil"
  text "a\u001b]0;title\u0007b\u202ec\u200bd\r\n"
on "long"
  stream 200000 "a line of text that fills the pipe\n"
"#;

#[tokio::test]
async fn one_object_says_all_of_it() {
    let home = home(SCRIPT);
    let ran = chat(&home, &["-p", "look", "--output", "json", "--model", "script/paid"]).await;
    assert_eq!((ran.code, ran.told.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(ran.said.lines().count(), 1, "{ran:?}");
    let mut object = ran.object();
    assert!(object["sessionId"].as_str().unwrap().starts_with("ses_"), "{object}");
    object["sessionId"] = json!("ses_…");
    assert!(object["costUsd"].as_f64().unwrap() > 0.0, "{object}");
    object["costUsd"] = json!("…");
    let expected = json!({
        "sessionId": "ses_…",
        "stopReason": "end_turn",
        "text": "I look. \n\nThere is nothing.",
        "usage": { "input": 3000, "output": 150, "reasoning": 10, "cache_read": 50, "cache_write": 0 },
        "costUsd": "…",
        "denied": [],
    });
    assert_eq!(object, expected);
}

#[tokio::test]
async fn lines_are_the_updates_and_the_object_is_the_last() {
    let home = home(SCRIPT);
    let ran = chat(&home, &["-p", "look", "--output", "jsonl"]).await;
    assert_eq!((ran.code, ran.told.as_str()), (Some(0), ""), "{ran:?}");
    let lines: Vec<Value> = ran.said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (object, updates) = lines.split_last().unwrap();
    assert_eq!(object["text"], "I look. \n\nThere is nothing.");
    let mut kinds: Vec<&str> = Vec::new();
    for update in updates {
        assert_eq!(update["sessionId"], object["sessionId"], "{update}");
        let kind = update["update"]["sessionUpdate"].as_str().unwrap();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    for kind in
        ["agent_thought_chunk", "agent_message_chunk", "tool_call", "tool_call_update", "usage_update"]
    {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
}

#[tokio::test]
async fn a_failed_start_is_an_object_too() {
    let home = home(SCRIPT);
    home.write_config("agent = \"nobody\"\n");
    let ran = chat(&home, &["-p", "look", "--output", "json"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.object()["error"].as_str().unwrap().contains("nobody"), "{ran:?}");
    assert_eq!(ran.object()["sessionId"], Value::Null);
}

#[tokio::test]
async fn a_pipe_gets_the_exact_text() {
    let home = home(SCRIPT);
    assert_eq!(chat(&home, &["-p", "evil"]).await.said, "a\x1b]0;title\x07b\u{202e}c\u{200b}d\r\n");
}

/// What it is doing is for who watches: each call once, and nothing in it that a terminal would obey.
#[tokio::test]
async fn progress_is_told_on_a_terminal_only() {
    let home = home("on *\n  call read {\"path\":\"a\\u001b[2Jb\"}\n  ---\n  text \"Done.\"\n");
    let (mut person, program) = attache_testkit::pseudo_terminal::open();
    let mut command = home.command();
    command.args(["chat", "-p", "look"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(program);
    let child = command.spawn().unwrap();
    drop(command);
    let reading = tokio::task::spawn_blocking(move || read_screen(&mut person));
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    let screen = tokio::time::timeout(PATIENCE, reading).await.unwrap().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Done.\n");
    let told: Vec<&str> = screen.lines().filter(|line| line.starts_with("· Read")).collect();
    assert!(told.len() == 1 && !screen.contains('\u{1b}'), "{screen:?}");
    let piped = chat(&home, &["-p", "look"]).await;
    assert_eq!((piped.code, piped.told.as_str()), (Some(0), ""));
}

fn read_screen(person: &mut std::fs::File) -> String {
    let (mut screen, mut bytes) = (Vec::new(), [0; 256]);
    // A terminal whose other side is gone is an error, not an end.
    while let Ok(count @ 1..) = person.read(&mut bytes) {
        screen.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8(screen).unwrap()
}

/// S14.
#[tokio::test]
async fn a_terminal_gets_nothing_that_it_would_obey() {
    let home = home(SCRIPT);
    let (mut person, program) = attache_testkit::pseudo_terminal::open();
    let mut command = home.command();
    command.args(["chat", "-p", "evil"]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(program).spawn().unwrap();
    // Our copies of the program's side would hold the terminal open.
    drop(command);
    let reading = tokio::task::spawn_blocking(move || read_screen(&mut person));
    let status = tokio::time::timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    let screen = tokio::time::timeout(PATIENCE, reading).await.unwrap().unwrap();
    assert!(status.success(), "{screen:?}");
    assert_eq!(screen, "a\\u{1b}]0;title\\u{7}b\\u{202e}c\\u{200b}d\r\n");
}

/// `attache chat -p … | head -1`.
#[tokio::test]
async fn a_reader_that_has_seen_enough_ends_the_run() {
    let home = home(SCRIPT);
    let mut command = home.command();
    command.args(["chat", "-p", "long"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0; 35];
    tokio::io::AsyncReadExt::read_exact(&mut stdout, &mut first).await.unwrap();
    assert_eq!(&first, b"a line of text that fills the pipe\n");
    drop(stdout);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn an_output_that_is_full_is_a_failure() {
    let home = home(SCRIPT);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = home.command();
    command.args(["chat", "-p", "look"]).stdin(Stdio::null()).stdout(full).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("No space left on device"), "{told}");
}
