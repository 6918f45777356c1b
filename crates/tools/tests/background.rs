//! Commands in the background: named, read bit by bit, stopped, and gone with their session.

use std::time::{Duration, Instant};

use attache_core::ids::SessionId;
use attache_sandbox::Level;
use serde_json::json;

use crate::bash::{alive, mark, wait_until};
use crate::trial::{Trial, shown_text};

async fn start(trial: &Trial, command: &str) -> String {
    let (data, _) = trial.done("bash", json!({"command": command, "background": true})).await;
    data.as_str().unwrap().to_owned()
}

async fn look(trial: &Trial, name: &str) -> String {
    let (data, _) = trial.done("bash_background", json!({"action": "output", "name": name})).await;
    data.as_str().unwrap().to_owned()
}

async fn list(trial: &Trial) -> String {
    let (data, _) = trial.done("bash_background", json!({"action": "list"})).await;
    data.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn it_outlives_its_call_and_is_read_bit_by_bit_and_stopped() {
    for level in [Level::None, Level::Full] {
        let trial = Trial::held(level);
        let mark = mark();
        let command = format!("echo ready; until [ -e go ]; do sleep 0.02; done; echo gone on; sleep {mark}");
        let started = Instant::now();
        let text = start(&trial, &command).await;
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
        assert!(
            text.starts_with("Started bg_1 in the background")
                && text.contains("\nready\n[bg_1: running for "),
            "{text}"
        );
        // A turn that is cancelled leaves it.
        trial.cancel.cancel();
        let text = look(&trial, "bg_1").await;
        assert!(text.starts_with("(no new output)\n[bg_1: running for "), "{text}");
        trial.put("go", "");
        let text = loop {
            match look(&trial, "bg_1").await {
                nothing if nothing.starts_with("(no new output)") => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                text => break text,
            }
        };
        assert!(text.starts_with("gone on\n[bg_1: running for "), "{text}");
        let (data, presentation) =
            trial.done("bash_background", json!({"action": "stop", "name": "bg_1"})).await;
        assert_eq!(data, "(no new output)\n[bg_1: stopped]");
        assert!(presentation.title.starts_with("Stop bg_1: echo ready"), "{}", presentation.title);
        assert_eq!(alive(&mark), Vec::<String>::new(), "{level:?}");
        assert_eq!(list(&trial).await, "(none)");
        let error = trial.failed("bash_background", json!({"action": "output", "name": "bg_1"})).await;
        assert!(
            error.contains("there is no `bg_1`: it has ended") && error.ends_with("now: none"),
            "{error}"
        );
        let error = trial.failed("bash_background", json!({"action": "stop", "name": "bg_9"})).await;
        assert!(error.contains("there is no `bg_9`: no command of this name was started"), "{error}");
    }
}

async fn wait(trial: &Trial, name: &str, wait_ms: u64) -> (String, Duration) {
    let started = Instant::now();
    let input = json!({"action": "output", "name": name, "wait_ms": wait_ms});
    let (data, _) = trial.done("bash_background", input).await;
    (data.as_str().unwrap().to_owned(), started.elapsed())
}

#[tokio::test]
async fn a_call_can_wait_for_what_comes_next() {
    let trial = Trial::new();
    start(
        &trial,
        "until [ -e go ]; do sleep 0.02; done; echo a; echo b; until [ -e end ]; do sleep 0.02; done",
    )
    .await;
    let (text, time) = wait(&trial, "bg_1", 300).await;
    assert!(text.starts_with("(no new output)\n[bg_1: running"), "{text}");
    assert!(time >= Duration::from_millis(300) && time < Duration::from_secs(5), "{time:?}");
    let touch = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        trial.put("go", "");
    };
    let ((text, time), ()) = tokio::join!(wait(&trial, "bg_1", 60_000), touch);
    assert!(text.starts_with("a\nb\n[bg_1: running"), "{text}");
    assert!(time < Duration::from_secs(10), "{time:?}");
    let touch = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        trial.put("end", "");
    };
    let ((text, time), ()) = tokio::join!(wait(&trial, "bg_1", 60_000), touch);
    assert_eq!(text, "(no new output)\n[bg_1: exit 0]");
    assert!(time < Duration::from_secs(10), "{time:?}");
    for action in ["stop", "list"] {
        let error =
            trial.failed("bash_background", json!({"action": action, "name": "bg_1", "wait_ms": 5})).await;
        assert!(error.contains("`wait_ms` goes with `output` only"), "{error}");
    }
}

#[tokio::test]
async fn a_wait_ends_with_its_cancel_and_the_command_goes_on() {
    let trial = Trial::new();
    start(&trial, "sleep 60").await;
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        trial.cancel.cancel();
        Instant::now()
    };
    let input = json!({"action": "output", "name": "bg_1", "wait_ms": 60_000});
    let (error, cancelled) = tokio::join!(trial.failed("bash_background", input), cancel);
    assert!(cancelled.elapsed() < Duration::from_millis(500), "{:?}", cancelled.elapsed());
    assert!(error.contains("cancelled"), "{error}");
    assert!(list(&trial).await.contains("bg_1 [running"));
    trial.done("bash_background", json!({"action": "stop", "name": "bg_1"})).await;
}

#[tokio::test]
async fn a_server_that_no_other_command_reaches_says_so() {
    let trial = Trial::held(Level::Full);
    let text = start(&trial, "sleep 60").await;
    assert!(
        text.ends_with("with network: true meet, too]")
            && text.contains("no other command can reach its ports"),
        "{text}"
    );
    trial.done("bash_background", json!({"action": "stop", "name": "bg_1"})).await;
    let (data, _) = trial.done("bash", json!({"command": "exec 3<>/dev/tcp/127.0.0.1/9"})).await;
    assert!(data.as_str().unwrap().contains("on a localhost of its own"), "{data}");
    let free = Trial::new();
    assert!(!start(&free, "sleep 60").await.contains("network"));
    free.done("bash_background", json!({"action": "stop", "name": "bg_1"})).await;
}

#[tokio::test]
async fn one_that_fails_at_once_is_told_of_at_once() {
    let trial = Trial::new();
    let (data, presentation) =
        trial.done("bash", json!({"command": "echo no such port >&2; exit 3", "background": true})).await;
    assert!(data.as_str().unwrap().ends_with("no such port\n[bg_1: exit 3]"), "{data}");
    assert_eq!(shown_text(&presentation), "```\nno such port\n```\n\nbg_1: exit 3");
    assert_eq!(presentation.metadata.unwrap().exit_code, None);
}

#[tokio::test]
async fn all_of_it_is_in_a_file_and_each_look_is_bounded() {
    let trial = Trial::new();
    start(&trial, "until [ -e go ]; do sleep 0.02; done; seq 1 60000; sleep 60").await;
    trial.put("go", "");
    let mut seen = String::new();
    wait_until("it has printed", || {
        std::fs::read_dir(&trial.workspace.scratch)
            .unwrap()
            .flatten()
            .any(|file| file.metadata().unwrap().len() > 280_000)
    })
    .await;
    let (data, presentation) =
        trial.done("bash_background", json!({"action": "output", "name": "bg_1"})).await;
    seen.push_str(data.as_str().unwrap());
    assert!(seen.len() <= 16 * 1024 && seen.contains("60000\n[bg_1: running"), "{}", seen.len());
    let metadata = presentation.metadata.unwrap();
    let expected: String = (1..=60_000).map(|number| format!("{number}\n")).collect();
    assert!(metadata.truncated);
    assert_eq!(std::fs::read_to_string(metadata.output_path.unwrap()).unwrap(), expected);
    trial.done("bash_background", json!({"action": "stop", "name": "bg_1"})).await;
}

#[tokio::test]
async fn there_are_no_more_than_eight_and_one_that_has_ended_makes_room() {
    let trial = Trial::new();
    let mark = mark();
    let starts = (0..8).map(|_| start(&trial, "until [ -e go ]; do sleep 0.02; done"));
    futures_util::future::join_all(starts).await;
    let error = trial.failed("bash", json!({"command": format!("sleep {mark}"), "background": true})).await;
    assert!(error.contains("8 commands run in the background already (bg_1, "), "{error}");
    assert_eq!(list(&trial).await.lines().count(), 8);
    trial.put("go", "");
    while list(&trial).await.contains("running") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(start(&trial, "sleep 0.1").await.starts_with("Started bg_9 "));
}

#[tokio::test]
async fn it_ends_with_its_session_and_with_its_own_time() {
    for level in [Level::None, Level::Full] {
        let trial = Trial::held(level);
        let mark = mark();
        start(&trial, &format!("(setsid sleep {mark} &); trap '' TERM; sleep {mark}; sleep {mark}")).await;
        wait_until("it runs", || alive(&mark).len() >= 2).await;
        let tool = trial.tool("bash_background").clone();
        tool.session_ended(&SessionId::new("ses_2")).await;
        assert!(!alive(&mark).is_empty(), "another session");
        let started = Instant::now();
        tool.session_ended(&trial.workspace.session_id).await;
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        wait_until("it is gone", || alive(&mark).is_empty()).await;
        assert_eq!(list(&trial).await, "(none)");
    }
    let trial = Trial::new();
    let input = json!({"command": "sleep 600", "background": true, "timeout_ms": 700});
    trial.done("bash", input).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    wait_until("it is ended", || !alive("sleep 600").iter().any(|line| line.contains("bash -c"))).await;
    let text = look(&trial, "bg_1").await;
    assert_eq!(text, "(no new output)\n[bg_1: timed out and ended]");
}

#[tokio::test]
async fn a_command_in_the_background_does_not_use_the_terminals_of_the_client() {
    let mut trial = Trial::new();
    let client = attache_testkit::terminals::TerminalClient::default();
    trial.client = Some(std::sync::Arc::new(client.clone()));
    start(&trial, "echo here").await;
    assert_eq!(client.asked(), []);
}

#[tokio::test]
async fn its_end_is_told_once_whoever_asks() {
    let trial = Trial::new();
    start(&trial, "sleep 1.5; exit 4").await;
    start(&trial, "sleep 100").await;
    let session = &trial.workspace.session_id;
    let news = || trial.tool("bash_background").news(session);
    assert_eq!(news(), None);
    let (text, _) = until_its_end(&trial, "bg_1").await;
    assert!(text.contains("[bg_1: exit 4]"), "{text}");
    assert_eq!(news(), None, "that call told it");
    start(&trial, "sleep 1.5; echo said; exit 5").await;
    let mut told = None;
    wait_until("bg_3 ends", || {
        told = news();
        told.is_some()
    })
    .await;
    assert_eq!(told.as_deref(), Some("bg_3 has ended: exit 5. bash_background gives its output."));
    assert_eq!(news(), None, "once");
    assert_eq!(look(&trial, "3").await, "said\n[bg_3: exit 5]", "and its output is still there");
    trial.done("bash_background", json!({"action": "stop", "name": "bg_02"})).await;
    assert_eq!(news(), None);
}

async fn until_its_end(trial: &Trial, name: &str) -> (String, Duration) {
    let started = Instant::now();
    let input = json!({"action": "output", "name": name, "until_end": true});
    let (data, _) = trial.done("bash_background", input).await;
    (data.as_str().unwrap().to_owned(), started.elapsed())
}

/// What it prints on its way does not end the wait.
#[tokio::test]
async fn a_call_can_wait_for_the_end() {
    let trial = Trial::new();
    start(&trial, "for i in 1 2 3 4 5; do sleep 0.3; echo $i; done").await;
    let (text, took) = until_its_end(&trial, "bg_1").await;
    assert!(text.ends_with("4\n5\n[bg_1: exit 0]"), "{text}");
    assert!(took > Duration::from_millis(500) && took < Duration::from_secs(20), "{took:?}");
    let error = trial.failed("bash_background", json!({"action": "list", "until_end": true})).await;
    assert!(error.contains("field `until_end` goes with `output` only"), "{error}");
}

/// While a command runs, its sandbox has place-holders in the workspace: for tools nothing is there.
#[tokio::test]
async fn place_holders_of_its_sandbox_are_nothing_to_tools() {
    let trial = Trial::held(Level::Full);
    trial.put("a.txt", "x\n");
    start(&trial, "sleep 100").await;
    let held = |name: &str| trial.root.join(name).symlink_metadata().is_ok();
    assert!([".mcp.json", ".vscode", ".cargo"].into_iter().any(held), "{:?}", trial.names());
    let (listed, _) = trial.done("read", json!({"path": "."})).await;
    assert_eq!(listed.as_str().unwrap().lines().collect::<Vec<_>>(), ["a.txt"], "{listed}");
    for name in [".mcp.json", ".vscode", ".vscode/settings.json"] {
        let error = trial.failed("read", json!({"path": name})).await;
        assert!(error.contains(&format!("{name} does not exist")), "{error}");
    }
    for name in [".mcp.json", ".vscode/settings.json"] {
        let error = trial.failed("write", json!({"path": name, "content": "{}"})).await;
        assert!(error.contains(" is protected: "), "{error}");
    }
    // A socket of somebody's own is what it is.
    let _socket = std::os::unix::net::UnixListener::bind(trial.root.join("own.sock")).unwrap();
    let (listed, _) = trial.done("read", json!({"path": "."})).await;
    assert!(listed.as_str().unwrap().contains("own.sock"), "{listed}");
}
