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

#[test]
fn a_tiny_terminal_is_no_reason_to_fail() {
    let stage = Stage::of_size(TALK, (80, 24), &[]);
    stage.chat("");
    stage.tmux.resize(12, 4);
    stage.say("hello");
    std::thread::sleep(std::time::Duration::from_millis(500));
    stage.tmux.resize(80, 24);
    // A key that comes in the very moment of a resize is read with the next one.
    std::thread::sleep(std::time::Duration::from_millis(500));
    stage.tmux.press(&["Left"]);
    stage.wait_for_rest("An answer");
}

/// Model, file, tool and title: whoever speaks, the terminal obeys nothing of it.
#[test]
fn no_escape_sequence_and_no_hidden_character_reaches_the_terminal() {
    let script = "on *\n  text \"before \\u001b]0;owned\\u0007\\u001b[31mred \\u202e\\u200b\\u{e0041} after\"\n  call bash {\"command\":\"printf 'x\\\\033[41my\\\\033]0;owned\\\\007z'\"}\n  ---\n  text \"Done.\"\n";
    let script = script.replace("\\u{e0041}", "\\udb40\\udc41");
    let stage = Stage::new(&script);
    stage.chat("--approval all");
    stage.say("go");
    let screen = stage.wait_for_rest("Done.");
    for shown in ["\\u{1b}]0;owned", "\\u{202e}", "\\u{200b}", "\\u{e0041}"] {
        assert!(screen.contains(shown), "{shown}: {screen}");
    }
    let painted = stage.tmux.painted();
    assert!(
        !painted.contains("\x1b[41m") && !painted.contains('\u{202e}') && !painted.contains('\u{200b}'),
        "{painted:?}"
    );
}
