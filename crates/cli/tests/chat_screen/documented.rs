//! The quick start and the tutorials, carried out as they are written: each command typed into a shell, each
//! prompt into the chat. Only the model is a script, and what needs a key or another's program is left out by
//! name.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{READY, Stage};

/// Beginnings of lines that are not typed here, and why.
const LEFT_OUT: [(&str, &str); 8] = [
    ("attache demo", "has a test of its own"),
    ("export ANTHROPIC_API_KEY", "a key"),
    ("attache auth login openai", "a key"),
    ("ollama ", "another's program"),
    ("attache models ollama", "another's program"),
    ("attache chat -p --model ollama/", "another's program"),
    ("jq ", "another's program, whose result is looked at"),
    ("attache chat --agent-command \"goose acp\"", "another's program"),
];

/// What is written for one's own model, and what stands for it here.
const FOR_OURS: [(&str, &str); 2] = [
    ("--model anthropic/claude-sonnet-5", "--model script/paid"),
    // The test's own repository has no other.
    ("git diff origin/main...", "git diff HEAD"),
];

/// The blocks of this language, without what indents them.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut is_within = None;
    for line in page.lines().map(str::trim) {
        match (line.strip_prefix("```"), is_within) {
            (Some(named), None) => {
                is_within = Some(named == language);
                if named == language {
                    blocks.push(String::new());
                }
            }
            (Some(_), Some(_)) => is_within = None,
            (None, Some(true)) => {
                if let Some(block) = blocks.last_mut() {
                    block.push_str(line);
                    block.push('\n');
                }
            }
            (None, _) => {}
        }
    }
    blocks
}

/// The commands of a page that are typed here.
fn commands(page: &str) -> Vec<String> {
    let lines: Vec<String> = blocks(page, "sh")
        .iter()
        .flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let is_typed = |line: &String| !LEFT_OUT.iter().any(|(beginning, _)| line.starts_with(beginning));
    let ours = |line: String| FOR_OURS.iter().fold(line, |line, (theirs, ours)| line.replace(theirs, ours));
    lines.into_iter().filter(is_typed).map(ours).collect()
}

/// A reader: a shell in a project under git, with `attache` where shells look.
struct Reader {
    stage: Stage,
    /// Goes with the test.
    _places: tempfile::TempDir,
    user: PathBuf,
    /// How many lines: what an earlier one left on the screen is no answer.
    typed: std::cell::Cell<u32>,
}

impl Reader {
    fn with(script: &str) -> Self {
        let places = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (programs, user) = (places.path().join("bin"), places.path().join("user"));
        std::fs::create_dir(&programs).unwrap();
        std::fs::create_dir(&user).unwrap();
        std::os::unix::fs::symlink(crate::stage::BINARY, programs.join("attache")).unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let variables = [("PATH", path.as_str()), ("HOME", user.to_str().unwrap())];
        let stage = Stage::of_size(
            &format!("model paid price_input=1 price_output=1\n{script}"),
            (160, 50),
            &variables,
        );
        let reader = Self { stage, _places: places, user, typed: std::cell::Cell::new(0) };
        let git = "git init -q -b main && git config user.name Ada && git config user.email ada@example.org && \
                   echo one > a.txt && git add . && git commit -qm one";
        reader.sh(git);
        reader
    }

    /// Before the shell is used.
    fn sh(&self, line: &str) {
        let mut command = Command::new("sh");
        let status = command.args(["-ec", line]).current_dir(self.stage.home.workspace()).status().unwrap();
        assert!(status.success(), "{line}");
    }

    /// Typed, and done without a fault.
    fn done(&self, line: &str) -> String {
        let number = self.typed.get() + 1;
        self.typed.set(number);
        let end = format!("line {number} ended with ");
        self.stage.tmux.write_line(&format!("clear; {line}; echo \"line {number} ended with $?\""));
        let is_over = |screen: &str| screen.lines().any(|line| line.starts_with(&end));
        let screen = self.stage.tmux.wait_until(line, is_over);
        assert!(screen.lines().any(|line| line == format!("{end}0")), "{line}:\n{screen}");
        screen
    }

    /// Typed; it opens the chat.
    fn chat(&self, line: &str) {
        self.stage.tmux.write_line(&format!("clear; {line}"));
        self.stage.tmux.wait_for(READY);
    }

    fn leave(&self) {
        self.stage.tmux.press(&["C-d"]);
        self.stage.tmux.wait_for("shell>");
    }
}

#[test]
fn the_quick_start_is_carried_out() {
    let page = include_str!("../../../../docs/quick-start.md");
    let reader = Reader::with("on *\n  text \"It starts in main.\"\n");
    let [doctor, chat, init] = commands(page).try_into().expect("three commands");
    assert!(reader.done(&doctor).contains("Ready."));
    reader.chat(&chat);
    reader.stage.wait_for_rest("It starts in main.");
    reader.leave();
    let settings = reader.user.join(".config/zed");
    std::fs::create_dir_all(&settings).unwrap();
    reader.stage.tmux.write_line(&format!("clear; {init}; echo \"ended with $?\""));
    reader.stage.tmux.wait_for("agent_servers");
    reader.stage.tmux.write_line("y");
    reader.stage.tmux.wait_for("ended with 0");
    assert!(std::fs::read_to_string(settings.join("settings.json")).unwrap().contains("attache"));
}

#[test]
fn the_tutorial_of_a_first_fix_is_carried_out() {
    let page = include_str!("../../../../docs/tutorials/first-fix.md");
    let prompts = blocks(page, "text");
    let [look, fix] = &prompts[..] else { panic!("two prompts: {prompts:?}") };
    let (look, fix) = (look.trim(), fix.trim());
    let reader = Reader::with(&format!(
        "on {}\n  call bash {{\"command\":\"git log --oneline\"}}\n  ---\n  text \"It splits an empty line.\"\n\
         on {}\n  call edit {{\"path\":\"a.txt\",\"old_string\":\"one\",\"new_string\":\"two\"}}\n  ---\n  text \"It is fixed.\"\n",
        serde_json::json!(look),
        serde_json::json!(fix),
    ));
    reader
        .sh("mkdir my-project && cd my-project && git init -q -b main && echo one > a.txt && git add . && \
               git -c user.name=Ada -c user.email=ada@example.org commit -qm one");
    let [go, status, chat] = commands(page).try_into().expect("three commands");
    reader.done(&go);
    assert!(reader.done(&status).contains("clean"));
    reader.chat(&chat);
    reader.stage.say(look);
    let is_asked =
        |screen: &str| screen.contains("It splits an empty line.") || screen.contains("Reject, and say");
    let screen = reader.stage.tmux.wait_until("an answer or a question", is_asked);
    // Without a sandbox every command asks.
    if screen.contains("Reject, and say") {
        reader.stage.tmux.write("1");
    }
    reader.stage.wait_for_rest("It splits an empty line.");
    reader.stage.say(fix);
    reader.stage.tmux.wait_for("Reject, and say");
    reader.stage.tmux.write("1");
    reader.stage.wait_for_rest("It is fixed.");
    reader.leave();
    assert_eq!(reader.stage.workspace_file("my-project/a.txt").as_deref(), Some("two\n"));
    // What is to be kept is a configuration that is read.
    let kept = blocks(page, "toml").concat();
    let config = reader.stage.home.home().join("config.toml");
    let before = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{before}\n{kept}")).unwrap();
    assert!(reader.done("attache doctor").contains("Ready."));
}

#[test]
fn the_tutorial_of_pipelines_is_carried_out() {
    let page = include_str!("../../../../docs/tutorials/ci.md");
    let reader = Reader::with(
        "on \"Is this change safe to merge?\"*\n  text \"{\\\"verdict\\\":\\\"good\\\"}\"\n\
         on \"Fix the failing test\"\n  call edit {\"path\":\"a.txt\",\"old_string\":\"one\",\"new_string\":\"two\"}\n  ---\n  text \"Fixed.\"\n\
         on *\n  text \"Nothing is wrong.\"\n",
    );
    let [schema] = blocks(page, "json").try_into().expect("one schema");
    std::fs::write(reader.stage.home.workspace().join("verdict.json"), schema).unwrap();
    let job = blocks(page, "yml").concat();
    let steps =
        job.lines().filter_map(|line| line.strip_prefix("- run: ")).filter(|line| !line.starts_with("npm"));
    for step in steps {
        let step = FOR_OURS.iter().fold(step.to_owned(), |step, (theirs, ours)| step.replace(theirs, ours));
        assert!(reader.done(&step).contains("Nothing is wrong."), "{step}");
    }
    assert!(reader.done("attache sessions show latest").contains("Nothing is wrong."));
    for command in commands(page) {
        reader.done(&command);
    }
    let result = reader.stage.workspace_file("result.json").expect("what jq would read");
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["value"]["verdict"], "good");
    assert_eq!(reader.stage.workspace_file("a.txt").as_deref(), Some("two\n"));
}

#[test]
fn the_tutorial_of_several_agents_is_carried_out() {
    let page = include_str!("../../../../docs/tutorials/several-agents.md");
    let reader = Reader::with("on *\n  text \"By what changes together.\"\n");
    let [review] = blocks(page, "markdown").try_into().expect("one agent");
    let agents: &Path = &reader.stage.home.home().join("agents");
    std::fs::create_dir(agents).unwrap();
    std::fs::write(agents.join("review.md"), review).unwrap();
    let [plan, serve] = commands(page).try_into().expect("two commands");
    reader.chat(&plan);
    let screen = reader.stage.wait_for_rest("By what changes together.");
    assert!(screen.trim_end().lines().last().unwrap().starts_with("Plan"), "{screen}");
    // The one that was just written is a mode, too.
    reader.stage.say("/mode");
    reader.stage.tmux.wait_until("its name", |screen| screen.to_lowercase().contains("review"));
    reader.stage.tmux.press(&["Escape"]);
    reader.leave();
    reader.stage.tmux.write_line(&format!("clear; {serve}; echo \"ended with $?\""));
    reader.stage.tmux.wait_for("Ctrl-D ends it.");
    reader.stage.tmux.press(&["C-d"]);
    reader.stage.tmux.wait_for("ended with 0");
}
