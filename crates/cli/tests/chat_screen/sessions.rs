//! Sessions: going back, copies, coming again, modes.

use crate::stage::{READY, Stage};

const TALK: &str = "on \"first\"\n  text \"Answer one.\"\non \"second\"\n  text \"Answer two.\"\non *\n  text \"Something else.\"\n";

fn talked() -> Stage {
    let stage = Stage::new(TALK);
    stage.chat("");
    stage.say("first");
    stage.wait_for_rest("Answer one.");
    stage.say("second");
    stage.wait_for_rest("Answer two.");
    stage
}

#[test]
fn a_rewind_brings_the_prompt_back() {
    let stage = talked();
    stage.tmux.press(&["Escape"]);
    stage.tmux.wait_for("esc again goes back");
    stage.tmux.press(&["Escape"]);
    stage.tmux.wait_for("Go back to before");
    stage.tmux.press(&["Enter"]);
    stage.tmux.wait_until("the prompt in the composer", |screen| {
        screen.contains("Went back; ")
            && screen.trim_end().lines().rev().take(4).any(|line| line == "› second")
    });
}

#[test]
fn a_fork_goes_on_in_a_copy() {
    let stage = talked();
    stage.say("/fork");
    stage.wait_for_rest("This is a copy");
    stage.say("third");
    stage.wait_for_rest("Something else.");
}

#[test]
fn a_session_is_gone_on_with_and_chosen_from_a_list() {
    let stage = talked();
    stage.tmux.press(&["C-d"]);
    stage.tmux.wait_for("Go on with: attache chat --resume ses_");
    stage.chat("--continue");
    let screen = stage.wait_for_rest("Answer two.");
    assert!(screen.contains("› first") && screen.contains("Answer one."), "{screen}");
    stage.tmux.press(&["C-d"]);
    stage.tmux.wait_for("shell>");
    stage.tmux.write_line("clear; \"$ATTACHE\" chat --resume");
    stage.tmux.wait_for("Open a session");
    stage.tmux.press(&["Enter"]);
    stage.wait_for_rest("Answer two.");
}

#[test]
fn the_mode_is_changed_and_shown() {
    let stage = Stage::new(TALK);
    stage.chat("");
    stage.tmux.wait_until("the mode", |screen| screen.to_lowercase().contains("build"));
    stage.tmux.press(&["BTab"]);
    stage.tmux.wait_until("the next mode", |screen| {
        screen.contains(READY) && screen.trim_end().lines().last().unwrap().to_lowercase().starts_with("plan")
    });
}

#[test]
fn the_model_is_changed_from_a_list_and_shown() {
    let stage = Stage::new("model second context=8000\non *\n  text \"An answer.\"\n");
    stage.chat("");
    stage.tmux.wait_for("Build");
    stage.say("/model");
    stage.tmux.wait_for("type to search");
    stage.tmux.write("second");
    stage.tmux.wait_until("the one row", |screen| {
        screen.contains("› second") || screen.contains("› script/second")
    });
    stage.tmux.press(&["Enter"]);
    let is_shown = |screen: &str| {
        screen.contains(READY) && screen.trim_end().lines().last().is_some_and(|line| line.contains("second"))
    };
    stage.tmux.wait_until("the model", is_shown);
    stage.say("hello");
    stage.wait_for_rest("An answer.");
}

#[test]
fn what_was_used_is_told() {
    let stage = Stage::new("on *\n  usage input=1200 output=30\n  text \"An answer.\"\n");
    stage.chat("");
    stage.say("hello");
    stage.wait_for_rest("An answer.");
    stage.say("/usage");
    stage.wait_for_rest("1200");
}
