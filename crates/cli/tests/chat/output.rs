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
        "model": "script/paid",
        "text": "I look. \n\nThere is nothing.",
        "usage": { "input": 3000, "output": 150, "reasoning": 10, "cache_read": 50, "cache_write": 0 },
        "costUsd": "…",
        "denied": [],
        "notices": [],
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
    assert_eq!(ran.code, Some(1), "what is wrong was not typed: {ran:?}");
    assert!(ran.object()["error"].as_str().unwrap().contains("nobody"), "{ran:?}");
    assert_eq!(ran.object()["sessionId"], Value::Null);
}

/// A script reads no notice: whoever named a model gets that one, or the reason why not.
#[tokio::test]
async fn no_other_model_answers_than_the_one_that_was_chosen() {
    const WHY: &str = "anthropic/claude-sonnet-5 can't be used: no key: set ANTHROPIC_API_KEY, or `attache auth login anthropic`";
    let home = home(SCRIPT);
    let agents = home.home().join("agents");
    std::fs::create_dir(&agents).unwrap();
    let manifest = "---\nmode: all\ndescription: x\nmodel: anthropic/claude-sonnet-5\n---\nReview.\n";
    std::fs::write(agents.join("reviewer.md"), manifest).unwrap();
    chat(&home, &["-p", "look"]).await;
    for more in [
        &["--model", "anthropic/claude-sonnet-5"][..],
        &["--agent", "reviewer"],
        &["--continue", "--model", "anthropic/claude-sonnet-5"],
    ] {
        let ran = chat(&home, &[&["-p", "look"], more].concat()).await;
        assert_eq!((ran.code, ran.said.as_str()), (Some(1), ""), "{more:?}: {ran:?}");
        assert!(ran.told.contains(WHY) && ran.told.lines().count() == 1, "{more:?}: {ran:?}");
    }
    let config = std::fs::read_to_string(home.home().join("config.toml")).unwrap();
    let other = config.replace("script/default", "anthropic/claude-sonnet-5");
    std::fs::write(home.home().join("config.toml"), other).unwrap();
    let ran = chat(&home, &["-p", "look"]).await;
    assert_eq!((ran.code, ran.said.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.told.contains(WHY), "{ran:?}");
    let ran = chat(&home, &["-p", "look", "--model", "script/vison", "--output", "json"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.told.contains("there is no model `script/vison` in this configuration"), "{ran:?}");
}

#[tokio::test]
async fn notices_are_told_without_a_terminal_and_are_in_the_object() {
    let home = home(SCRIPT);
    let agents = home.home().join("agents");
    std::fs::create_dir(&agents).unwrap();
    std::fs::write(agents.join("bad.md"), "---\nmode: subagnt\ndescription: x\n---\nx\n").unwrap();
    let ran = chat(&home, &["-p", "look", "--output", "json"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.told.starts_with("attache: Some agents were left out: "), "{ran:?}");
    let notice = &ran.object()["notices"][0];
    assert_eq!(
        (&notice["severity"], &notice["title"]),
        (&json!("warning"), &json!("Some agents were left out"))
    );
    assert!(notice["description"].as_str().unwrap().contains("agents/bad.md: line 2"), "{notice}");
    // It is named where it was asked for.
    let ran = chat(&home, &["-p", "look", "--agent", "bad"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.told.contains("skipped the agent `bad`: ") && ran.told.contains("line 2"), "{ran:?}");
}

/// Nothing can be written: one sentence, with the way out.
#[tokio::test]
async fn a_home_that_can_not_be_written_is_told_once() {
    let home = home(SCRIPT);
    let mut command = home.command();
    command.args(["chat", "-p", "look"]).env("ATTACHE_HOME", "/proc/nowhere").stdin(Stdio::null());
    command.env("ANTHROPIC_API_KEY", "sk-x");
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().await.unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.starts_with("attache: can't write to /proc/nowhere"), "{told}");
    assert!(told.contains("Set ATTACHE_HOME to a directory of yours") && told.lines().count() == 1, "{told}");
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
