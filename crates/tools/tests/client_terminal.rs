//! `bash` in a terminal of the client: the same results, the same sandbox, and nothing left behind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use attache_core::ports::ToolOutcome;
use attache_core::ports::delegate::{DelegateError, TerminalLoss};
use attache_core::ports::tool::{Presentation, Shown};
use attache_sandbox::Level;
use attache_testkit::terminals::{Fault, Step, TerminalClient};
use serde_json::json;

use crate::bash::{alive, mark, output, wait_until};
use crate::kill::{VICTIM, Victim};
use crate::trial::{Trial, names, shown_text};

/// A cancelled call has 2.5 s by contract.
const CANCEL_TIME: Duration = Duration::from_millis(2_500);

/// Whoever is killed, nothing of a command outlives this.
const SURVIVAL_TIME: Duration = Duration::from_secs(3);

const LEVELS: [Level; 3] = [Level::None, Level::Reduced, Level::Full];

fn borrowed(mut trial: Trial) -> (Trial, TerminalClient) {
    let client = TerminalClient::default();
    trial.client = Some(Arc::new(client.clone()));
    (trial, client)
}

fn shows_the_terminal(presentation: &Presentation) -> bool {
    matches!(&presentation.content[..], [Shown::Terminal { terminal_id, .. }] if terminal_id == "term_1")
}

#[tokio::test]
async fn the_result_is_that_of_a_shell_of_our_own_and_the_terminal_is_shown() {
    let (trial, client) = borrowed(Trial::new());
    let input = json!({"command": "echo out; echo err >&2; pwd; exit 3"});
    let (data, presentation) = trial.done("bash", input.clone()).await;
    let (local, _) = Trial::new().done("bash", json!({"command": "echo out; echo err >&2; exit 3"})).await;
    assert_eq!(data, format!("out\nerr\n{}\n[exit 3]", trial.root.display()));
    assert_eq!(local, "out\nerr\n[exit 3]");
    assert_eq!(presentation.metadata.as_ref().unwrap().exit_code, Some(3));
    assert!(shows_the_terminal(&presentation), "{presentation:?}");
    let shown = trial.progress.shown.lock().unwrap();
    assert_eq!(shown.len(), 1);
    assert!(shows_the_terminal(&shown[0]) && shown[0].title == presentation.title, "{shown:?}");
    assert_eq!(client.asked(), [Step::Create, Step::Wait, Step::Output, Step::Release]);
}

#[tokio::test]
async fn the_terminal_is_shown_while_the_command_runs() {
    let (trial, _) = borrowed(Trial::new());
    let command = "until [ -e go ]; do sleep 0.01; done; echo gone";
    let running = trial.run("bash", json!({"command": command}));
    let release = async {
        wait_until("the terminal is shown", || !trial.progress.shown.lock().unwrap().is_empty()).await;
        trial.put("go", "");
    };
    let (outcome, ()) = tokio::join!(running, release);
    assert!(matches!(outcome, ToolOutcome::Output { data, .. } if data == "gone\n[exit 0]"));
}

#[tokio::test]
async fn a_command_gets_neither_the_environment_of_the_client_nor_its_keyboard() {
    for level in [Level::None, Level::Reduced, Level::Full] {
        let (trial, _) = borrowed(Trial::held(level));
        let output = output(&trial, "cat; env").await;
        assert!(!output.contains("canary"), "{level:?}: {output}");
        assert!(output.contains("TERM=dumb") && output.contains("PATH="), "{level:?}: {output}");
    }
}

#[tokio::test]
async fn the_sandbox_holds_in_a_terminal_of_the_client() {
    for level in [Level::Reduced, Level::Full] {
        let (trial, client) = borrowed(Trial::held(level));
        let outside = trial.base.join("outside");
        // At the full level this goes to a directory of the command's own.
        output(&trial, &format!("echo kept > inside; echo lost > {}", outside.display())).await;
        assert_eq!(trial.text("inside"), "kept\n", "{level:?}");
        assert!(!outside.exists(), "{level:?}");
        assert_eq!(client.asked().len(), 4);
        wait_until("place-holders are removed", || trial.names() == ["inside"]).await;
    }
}

#[tokio::test]
async fn a_time_out_ends_it_and_tells_the_output_until_then() {
    let (trial, client) = borrowed(Trial::new());
    let mark = mark();
    let command = format!("echo before; sleep {mark}");
    let error = trial.failed("bash", json!({"command": command, "timeout_ms": 700})).await;
    assert!(error.starts_with("bash: timed out after 700 ms and ended. "), "{error}");
    assert!(error.ends_with("; output until then:\nbefore\n"), "{error}");
    assert_eq!(alive(&mark), Vec::<String>::new(), "an end that was told was seen");
    assert_eq!(client.asked(), [Step::Create, Step::Wait, Step::Output, Step::Release]);
}

/// A command that goes on after a polite word, with something that has left its group.
fn stubborn(mark: &str) -> String {
    format!("echo on; trap '' TERM HUP INT; (setsid sleep {mark} &); touch on; sleep {mark}; sleep {mark}")
}

/// Runs a stubborn command until `act`; gives the error and how long the call took from there on.
async fn interrupted(trial: &Trial, mark: &str, act: impl AsyncFnOnce()) -> (String, Duration) {
    let running = trial.run("bash", json!({"command": stubborn(mark)}));
    let acting = async {
        wait_until("the command runs", || trial.root.join("on").exists()).await;
        act().await;
        Instant::now()
    };
    let (outcome, acted) = tokio::join!(running, acting);
    let ToolOutcome::Error { text, .. } = outcome else { panic!("{outcome:?}") };
    (text, acted.elapsed())
}

#[tokio::test]
async fn cancel_ends_everything_and_says_so_whatever_the_client_kills() {
    for level in LEVELS {
        // A client that answers no kill is as good: the tree is not the client's.
        for fault in [None, Some(Fault::Silent), Some(Fault::Pending)] {
            let (trial, client) = borrowed(Trial::held(level));
            if let Some(fault) = fault {
                [Step::Kill, Step::Output, Step::Release].iter().for_each(|step| client.fail(*step, fault));
            }
            let mark = mark();
            let (text, time) = interrupted(&trial, &mark, async || trial.cancel.cancel()).await;
            assert_eq!(text, "bash: cancelled and ended; output until then:\non\n", "{level:?} {fault:?}");
            assert!(time < CANCEL_TIME, "{level:?} {fault:?}: {time:?}");
            let left: Vec<_> =
                alive(&mark).into_iter().filter(|line| !line.contains("/terminals/")).collect();
            assert_eq!(left, Vec::<String>::new(), "an end that was told was seen");
            client.until_asked(Step::Release).await;
            assert!(client.asked().contains(&Step::Kill));
            wait_until("the relay is gone", || alive(&mark).is_empty()).await;
            nothing_is_left(&trial).await;
        }
    }
}

#[tokio::test]
async fn a_terminal_that_the_user_closes_ends_everything() {
    for level in LEVELS {
        let (trial, client) = borrowed(Trial::held(level));
        let mark = mark();
        let (text, time) = interrupted(&trial, &mark, async || client.close_terminals()).await;
        let told =
            "bash: the user's editor closed its terminal: cancelled and ended; output until then:\non\n";
        assert_eq!(text, told, "{level:?}");
        assert!(time < SURVIVAL_TIME && alive(&mark).is_empty(), "{level:?}: {time:?}");
        nothing_is_left(&trial).await;
    }
}

#[tokio::test]
async fn a_client_that_is_killed_takes_everything_with_it() {
    for level in LEVELS {
        let (trial, client) = borrowed(Trial::held(level));
        let mark = mark();
        let (text, time) = interrupted(&trial, &mark, async || client.vanish()).await;
        assert!(text.contains("closed its terminal: cancelled and ended"), "{level:?}: {text}");
        assert!(time < SURVIVAL_TIME && alive(&mark).is_empty(), "{level:?}: {time:?}");
    }
}

#[tokio::test]
async fn victim_that_borrows_a_terminal() {
    let Ok(argument) = std::env::var(VICTIM) else { return };
    let (level, mark) = argument.split_once(' ').unwrap();
    let level = LEVELS.into_iter().find(|known| format!("{known:?}") == level).unwrap();
    let (trial, _client) = borrowed(Trial::held(level));
    trial.run("bash", json!({"command": stubborn(mark)})).await;
}

#[tokio::test]
async fn everything_goes_when_we_are_killed() {
    for level in LEVELS {
        let (mark, place) = (mark(), tempfile::tempdir().unwrap());
        let argument = format!("{level:?} {mark}");
        let victim =
            Victim::start_in(place.path(), "client_terminal::victim_that_borrows_a_terminal", &argument);
        // The relay is seen by what it was told to show.
        let is_complete =
            || alive(&mark).len() >= 4 && alive(&mark).iter().any(|line| line.contains("/bash -c"));
        wait_until("the command runs", is_complete).await;
        let killed = Instant::now();
        victim.kill();
        wait_until("all are gone", || alive(&mark).is_empty()).await;
        assert!(killed.elapsed() < SURVIVAL_TIME, "{level:?}: {:?}", killed.elapsed());
    }
}

#[tokio::test]
async fn a_client_shows_the_command_and_is_given_no_environment() {
    let (trial, client) = borrowed(Trial::held(Level::Full));
    output(&trial, "echo 'it is'").await;
    let [command] = &client.commands()[..] else { panic!("one command") };
    assert!(command.program.ends_with("/bash"), "{command:?}");
    assert_eq!(command.arguments, ["-c", r"'echo '\''it is'\'''"]);
    assert!(command.environment.is_empty() && command.directory == trial.root, "{command:?}");
}

#[tokio::test]
async fn a_command_of_any_length_and_any_bytes_is_run_as_it_is() {
    let (trial, client) = borrowed(Trial::new());
    let long = "x".repeat(100_000);
    assert_eq!(output(&trial, &format!("printf %s {long} | wc -c")).await, "100000\n");
    assert_eq!(output(&trial, "printf 'a\\0b\\377' | od -An -tx1").await, " 61 00 62 ff\n");
    assert!(client.losses().is_empty(), "{:?}", client.losses());
}

#[tokio::test]
async fn a_client_is_given_the_exit_code_and_the_whole_output() {
    let (trial, client) = borrowed(Trial::new());
    trial.run("bash", json!({"command": "seq 20000; exit 7"})).await;
    let (text, exit) = client.last_seen();
    assert_eq!(exit.unwrap().code, Some(7));
    assert_eq!(text.lines().count(), 20_000);
}

async fn nothing_is_left(trial: &Trial) {
    let place = trial.workspace.scratch.parent().unwrap().join(".sandbox/terminals");
    wait_until("the terminal's directory is gone", || names(&place).is_empty()).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_killed_and_released() {
    let (trial, client) = borrowed(Trial::new());
    let mark = mark();
    let runtime = trial.runtime();
    let tool = Arc::clone(trial.tool("bash"));
    let input = json!({"command": format!("touch on; sleep {mark}")});
    let running = tokio::spawn(async move { tool.run(input, runtime).await });
    wait_until("the command runs", || trial.root.join("on").exists()).await;
    running.abort();
    client.until_asked(Step::Release).await;
    assert!(client.asked().contains(&Step::Kill));
    wait_until("the command is gone", || alive(&mark).is_empty()).await;
}

#[tokio::test]
async fn a_terminal_that_comes_after_the_cancellation_is_killed_and_released() {
    let (trial, client) = borrowed(Trial::new());
    client.fail(Step::Create, Fault::Held);
    let running = trial.run("bash", json!({"command": "sleep 600"}));
    let cancel = async {
        client.until_asked(Step::Create).await;
        trial.cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(running, cancel);
    assert!(
        matches!(outcome, ToolOutcome::Error { text, .. } if text == "bash: cancelled before it was started")
    );
    client.let_go();
    client.until_asked(Step::Release).await;
    assert!(client.asked().contains(&Step::Kill));
}

#[tokio::test]
async fn a_client_that_opens_no_terminal_is_not_asked_again_and_the_command_runs() {
    let (trial, client) = borrowed(Trial::new());
    client.fail(Step::Create, Fault::Silent);
    let (data, presentation) = trial.done("bash", json!({"command": "echo made"})).await;
    assert_eq!(data, "made\n[exit 0]");
    assert_eq!(shown_text(&presentation), "```\nmade\n```\n\nexit status 0");
    assert_eq!(client.losses(), [TerminalLoss::NotOpened(DelegateError::Silent)]);
    output(&trial, "true").await;
    assert_eq!(client.asked(), [Step::Create]);
}

/// In a container or on another machine our program is not there.
#[tokio::test]
async fn a_client_that_can_t_start_our_program_is_not_asked_again_and_the_command_runs_once() {
    let place = tempfile::tempdir().unwrap();
    let lost = place.path().join("lost");
    std::fs::write(&lost, "#!/bin/sh\nexit 127\n").unwrap();
    std::fs::set_permissions(&lost, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for program in ["/no/such/program", lost.to_str().unwrap()] {
        let (trial, client) = borrowed(Trial::new());
        client.start_instead(program);
        assert_eq!(output(&trial, "echo once >> runs; cat runs").await, "once\n", "{program}");
        assert_eq!(client.losses().len(), 1, "{program}");
    }
}

#[tokio::test]
async fn a_client_that_starts_nothing_costs_some_seconds_once() {
    let (trial, client) = borrowed(Trial::new());
    client.start_instead("/bin/cat");
    client.fail(Step::Wait, Fault::Pending);
    let started = Instant::now();
    assert_eq!(output(&trial, "echo once >> runs; cat runs").await, "once\n");
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(client.losses(), [TerminalLoss::NotStarted]);
    client.until_asked(Step::Release).await;
    assert_eq!(output(&trial, "echo next").await, "next\n");
}

#[tokio::test]
async fn a_shell_of_the_client_runs_nothing_of_a_command() {
    for level in LEVELS {
        let (trial, client) = borrowed(Trial::held(level));
        client.start_instead("/bin/sh");
        let input = json!({"command": "echo once >> runs; cat runs; exit 3"});
        let (data, _) = trial.done("bash", input).await;
        assert_eq!(data, "once\n[exit 3]", "{level:?}");
        assert_eq!(client.losses(), [TerminalLoss::NotStarted], "{level:?}");
    }
}

#[tokio::test]
async fn what_a_client_has_run_by_means_of_its_own_is_not_run_again() {
    for level in LEVELS {
        let (trial, client) = borrowed(Trial::held(level));
        client.start_instead("/bin/false");
        let (data, presentation) = trial.done("bash", json!({"command": "echo once >> runs"})).await;
        assert!(data.as_str().is_some_and(|text| text.ends_with("[exit 1]")), "{level:?}: {data}");
        assert!(!trial.root.join("runs").exists(), "{level:?}");
        assert!(shows_the_terminal(&presentation), "{presentation:?}");
        let unheld = if level == Level::None { vec![] } else { vec![TerminalLoss::Unheld] };
        assert_eq!(client.losses(), unheld, "{level:?}");
    }
}

#[tokio::test]
async fn a_client_that_falls_silent_costs_no_result() {
    for step in [Step::Wait, Step::Output, Step::Release] {
        for fault in [Fault::Silent, Fault::Pending] {
            let (trial, client) = borrowed(Trial::new());
            client.fail(step, fault);
            assert_eq!(output(&trial, "echo there").await, "there\n", "{step:?} {fault:?}");
            client.until_asked(Step::Release).await;
        }
    }
}

/// A command that prints faster than the client shows is not held up, and neither is its end.
#[tokio::test]
async fn a_flood_is_ended_in_time() {
    let (trial, _client) = borrowed(Trial::new());
    let running = trial.run("bash", json!({"command": "touch on; yes"}));
    let cancel = async {
        wait_until("the command runs", || trial.root.join("on").exists()).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        trial.cancel.cancel();
        Instant::now()
    };
    let (outcome, cancelled) = tokio::join!(running, cancel);
    assert!(cancelled.elapsed() < CANCEL_TIME, "{:?}", cancelled.elapsed());
    assert!(
        matches!(outcome, ToolOutcome::Error { text, .. } if text.starts_with("bash: cancelled and ended"))
    );
}

#[tokio::test]
async fn long_output_is_kept_in_a_file() {
    let (trial, _) = borrowed(Trial::new());
    let (data, presentation) =
        trial.done("bash", json!({"command": "head -c 3000000 /dev/zero | tr '\\0' a"})).await;
    let metadata = presentation.metadata.unwrap();
    assert!(metadata.truncated);
    assert_eq!(std::fs::read_to_string(metadata.output_path.unwrap()).unwrap().len(), 3_000_000);
    assert!(data.as_str().unwrap().contains("the whole output is in "));
}

#[tokio::test]
async fn a_killed_shell_is_a_failed_call() {
    let (trial, _) = borrowed(Trial::new());
    let error = trial.failed("bash", json!({"command": "kill -9 $$"})).await;
    assert_eq!(error, "bash: the shell was killed by signal 9; there was no output");
}
