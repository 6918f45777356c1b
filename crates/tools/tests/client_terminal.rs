//! `bash` in a terminal of the client: the same results, the same sandbox, and nothing left behind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::{Presentation, Shown};
use attache_testkit::terminals::{Fault, Step, TerminalClient};
use attache_tools::sandbox::Level;
use serde_json::json;

use crate::bash::{alive, mark, output, wait_until};
use crate::trial::Trial;

/// A cancelled call has 2.5 s by contract.
const CANCEL_TIME: Duration = Duration::from_millis(2_500);

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
async fn a_time_out_kills_and_tells_the_output_until_then() {
    let (trial, client) = borrowed(Trial::new());
    let mark = mark();
    let command = format!("echo before; sleep {mark}");
    let error = trial.failed("bash", json!({"command": command, "timeout_ms": 700})).await;
    assert!(
        error.starts_with(
            "bash: timed out after 700 ms; the client was asked to end it; something of it may still run. "
        ),
        "{error}"
    );
    assert!(error.ends_with("; output until then:\nbefore\n"), "{error}");
    assert_eq!(
        client.asked(),
        [Step::Create, Step::Wait, Step::Kill, Step::Wait, Step::Output, Step::Release]
    );
    wait_until("the command is gone", || alive(&mark).is_empty()).await;
}

#[tokio::test]
async fn cancel_kills_and_releases() {
    for level in [Level::None, Level::Full] {
        let (trial, client) = borrowed(Trial::held(level));
        let mark = mark();
        let running = trial.run("bash", json!({"command": format!("echo on; touch on; sleep {mark}")}));
        let cancel = async {
            wait_until("the command runs", || trial.root.join("on").exists()).await;
            trial.cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(running, cancel);
        let ToolOutcome::Error { text, .. } = outcome else { panic!("{outcome:?}") };
        let asked = "the client was asked to end it; something of it may still run";
        assert_eq!(text, format!("bash: cancelled; {asked}; output until then:\non\n"));
        client.until_asked(Step::Release).await;
        assert!(client.asked().contains(&Step::Kill));
        wait_until("the command is gone", || alive(&mark).is_empty()).await;
    }
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
async fn a_client_that_opens_no_terminal_fails_the_call() {
    let (trial, client) = borrowed(Trial::new());
    client.fail(Step::Create, Fault::Silent);
    let error = trial.failed("bash", json!({"command": "touch made"})).await;
    assert_eq!(error, "bash: could not be started: no terminal: the client did not answer in time");
    assert_eq!((client.asked(), trial.names()), (vec![Step::Create], vec![]));
}

#[tokio::test]
async fn a_client_that_falls_silent_fails_the_call_and_is_told_to_release() {
    for (step, reason) in
        [(Step::Wait, "the terminal it ran in is lost"), (Step::Output, "it ended, but its output is lost")]
    {
        let (trial, client) = borrowed(Trial::new());
        client.fail(step, Fault::Silent);
        let error = trial.failed("bash", json!({"command": "true"})).await;
        assert_eq!(error, format!("bash: {reason}: the client did not answer in time"));
        assert_eq!(client.asked().last(), Some(&Step::Release));
    }
}

#[tokio::test]
async fn a_client_that_does_not_kill_holds_nothing_up() {
    let (trial, client) = borrowed(Trial::new());
    for step in [Step::Kill, Step::Wait, Step::Output, Step::Release] {
        client.fail(step, Fault::Pending);
    }
    let running = trial.run("bash", json!({"command": "sleep 1"}));
    let cancel = async {
        client.until_asked(Step::Wait).await;
        trial.cancel.cancel();
        Instant::now()
    };
    let (outcome, cancelled) = tokio::join!(running, cancel);
    assert!(cancelled.elapsed() < CANCEL_TIME, "{:?}", cancelled.elapsed());
    let ToolOutcome::Error { text, .. } = outcome else { panic!("{outcome:?}") };
    assert!(text.ends_with("output until then:\n[the client did not tell the output]\n"), "{text}");
    assert_eq!(client.asked().last(), Some(&Step::Release));
}

#[tokio::test]
async fn a_release_without_an_answer_costs_no_result() {
    let (trial, client) = borrowed(Trial::new());
    client.fail(Step::Release, Fault::Pending);
    assert_eq!(output(&trial, "echo there").await, "there\n");
}

#[tokio::test]
async fn long_output_is_kept_in_a_file_and_what_the_client_dropped_is_told() {
    let (trial, _) = borrowed(Trial::new());
    let (data, presentation) =
        trial.done("bash", json!({"command": "head -c 300000 /dev/zero | tr '\\0' a"})).await;
    let metadata = presentation.metadata.unwrap();
    assert!(metadata.truncated);
    assert_eq!(std::fs::read_to_string(metadata.output_path.unwrap()).unwrap().len(), 300_000);
    assert!(data.as_str().unwrap().contains("the whole output is in "));
    let (data, presentation) =
        trial.done("bash", json!({"command": "head -c 3000000 /dev/zero | tr '\\0' a"})).await;
    assert!(data.as_str().unwrap().starts_with("[the client kept only the end of the output]\n"));
    assert!(presentation.metadata.unwrap().truncated);
}

#[tokio::test]
async fn a_killed_shell_is_a_failed_call() {
    let (trial, _) = borrowed(Trial::new());
    let error = trial.failed("bash", json!({"command": "kill -9 $$"})).await;
    assert_eq!(error, "bash: the shell was killed by signal 9; there was no output");
}
