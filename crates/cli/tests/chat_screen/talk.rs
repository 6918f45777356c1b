//! Talking: answers, tools, the queue, cancelling, steering, completions, a resize in the middle.

use crate::stage::Stage;

#[test]
fn an_answer_streams_in_and_stays_in_the_scrollback() {
    let stage = Stage::new(
        "on \"hello\"\n  reasoning \"They greet.\"\n  text \"Good **day**.\\n\\n```rust\\nfn main() {}\\n```\\n\"\non \"more\"\n  stream 40 \"line\\n\\n\"\n",
    );
    stage.chat("");
    stage.say("hello");
    let screen = stage.wait_for_rest("Good day.");
    assert!(screen.contains("› hello") && screen.contains("    fn main() {}"), "{screen}");
    assert!(screen.contains("Thought (2 words): They greet."), "{screen}");
    stage.say("more");
    stage.wait_for_rest("  line");
    let all = stage.tmux.everything();
    assert_eq!(all.lines().filter(|line| line.trim_end() == "  line").count(), 40, "{all}");
    assert_eq!(all.matches("Good day.").count(), 1, "{all}");
}

#[test]
fn a_tool_call_is_one_line_with_its_state() {
    let stage =
        Stage::new("on \"read it\"\n  call read {\"path\":\"a.txt\"}\n  ---\n  text \"It says one.\"\n");
    std::fs::write(stage.home.workspace().join("a.txt"), "one\n").unwrap();
    stage.chat("");
    stage.say("read it");
    let screen = stage.wait_for_rest("It says one.");
    assert!(screen.contains("✓ Read a.txt"), "{screen}");
    stage.tmux.press(&["C-o"]);
    stage.tmux.wait_for("Calls and thoughts");
    stage.tmux.press(&["Escape"]);
    stage.wait_for_rest("It says one.");
}

#[test]
fn prompts_wait_in_a_queue_that_is_seen_and_can_be_changed() {
    let stage = Stage::new(
        "on \"long\"\n  stream 400 \"x \" every 50ms\non \"second\"\n  text \"Second answer.\"\non \"changed\"\n  text \"Changed answer.\"\n",
    );
    stage.chat("");
    stage.say("long");
    stage.tmux.wait_for("x x");
    stage.say("second");
    stage.tmux.wait_for("waits: second");
    stage.tmux.press(&["Up"]);
    stage.tmux.wait_for("› second");
    stage.tmux.press(&["C-u"]);
    stage.say("changed");
    stage.tmux.wait_for("waits: changed");
    stage.tmux.press(&["Escape"]);
    let screen = stage.wait_for_rest("Changed answer.");
    assert!(screen.contains("Stopped.") && !screen.contains("Second answer."), "{screen}");
}

#[test]
fn a_steering_prompt_goes_into_the_running_turn() {
    let stage = Stage::new(
        "on \"work\"\n  call bash {\"command\":\"until [ -e go ]; do sleep 0.05; done\"}\n  ---\n  text \"Not steered.\"\non \"this way\"\n  text \"Steered.\"\n",
    );
    stage.chat("--approval all");
    stage.say("work");
    stage.tmux.wait_for("until [ -e go ]");
    stage.tmux.write("this way");
    stage.tmux.press(&["C-s"]);
    stage.tmux.wait_for("waits: this way");
    std::fs::write(stage.home.workspace().join("go"), "").unwrap();
    let screen = stage.wait_for_rest("Steered.");
    assert!(screen.contains("› this way") && !screen.contains("Not steered."), "{screen}");
}

#[test]
fn escape_stops_a_turn() {
    let stage = Stage::new("on \"long\"\n  stream 4000 \"x \" every 50ms\non *\n  text \"Here again.\"\n");
    stage.chat("");
    stage.say("long");
    stage.tmux.wait_for("x x");
    stage.tmux.press(&["Escape"]);
    stage.wait_for_rest("Stopped.");
    stage.say("and now");
    stage.wait_for_rest("Here again.");
}

#[test]
fn files_and_commands_are_completed() {
    let stage = Stage::new("on *\n  text \"Seen.\"\n");
    std::fs::create_dir(stage.home.workspace().join("src")).unwrap();
    std::fs::write(stage.home.workspace().join("src/main.rs"), "").unwrap();
    stage.chat("");
    stage.tmux.write("look at @main");
    stage.tmux.wait_for("› @src/main.rs");
    stage.tmux.press(&["Tab"]);
    stage.tmux.wait_for("› look at @src/main.rs");
    stage.tmux.press(&["Enter"]);
    stage.wait_for_rest("Seen.");
    stage.tmux.write("/sta");
    stage.tmux.wait_for("› /status");
    stage.tmux.press(&["Escape", "C-u"]);
    stage.wait_for_rest("Seen.");
}

#[test]
fn a_large_paste_is_one_mark_and_a_small_one_is_text() {
    let stage = Stage::new("on *\n  text \"Got it.\"\n");
    stage.chat("");
    stage.tmux.paste(&"a line\n".repeat(60));
    stage.tmux.wait_for("[pasted 60 lines #1]");
    stage.tmux.paste(" two\nlines");
    stage.tmux.wait_for("lines #1] two");
    stage.tmux.press(&["Enter"]);
    stage.wait_for_rest("Got it.");
}

#[test]
fn a_resize_in_the_middle_of_an_answer_loses_nothing() {
    let word = |number: usize| format!("  delay 40ms\n  text \"word{number} \"\n");
    let numbered: String = (1..=60).map(word).collect();
    let stage = Stage::new(&format!("on \"count\"\n{numbered}  text \"\\n\\nEnd.\"\n"));
    stage.chat("");
    stage.say("count");
    stage.tmux.wait_for("word5 ");
    stage.tmux.resize(40, 12);
    let is_later = |screen: &str| (15..60).any(|number| screen.contains(&format!("word{number} ")));
    stage.tmux.wait_until("later words", is_later);
    stage.tmux.resize(100, 30);
    stage.wait_for_rest("End.");
    let all = stage.tmux.everything();
    for number in 1..=60 {
        let word = format!("word{number}");
        let count = all.split_whitespace().filter(|shown| *shown == word).count();
        // What stood on the screen when it became narrow, a terminal may have pushed into its scrollback.
        let most = if number < 15 { 2 } else { 1 };
        assert!((1..=most).contains(&count), "{word} is there {count} times:\n{all}");
    }
    assert_eq!(all.matches("› count").count(), 1, "{all}");
}
