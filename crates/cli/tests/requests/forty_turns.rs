//! What a long session costs: forty turns of work, and the bytes of all requests beside those of the bare
//! conversation, in which every result is sent as the file or the program gave it.

use std::fmt::Write as _;

use super::*;

const TURNS: usize = 40;

/// Of the bare conversation, the system prompt and the tools included.
const AIM: f64 = 0.88;

/// A conversation as it grows, and the sum of what each of its requests would hold.
#[derive(Default)]
struct Bare {
    length: usize,
    sent: usize,
}

impl Bare {
    fn said(&mut self, text: &str) {
        self.length += text.len();
    }

    fn request(&mut self) {
        self.sent += self.length;
    }
}

/// A source file of a few kilobytes.
fn source(number: usize) -> String {
    (0..120).fold(String::new(), |mut text, line| {
        writeln!(text, "    let value_{line} = compute({number}, {line}); // step {line}").unwrap();
        text
    })
}

/// One turn: search, read, change, look at the difference, and a word. Twice somebody looks at too much.
fn calls(turn: usize, files: &[String]) -> Vec<(&'static str, Value, String)> {
    let number = turn % files.len();
    let path = format!("src/file_{number}.rs");
    let (old, new) = (format!("compute({number}, {turn})"), format!("compute({number}, {turn}, {turn})"));
    let matches: String = (0..files.len())
        .map(|file| format!("src/file_{file}.rs:8:    let value_7 = compute({file}, 7); // step 7\n"))
        .collect();
    let mut calls = vec![
        ("grep", json!({ "pattern": "value_7 ", "path": "src" }), matches),
        ("read", json!({ "path": path }), files[number].clone()),
        ("edit", json!({ "path": path, "old_string": old, "new_string": new }), "done".to_owned()),
        (
            "bash",
            json!({ "command": format!("head -60 {path}") }),
            files[number].lines().take(60).map(|line| format!("{line}\n")).collect(),
        ),
    ];
    match turn {
        9 => calls.push(("read", json!({ "path": "bundle.min.js" }), bundle())),
        19 => calls.push(("bash", json!({ "command": "cat log.txt" }), log())),
        _ => {}
    }
    calls
}

/// On one line, as a minifier leaves it.
fn bundle() -> String {
    "function a(b){return b+1};".repeat(8_000)
}

fn log() -> String {
    (0..5_000).fold(String::new(), |mut text, line| {
        writeln!(text, "2026-01-01T00:00:00Z worker {line} finished its job").unwrap();
        text
    })
}

#[tokio::test]
async fn forty_turns_cost_less_than_the_bare_conversation() {
    let files: Vec<String> = (0..10).map(source).collect();
    let (mut answers, mut bare) = (Vec::new(), Bare::default());
    for turn in 0..TURNS {
        bare.said(&prompt(turn));
        for (index, (name, arguments, result)) in calls(turn, &files).into_iter().enumerate() {
            let words = format!("Next I use {name}.");
            let mut delta = call(&format!("call_{turn}_{index}"), name, &arguments);
            delta["content"] = words.as_str().into();
            answers.push(step(&delta, "tool_calls"));
            bare.request();
            [words, arguments.to_string(), result].iter().for_each(|text| bare.said(text));
        }
        answers.push(step(&json!({ "content": "Changed as you asked." }), "stop"));
        bare.request();
        bare.said("Changed as you asked.");
    }
    let requests = answers.len();
    let case = Case::with("openai-chat", answers, 4_000_000, "approval = \"edits\"\n").await;
    let root = case.home.workspace();
    std::fs::create_dir(root.join("src")).unwrap();
    files.iter().enumerate().for_each(|(number, text)| {
        std::fs::write(root.join(format!("src/file_{number}.rs")), text).unwrap();
    });
    std::fs::write(root.join("bundle.min.js"), bundle()).unwrap();
    std::fs::write(root.join("log.txt"), log()).unwrap();
    let agent = case.home.start();
    let session = agent.open_session(&case.home).await;
    for turn in 0..TURNS {
        agent.prompt(&session, &prompt(turn)).await.unwrap();
    }
    agent.finish(&case.home).await;
    let bodies = case.bodies();
    assert_eq!(bodies.len(), requests);
    let sent: usize = bodies.iter().map(Vec::len).sum();
    let share = sent as f64 / bare.sent as f64;
    println!("{requests} requests, {sent} bytes, {share:.3} of the bare conversation");
    assert!(share <= AIM, "{share:.3}");
}

fn prompt(turn: usize) -> String {
    format!(
        "Please change step {turn} so that it knows its own number, and show me the beginning of the file."
    )
}
