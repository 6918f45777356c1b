//! Names, commands and outputs made to deceive who reads them: an editor is told them so that they are seen, a
//! terminal never gets them raw.

use std::path::PathBuf;

use attache_testkit::binary::Home;
use serde_json::{Value, json};

/// Clears the screen, turns the text around, hides between letters, smuggles a tag, sets the title of the
/// window.
const NAME: &str = "a\u{1b}[2Jb\u{202e}c\u{200b}d\u{e0041}e\u{9b}31m\u{1b}]0;x\u{7}f";

const DECEIVING: [char; 6] = ['\u{1b}', '\u{202e}', '\u{200b}', '\u{e0041}', '\u{9b}', '\u{7}'];

fn deceiving(text: &str) -> bool {
    text.contains(DECEIVING)
}

/// Every string that an editor shows as it is: titles, names of options and blocks of text. What programs
/// compare (arguments, diffs, paths) is not among them.
fn shown(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(all) => all.iter().for_each(|inner| shown(inner, found)),
        Value::Object(fields) => {
            for (key, inner) in fields {
                match (key.as_str(), inner) {
                    ("rawInput" | "rawOutput" | "_meta", _) => {}
                    ("title" | "name" | "text", Value::String(text)) => found.push(text.clone()),
                    _ => shown(inner, found),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn script() -> String {
    let quoted = |value: Value| value.to_string();
    let command = format!("printf '%s' \"$(cat *.txt)\" '{NAME}'; ls; echo {NAME} >&2");
    format!(
        "on *\n  call bash {bash}\n  call read {read}\n  call read {missing}\n  call write {write}\n  call glob {glob}\n  \
         call grep {grep}\n  call web_fetch {fetch}\n  call todo {todo}\n  ---\n  call bash {fails}\n  ---\n  text \"done\"\n",
        bash = quoted(json!({"command": command, "description": NAME})),
        read = quoted(json!({"path": format!("{NAME}.txt")})),
        missing = quoted(json!({"path": format!("{NAME}.missing")})),
        write = quoted(json!({"path": format!("{NAME}.new"), "content": NAME})),
        glob = quoted(json!({"pattern": "*"})),
        grep = quoted(json!({"pattern": "a"})),
        fetch = quoted(json!({"url": format!("http://127.0.0.1:9/{NAME}")})),
        todo = quoted(json!({"todos": [{"content": NAME, "status": "pending"}]})),
        fails = quoted(json!({"command": format!("echo '{NAME}'; sleep 9"), "timeout_ms": 200})),
    )
}

struct Played {
    home: Home,
    session: String,
    received: Vec<Value>,
    place: PathBuf,
}

/// A session in a directory of that name, with a file of that name that holds it.
async fn played() -> Played {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), &script());
    let place = home.workspace().join(NAME);
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join(format!("{NAME}.txt")), format!("{NAME}\n")).unwrap();
    let agent = home.start_with(&["-vvv"]);
    agent.client.always_choose("allow_once");
    agent.initialize().await;
    let session = agent.new_session(&place).await;
    agent.prompt(&session, NAME).await.unwrap();
    let received = agent.client.received();
    agent.finish(&home).await;
    Played { home, session, received, place }
}

#[tokio::test]
async fn an_editor_is_told_of_calls_so_that_they_are_seen() {
    let played = played().await;
    let mut looked_at = 0;
    for message in &played.received {
        let subject = match message["method"].as_str() {
            Some("session/request_permission") => &message["params"],
            Some("session/update") => {
                let update = &message["params"]["update"];
                let kind = update["sessionUpdate"].as_str().unwrap_or_default();
                if !kind.starts_with("tool_call") {
                    continue;
                }
                update
            }
            _ => continue,
        };
        let mut found = Vec::new();
        shown(subject, &mut found);
        looked_at += found.len();
        for text in found {
            assert!(!deceiving(&text), "{text:?} in {subject}");
        }
    }
    assert!(looked_at > 30, "{looked_at} texts only");
    let told = serde_json::to_string(&played.received).unwrap();
    assert!(told.contains("\\\\u{202e}") && told.contains("␛[2J"), "what is hidden is seen: {told}");
}

#[tokio::test]
async fn a_terminal_gets_nothing_raw() {
    let played = played().await;
    let name = format!("no-{NAME}");
    let place = played.place.to_str().unwrap();
    for (arguments, is_told) in [
        (vec!["sessions", "list"], true),
        (vec!["sessions", "show", &played.session], true),
        (vec!["sessions", "show", &name], true),
        (vec!["sessions", "export", &name, "--output", place], true),
        (vec!["doctor"], false),
        (vec!["--config", &name, "--print-config"], true),
        (vec!["--store", &name, "--print-config"], true),
        (vec!["models"], false),
        (vec!["auth", "login", &name], true),
    ] {
        let mut command = played.home.command();
        command.args(&arguments).current_dir(&played.place).stdin(std::process::Stdio::null());
        let output = command.output().await.unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert!(!deceiving(&said), "{arguments:?}: {said:?}");
        if is_told {
            assert!(said.contains("b\\u{202e}c") || said.contains("\\U0000202E"), "{arguments:?}: {said}");
        }
    }
    let log = played.home.log();
    assert!(log.len() > 100 && !deceiving(&log), "{log:?}");
}
