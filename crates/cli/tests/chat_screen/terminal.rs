//! The terminal: given back however it ends, small, without colours, without Unicode, and none at all.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{READY, Stage};

const TALK: &str = "on *\n  text \"An answer with `code` and ä.\"\n";

/// What raw mode would have changed.
fn assert_is_restored(stage: &Stage) {
    let is_back =
        |screen: &str| screen.trim_end().lines().last().is_some_and(|line| line.starts_with("shell>"));
    stage.tmux.wait_until("the shell's prompt", is_back);
    stage.tmux.write_line("clear; stty -a | grep -c -e '-icanon' -e '-echo ' -e '-isig'; echo loo''ked");
    let screen = stage.tmux.wait_for("looked");
    assert!(screen.lines().any(|line| line == "0"), "{screen}");
}

#[test]
fn leaving_gives_the_terminal_back() {
    let stage = Stage::new(TALK);
    stage.chat("");
    stage.say("hello");
    stage.wait_for_rest("An answer");
    stage.tmux.press(&["C-c", "C-c"]);
    let screen = stage.tmux.wait_for("Go on with");
    assert!(screen.contains("An answer with code") && !screen.contains(READY), "{screen}");
    assert_is_restored(&stage);
}

#[test]
fn a_signal_gives_it_back_too() {
    let stage = Stage::new(TALK);
    stage.chat("");
    let chat = stage.home.processes().into_iter().find(|process| process.command.contains(" chat")).unwrap();
    kill_process(Pid::from_raw(chat.pid).unwrap(), Signal::TERM).unwrap();
    stage.tmux.wait_until("the shell", |screen| screen.contains("shell>") && !screen.contains(READY));
    assert_is_restored(&stage);
}

#[test]
fn it_can_be_suspended_and_comes_back() {
    let stage = Stage::new(TALK);
    stage.chat("");
    stage.say("hello");
    stage.wait_for_rest("An answer");
    stage.tmux.press(&["C-z"]);
    stage.tmux.wait_for("Stopped");
    stage.tmux.write_line("fg");
    stage.tmux.wait_for(READY);
    stage.say("again");
    stage.wait_for_rest("› again");
}

#[test]
fn an_editor_of_the_users_own_writes_the_prompt() {
    let stage = Stage::of_size(
        TALK,
        (80, 24),
        &[("EDITOR", "sh -c 'echo from the editor >\"$1\"' sh"), ("VISUAL", "")],
    );
    stage.chat("");
    stage.tmux.press(&["C-g"]);
    stage.tmux.wait_for("› from the editor");
    stage.tmux.press(&["Enter"]);
    stage.wait_for_rest("An answer");
}

#[test]
fn forty_columns_are_enough() {
    let stage = Stage::of_size(TALK, (40, 12), &[]);
    stage.chat("");
    stage.say("hello");
    let screen = stage.wait_for_rest("An answer");
    assert!(screen.lines().all(|line| line.chars().count() <= 40), "{screen}");
}

#[test]
fn without_colours_and_unicode_nothing_else_is_shown() {
    let stage = Stage::of_size(TALK, (80, 24), &[("NO_COLOR", "1"), ("LC_ALL", "C"), ("LANG", "C")]);
    stage.chat("");
    stage.say("hello");
    stage.wait_for_rest("An answer");
    let painted = stage.tmux.painted();
    assert!(painted.is_ascii(), "{painted}");
    assert!(!["\x1b[31m", "\x1b[32m", "\x1b[36m"].iter().any(|code| painted.contains(code)), "{painted:?}");
}

#[tokio::test]
async fn without_a_terminal_it_says_what_to_do() {
    let home = attache_testkit::binary::Home::new(crate::stage::BINARY, TALK);
    let output = home.command().arg("chat").stdin(Stdio::null()).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("attache chat -p"), "{told}");
}
