//! The agent at the other end: another program, killed, absent.

use attache_testkit::processes::Process;
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::Stage;

pub(crate) fn agent_of(stage: &Stage) -> Process {
    let is_agent =
        |process: &Process| process.command.ends_with("attache acp") && !process.command.contains(" chat ");
    stage.home.processes().into_iter().find(is_agent).expect("a running agent")
}

#[test]
fn a_killed_agent_is_started_again_and_nothing_on_the_screen_is_lost() {
    let stage = Stage::new("on \"one\"\n  text \"Answer one.\"\non \"two\"\n  text \"Answer two.\"\n");
    stage.chat("--agent-command \"$ATTACHE acp\"");
    stage.say("one");
    stage.wait_for_rest("Answer one.");
    // It is started again unless it ends at once.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let agent = agent_of(&stage);
    kill_process(Pid::from_raw(agent.pid).unwrap(), Signal::KILL).unwrap();
    stage.wait_for_rest("the session goes on");
    stage.say("two");
    let screen = stage.wait_for_rest("Answer two.");
    assert_eq!(screen.matches("Answer one.").count(), 1, "{screen}");
    assert!(screen.contains("The agent ended"), "{screen}");
}

#[test]
fn an_unknown_agent_is_an_error_in_one_line() {
    let stage = Stage::new("");
    stage.tmux.write_line("clear; \"$ATTACHE\" chat --agent-command 'no-such-agent --acp'; echo \"code $?\"");
    let screen = stage.tmux.wait_for("code 1");
    assert!(screen.contains("can't start the agent `no-such-agent`"), "{screen}");
}

#[test]
fn an_agent_on_the_official_sdk_is_talked_to_and_asks() {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    let program = std::path::PathBuf::from(peers).join("acp-sdk").join("agent.mjs");
    let stage = Stage::new("");
    stage.chat(&format!("--agent-command \"node '{}'\"", program.display()));
    stage.say("hello");
    stage.wait_for_rest("You said: hello");
    stage.say("delete it");
    let screen = stage.tmux.wait_for("esc stops the turn");
    assert!(
        screen.contains("Delete everything") && screen.contains("1 Yes") && screen.contains("2 No"),
        "{screen}"
    );
    stage.tmux.write("2");
    stage.wait_for_rest("the answer is no");
    // It can do neither, so neither is offered.
    stage.tmux.write("/");
    let screen = stage.tmux.wait_for("/keys");
    assert!(
        !screen.contains("/model") && !screen.contains("/fork") && !screen.contains("/resume"),
        "{screen}"
    );
    stage.tmux.press(&["Escape", "C-u", "C-d"]);
    stage.tmux.wait_for("shell>");
    assert_eq!(
        stage.home.processes().iter().filter(|process| process.command.contains("agent.mjs")).count(),
        0
    );
}

#[test]
fn an_agent_that_is_none_floods_or_speaks_another_version_is_a_clear_line() {
    const ROGUE: &str = include_str!("../chat/rogue.py");
    let stage = Stage::new("");
    std::fs::write(stage.home.workspace().join("rogue.py"), ROGUE).unwrap();
    for (fault, told) in [
        ("dies", "it said: boom"),
        ("version-7", "speaks version 7"),
        ("garbage", "this is no ACP agent"),
        ("floods-first", "messages without end"),
    ] {
        let line =
            format!("clear; \"$ATTACHE\" chat --agent-command 'python3 rogue.py {fault}'; echo \"code $?\"");
        stage.tmux.write_line(&line);
        let is_over = |screen: &str| screen.contains("code 1") && screen.contains(told);
        stage.tmux.wait_until(&format!("{fault}: {told}"), is_over);
    }
    // The terminal shows again what is typed.
    stage.tmux.write_line("clear; stty -a | grep -c -e '-icanon' -e '-echo '; echo loo''ked");
    let screen = stage.tmux.wait_for("looked");
    assert!(screen.lines().any(|line| line == "0"), "{screen}");
}
