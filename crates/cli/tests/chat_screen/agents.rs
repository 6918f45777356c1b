//! The agent at the other end: another program, killed, absent.

use attache_testkit::processes::Process;
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::Stage;

fn agent_of(stage: &Stage) -> Process {
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
