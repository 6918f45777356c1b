//! What is around the talk: programs for other programs that a user types by hand, a chat with a server
//! elsewhere, the pickers of effort and approval, the clipboard, and all that the line of facts says.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use crate::stage::{READY, Stage};

#[test]
fn what_editors_and_agents_start_says_what_it_is_when_it_is_typed() {
    let stage = Stage::new("");
    for (command, words) in [
        ("acp", "attache acp is what an editor starts"),
        ("mcp serve", "attache mcp serve is what another agent starts"),
    ] {
        stage.tmux.write_line(&format!("clear; \"$ATTACHE\" {command}; echo \"code $?\""));
        let is_told = |screen: &str| screen.contains(words) && screen.contains("Ctrl-D ends it.");
        stage.tmux.wait_until(words, is_told);
        stage.tmux.press(&["C-d"]);
        stage.tmux.wait_for("code 0");
    }
}

/// `attache serve` on this home; ends with the test.
struct Served(Child);

impl Served {
    /// With the address that it says.
    fn start(stage: &Stage) -> (Self, String) {
        let mut command = stage.home.command().into_std();
        command.args(["serve", "--listen", "127.0.0.1:0"]).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = lines.map(Result::unwrap).find(|line| line.contains("http://")).expect("an address");
        let address = said.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        (Self(child), format!("http://{address}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().expect("end the server");
        self.0.wait().expect("its end");
    }
}

#[test]
fn a_chat_is_held_with_a_server_elsewhere() {
    let stage = Stage::new(
        "on \"write it\"\n  call write {\"path\":\"a.txt\",\"content\":\"new\\n\"}\n  ---\n  text \"After the call.\"\non *\n  text \"From afar.\"\n",
    );
    let (_server, address) = Served::start(&stage);
    stage.chat(&format!("--connect {address}"));
    stage.say("hello");
    stage.wait_for_rest("From afar.");
    stage.say("write it");
    stage.tmux.wait_for("Reject, and say what to do instead");
    stage.tmux.write("1");
    stage.wait_for_rest("After the call.");
    assert_eq!(stage.workspace_file("a.txt").as_deref(), Some("new\n"));
}

/// The last line of the screen, once it holds these words and the composer is there.
fn facts_with(stage: &Stage, words: &[&str]) -> String {
    let is_there = |screen: &str| {
        let last = screen.trim_end().lines().last().unwrap_or_default();
        screen.contains(READY) && words.iter().all(|word| last.contains(word))
    };
    stage.tmux.wait_until(&format!("{words:?} in the line of facts"), is_there)
}

#[test]
fn effort_and_approval_are_chosen_from_lists_and_shown() {
    let stage = Stage::of_size("model deep thought=low,high\non *\n  text \"ok\"\n", (120, 30), &[]);
    stage.chat("--model script/deep");
    stage.tmux.wait_for("Ask");
    stage.say("/effort");
    let screen = stage.tmux.wait_for("High");
    assert!(screen.contains("Low"), "{screen}");
    stage.tmux.write("high");
    stage.tmux.wait_until("one effort", |screen| screen.contains("High") && !screen.contains("Low"));
    stage.tmux.press(&["Enter"]);
    facts_with(&stage, &["High", "Ask"]);
    stage.say("/approval");
    stage.tmux.wait_for("Edits files in the workspace without asking");
    stage.tmux.write("accept edits");
    stage.tmux.wait_until("one approval", |screen| !screen.contains("Accept everything"));
    stage.tmux.press(&["Enter"]);
    facts_with(&stage, &["High", "Accept edits"]);
}

#[test]
fn a_picture_comes_out_of_the_clipboard() {
    // A clipboard that holds one picture.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(place.path().join("dot.png"), include_bytes!("dot.png")).unwrap();
    let program = place.path().join("wl-paste");
    let script = format!("#!/bin/sh\necho \"$*\" > '{0}/told'\ncat '{0}/dot.png'\n", place.path().display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap());
    let variables = [("PATH", path.as_str()), ("WAYLAND_DISPLAY", "wayland-0")];
    let script = "model sees images=true\non *\n  text \"I see it.\"\n";
    let stage = Stage::of_size(script, (80, 24), &variables);
    stage.chat("--model script/sees");
    stage.tmux.write("what is ");
    stage.tmux.press(&["C-v"]);
    stage.tmux.wait_for("what is [image clipboard #1]");
    stage.tmux.press(&["Enter"]);
    stage.wait_for_rest("I see it.");
    let told = std::fs::read_to_string(place.path().join("told")).unwrap();
    assert_eq!(told, "--no-newline --type image/png\n");
    // And one that holds none.
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    stage.tmux.press(&["C-v"]);
    stage.tmux.wait_for("the clipboard holds no picture");
}

#[test]
fn branch_cost_and_context_are_in_the_line_of_facts() {
    let script = "model paid context=8000 price_input=3 price_output=15\non *\n  usage input=4000 output=100000\n  text \"Dear.\"\n";
    let stage = Stage::of_size(script, (160, 30), &[]);
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        let status = command.args(arguments).current_dir(stage.home.workspace()).status().unwrap();
        assert!(status.success(), "git {arguments:?}");
    };
    git(&["init", "-q", "-b", "trunk"]);
    stage.chat("--model script/paid");
    facts_with(&stage, &["trunk"]);
    stage.say("hello");
    stage.wait_for_rest("Dear.");
    // 4,000 tokens at 3 dollars and 100,000 at 15 dollars a million.
    facts_with(&stage, &["$1.51", "% of 8k", "trunk"]);
    git(&["symbolic-ref", "HEAD", "refs/heads/topic"]);
    stage.say("again");
    facts_with(&stage, &["topic", "$3.02"]);
}

#[test]
fn a_file_is_found_among_a_hundred_thousand_while_one_types() {
    let stage = Stage::new("on *\n  text \"Seen.\"\n");
    for part in 0..100 {
        let directory = stage.home.workspace().join(format!("part{part}"));
        std::fs::create_dir(&directory).unwrap();
        for number in 0..1_000 {
            std::fs::File::create(directory.join(format!("file-{}.rs", part * 1_000 + number))).unwrap();
        }
    }
    stage.chat("");
    // At once, while the directories are still read.
    stage.tmux.write("look at @file-99999");
    stage.tmux.wait_for("look at @file-99999");
    stage.tmux.wait_for("› @part99/file-99999.rs");
    stage.tmux.press(&["Tab"]);
    stage.tmux.wait_for("› look at @part99/file-99999.rs");
    stage.tmux.press(&["Enter"]);
    stage.wait_for_rest("Seen.");
}
