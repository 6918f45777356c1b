//! What the user brings along: commands of their own, pictures, earlier sessions.

use crate::stage::{READY, Stage};

/// A script whose model says what it was sent.
const ECHO: &str = "on \"why?\"\n  text \"I read it.\"\non *\n  text \"Something.\"\n";

fn last_prompt(stage: &Stage) -> String {
    let output = stage.home.command().into_std().args(["sessions", "list", "--json"]).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let output = stage.home.command().into_std().args(["sessions", "export", &id]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_command_of_the_users_own_is_run_shown_and_told() {
    let stage = Stage::new(ECHO);
    stage.chat("");
    stage.say("!printf 'one\\ntwo\\n'; exit 3");
    let screen = stage.wait_for_rest("exit status: 3");
    assert!(screen.contains("✗ $ printf") && screen.contains("  two"), "{screen}");
    assert!(screen.contains("Goes to the agent with your next prompt."), "{screen}");
    stage.say("why?");
    stage.wait_for_rest("I read it.");
    let stored = last_prompt(&stage);
    assert!(stored.contains("one\\ntwo\\n(exit status: 3)"), "{stored}");
    // Esc ends one that does not end.
    stage.say("!sleep 600");
    stage.tmux.wait_for("$ sleep 600");
    stage.tmux.press(&["Escape"]);
    stage.tmux.wait_for("signal: 9");
    assert!(!stage.home.processes().iter().any(|process| process.command.contains("sleep 600")));
}

#[test]
fn a_picture_is_attached_by_its_path_and_sent() {
    let stage = Stage::new("model sees images=true\non *\n  text \"I see it.\"\n");
    let png = include_bytes!("dot.png");
    std::fs::write(stage.home.workspace().join("a shot.png"), png).unwrap();
    stage.chat("--model script/sees");
    stage.tmux.write("what is ");
    stage.tmux.paste(&format!("'{}'", stage.home.workspace().join("a shot.png").display()));
    stage.tmux.wait_for("what is [image a shot.png #1]");
    stage.tmux.press(&["Enter"]);
    stage.wait_for_rest("I see it.");
    let stored = last_prompt(&stage);
    assert!(stored.contains("\"mediaType\":\"image/png\""), "{stored}");
}

#[test]
fn an_earlier_session_is_mentioned_and_what_was_said_goes_along() {
    let stage = Stage::new(
        "on \"remember blue\"\n  text \"Blue it is.\"\non \"which\"*\n  text \"It was blue.\"\non *\n  text \"Else.\"\n",
    );
    stage.chat("");
    stage.say("remember blue");
    stage.wait_for_rest("Blue it is.");
    stage.say("/new");
    stage.wait_for_rest("A new session.");
    stage.tmux.write("which @blue");
    stage.tmux.wait_for("session  20");
    stage.tmux.press(&["Tab"]);
    stage.tmux.wait_for("which @\"remember blue\"");
    stage.tmux.press(&["Enter"]);
    stage.wait_for_rest("It was blue.");
    let stored = last_prompt(&stage);
    assert!(stored.contains("session:///remember-blue.md") && stored.contains("Blue it is."), "{stored}");
}

#[test]
fn a_prompt_that_waits_comes_back_with_what_it_holds() {
    let stage = Stage::new("on \"long\"\n  stream 400 \"x \" every 50ms\non *\n  text \"Got it.\"\n");
    stage.chat("");
    stage.say("long");
    stage.tmux.wait_for("x x");
    stage.tmux.paste(&"a line\n".repeat(60));
    stage.tmux.press(&["Enter"]);
    stage.tmux.wait_for("waits: [pasted 60 lines #1]");
    stage.tmux.press(&["Up"]);
    stage.tmux.wait_for("› [text 60 lines #1]");
    stage.tmux.press(&["Enter", "Escape"]);
    stage.wait_for_rest("Got it.");
    assert!(last_prompt(&stage).contains(&"a line\\n".repeat(60)));
}

#[test]
fn the_line_of_facts_says_what_holds_commands() {
    let stage = Stage::new(ECHO);
    stage.chat("");
    stage.tmux.wait_until("the sandbox", |screen| screen.contains(READY) && screen.contains("no sandbox"));
}
