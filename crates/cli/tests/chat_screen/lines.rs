//! `--plain`: lines only, each once, for screen readers and terminals that can do no more.

use crate::stage::Stage;

const SCRIPT: &str = "\
on \"write it\"
  call write {\"path\":\"a.txt\",\"content\":\"new\\n\"}
  ---
  text \"After the call.\"
on \"long\"
  stream 4000 \"x \" every 50ms
on *
  text \"An answer with `code`.\"
";

fn plain(stage: &Stage, arguments: &str) {
    stage.tmux.write_line(&format!("clear; \"$ATTACHE\" chat {arguments}; echo \"code $?\""));
    stage.tmux.wait_until("the invitation", |screen| {
        screen.trim_end().lines().last().is_some_and(|line| line.trim() == ">")
    });
}

#[test]
fn a_talk_a_question_and_a_list_are_answered_by_lines() {
    let stage = Stage::new(SCRIPT);
    plain(&stage, "--plain");
    stage.say("hello");
    stage.tmux.wait_for("An answer with code.");
    stage.say("write it");
    let screen = stage.tmux.wait_for("Reject, and say what to do instead");
    assert!(screen.contains("Make this change?") && screen.contains("1 + new"), "{screen}");
    assert!(screen.contains("and enter · ctrl-c stops the turn"), "{screen}");
    let number =
        screen.lines().find(|line| line.contains("Allow once")).unwrap().trim().chars().next().unwrap();
    stage.say(&number.to_string());
    stage.tmux.wait_for("After the call.");
    assert_eq!(stage.workspace_file("a.txt").as_deref(), Some("new\n"));
    stage.say("/mode");
    let screen = stage.tmux.wait_for("A number, words to search");
    assert!(screen.contains("1 Build (now)"), "{screen}");
    stage.say("");
    stage.say("/keys");
    stage.tmux.wait_for("stop; twice: leave");
    stage.say("/quit");
    stage.tmux.wait_for("code 0");
    // Nothing was drawn: no line is there twice, and no cursor was moved.
    let all = stage.tmux.everything();
    assert_eq!(all.matches("An answer with code.").count(), 1, "{all}");
    assert_eq!(all.matches("After the call.").count(), 1, "{all}");
    assert!(!all.contains("Say what to do. /") && !all.contains("────"), "{all}");
    // No key is named that does nothing here.
    for key in ["esc ", "ctrl-o", "ctrl-s", "shift-tab", "alt-", "/vi", "↑"] {
        assert!(!all.contains(key), "{key}: {all}");
    }
}

#[test]
fn ctrl_c_ends_the_turn_and_twice_the_talk() {
    let stage = Stage::new(SCRIPT);
    plain(&stage, "--plain");
    stage.say("long");
    // The first prompt has a name by then: the turn is under way.
    std::thread::sleep(std::time::Duration::from_millis(500));
    stage.tmux.press(&["C-c"]);
    stage.tmux.wait_for("Stopped.");
    std::thread::sleep(std::time::Duration::from_secs(2));
    stage.tmux.press(&["C-c"]);
    // One signal is told before the next one comes: two at once are one.
    let is_told = |screen: &str| {
        screen.rsplit("Stopped.").next().is_some_and(|behind| behind.contains("ctrl-c again leaves"))
    };
    stage.tmux.wait_until("the word of caution", is_told);
    stage.tmux.press(&["C-c"]);
    stage.tmux.wait_for("code ");
}

#[test]
fn a_dumb_terminal_gets_lines_without_being_asked() {
    let stage = Stage::of_size(SCRIPT, (80, 24), &[]);
    stage.tmux.write_line("export TERM=dumb");
    plain(&stage, "");
    stage.say("hello");
    stage.tmux.wait_for("An answer with code.");
    stage.tmux.press(&["C-d"]);
    stage.tmux.wait_for("code 0");
}
