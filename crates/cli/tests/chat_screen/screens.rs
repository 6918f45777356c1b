//! The whole chat on four terminals: what is seen at each stop, compared with reviewed screens.
//! `UPDATE_EXPECT=1` rewrites them.

use std::path::Path;

use crate::stage::{READY, Stage};

const SCRIPT: &str = "\
on \"look at it\"
  reasoning \"I should look at the file.\"
  text \"I look at `a.rs` first.\\n\\n## What I see\\n\\n1. The sum is **wrong**.\\n2. See [the book](https://doc.rust-lang.org/book/).\\n\\n```rust\\nfn total() -> u32 { 1 + 1 } // two\\n```\\n\\n| file | lines |\\n|---|---:|\\n| a.rs | 3 |\\n\\n\"
  call read {\"path\":\"a.rs\"}
  ---
  call edit {\"path\":\"a.rs\",\"old_string\":\"let sum = a - b;\",\"new_string\":\"let sum = a + b;\"}
  ---
  call bash {\"command\":\"seq 1 9\"}
  ---
  text \"Done.\"
";

/// What differs from run to run: the title's time, names of directories.
pub(crate) fn settled(stage: &Stage, screen: &str) -> String {
    let workspace = stage.home.workspace().display().to_string();
    let lines: Vec<&str> = screen.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n").replace(&workspace, "WORKSPACE") + "\n"
}

pub(crate) fn holds(name: &str, shown: &str) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chat_screen/screens").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{name}: UPDATE_EXPECT=1 rewrites it");
}

fn walk(name: &str, size: (u16, u16), variables: &[(&str, &str)]) {
    let stage = Stage::of_size(SCRIPT, size, variables);
    std::fs::write(stage.home.workspace().join("a.rs"), "fn f() {\n    let sum = a - b;\n}\n").unwrap();
    stage.chat("");
    // What holds commands is told last, where there is room for it.
    let is_known = |screen: &str| screen.contains("no sandbox") || size.0 < 50 && screen.contains("Ask");
    holds(&format!("start-{name}"), &settled(&stage, &stage.tmux.wait_until("the facts", is_known)));
    stage.say("look at it");
    stage.tmux.wait_for("Make this change?");
    let asked = stage.tmux.wait_for("esc stops");
    // The place of the workspace is longer or shorter from run to run, and so is what is cut of it.
    let asked: String = asked
        .lines()
        .filter(|line| !line.contains("changes to") && !line.contains("work/a.rs"))
        .map(|line| format!("{line}\n"))
        .collect();
    holds(&format!("asked-{name}"), &settled(&stage, &asked));
    stage.tmux.write("1");
    let screen = stage.wait_for_rest("Done.");
    holds(&format!("done-{name}"), &settled(&stage, &screen));
    stage.tmux.write("/");
    let screen =
        stage.tmux.wait_until("the commands", |screen| screen.contains("/keys") && !screen.contains(READY));
    holds(&format!("commands-{name}"), &settled(&stage, &screen));
    stage.tmux.press(&["Escape", "C-u"]);
    stage.tmux.wait_for(READY);
    stage.tmux.write("?");
    let screen = stage.tmux.wait_for("esc closes");
    holds(&format!("keys-{name}"), &settled(&stage, &screen));
}

#[test]
fn on_eighty_columns() {
    walk("80x24", (80, 24), &[]);
}

#[test]
fn on_two_hundred_columns() {
    walk("200x50", (200, 50), &[]);
}

#[test]
fn on_forty_columns() {
    walk("40x12", (40, 12), &[]);
}

#[test]
fn without_colours_and_unicode() {
    walk("bare", (80, 24), &[("NO_COLOR", "1"), ("LC_ALL", "C"), ("LANG", "C")]);
}
