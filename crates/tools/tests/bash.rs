//! `bash`: output, time, trees of processes, and what a command is given.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use attache_core::ports::tool::{Access, CommandAccess, CommandNature, Shown};
use attache_core::ports::{ToolOutcome, ToolRuntime};
use attache_sandbox::Level;
use serde_json::json;

use crate::trial::{Alone, Trial, alone, names, resident_kilobytes, shown_text};

/// What it printed, without the notes at the end.
pub(crate) async fn output(trial: &Trial, command: &str) -> String {
    let (data, presentation) = trial.done("bash", json!({"command": command})).await;
    let text = data.as_str().unwrap();
    text[..text.len() - presentation.note_bytes].to_owned()
}

/// All that the model gets.
async fn told(trial: &Trial, command: &str) -> String {
    let (data, _) = trial.done("bash", json!({"command": command})).await;
    data.as_str().unwrap().to_owned()
}

/// Processes whose command line holds `mark`, zombies aside. Each test marks its own.
pub(crate) fn alive(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(mark) && entry.file_name().to_string_lossy() != std::process::id().to_string() {
            found.push(line);
        }
    }
    found
}

/// A time to sleep that no other process on the machine sleeps.
pub(crate) fn mark() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    format!("3{:07}.{:03}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

pub(crate) async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn the_model_gets_text_and_the_exit_code() {
    let trial = Trial::new();
    let (data, presentation) = trial.done("bash", json!({"command": "echo hello; exit 3"})).await;
    assert_eq!(data, "hello\n[exit 3]");
    assert_eq!(presentation.note_bytes, "[exit 3]".len());
    assert_eq!(shown_text(&presentation), "```\nhello\n```\n\nexit status 3");
    let metadata = presentation.metadata.unwrap();
    assert_eq!((metadata.truncated, metadata.exit_code), (false, Some(3)));
    let (data, presentation) = trial.done("bash", json!({"command": "true"})).await;
    assert_eq!(data, "(no output)\n[exit 0]");
    assert_eq!(shown_text(&presentation), "exit status 0");
    assert_eq!(told(&trial, "printf x").await, "x\n[exit 0]");
}

#[tokio::test]
async fn colours_and_redraws_are_for_people() {
    let trial = Trial::new();
    let command =
        r"for i in 1 2 3; do printf '\r\033[32m%s0%%\033[0m' $i; done; echo; printf 'a\nb\n\033[1A\033[Kc\n'";
    let (data, presentation) = trial.done("bash", json!({"command": command})).await;
    assert_eq!(data, "30%\na\nc\n[exit 0]");
    let shown = shown_text(&presentation);
    assert_eq!(shown, "```\n10%\n20%\n30%\na\nb\nc\n```\n\nexit status 0");
}

#[tokio::test]
async fn a_command_knows_that_there_is_no_terminal() {
    let trial = Trial::new();
    let environment = output(&trial, "env").await;
    for variable in ["TERM=dumb\n", "NO_COLOR=", "CI="] {
        assert!(environment.contains(variable), "{variable}: {environment}");
    }
}

#[tokio::test]
async fn the_plan_names_the_command_and_where_it_runs() {
    let trial = Trial::new();
    let command = format!("echo one\necho {}", "x".repeat(5_000));
    let input = json!({"command": command, "description": "Says one"});
    let plan = trial.plan("bash", input).await.unwrap();
    let echo = |word: String| {
        Access::Command(CommandAccess {
            words: vec!["echo".into(), word],
            directory: trial.root.clone(),
            nature: CommandNature::ReadOnly,
            prefix: 1,
            input: None,
            why: None,
        })
    };
    assert_eq!(plan.accesses, [echo("one".into()), echo("x".repeat(5_000))]);
    assert_eq!(plan.presentation.title, command.replace('\n', "⏎"));
    assert_eq!(plan.presentation.content, [Shown::Text { text: "Says one".into() }]);
}

#[tokio::test]
async fn the_network_is_asked_for_and_hosts_that_are_known_are_named() {
    let trial = Trial::new();
    let hosts = async |command: &str, network: bool| {
        let plan = trial.plan("bash", json!({"command": command, "network": network})).await.unwrap();
        let hosts = plan.accesses.into_iter().filter_map(|access| match access {
            Access::Network { host } => Some(host),
            Access::ReadPath(_) | Access::WritePath(_) | Access::Command(_) => None,
        });
        (hosts.collect::<Vec<_>>(), plan.presentation.content)
    };
    let says_so = vec![Shown::Text { text: "With access to the network.".into() }];
    assert_eq!(hosts("make", true).await, (vec!["*".to_owned()], says_so.clone()));
    assert_eq!(hosts("make", false).await, (vec![], vec![]));
    for asked_for in [true, false] {
        let curl = hosts("curl https://example.com/x", asked_for).await;
        assert_eq!(curl, (vec!["example.com".to_owned()], says_so.clone()));
    }
}

#[tokio::test]
async fn both_streams_come_in_the_order_they_were_written() {
    let trial = Trial::new();
    let command = "for i in $(seq 1 200); do echo o$i; echo e$i >&2; done";
    let expected: String = (1..=200).map(|number| format!("o{number}\ne{number}\n")).collect();
    assert_eq!(output(&trial, command).await, expected);
}

#[tokio::test]
async fn it_runs_in_the_root_without_input_or_terminal() {
    let trial = Trial::new();
    assert_eq!(output(&trial, "pwd").await, format!("{}\n", trial.root.display()));
    assert_eq!(output(&trial, "cat; read x; echo $?").await, "1\n");
    assert_eq!(
        output(&trial, "tty; (: </dev/tty) 2>/dev/null || echo no terminal").await,
        "not a tty\nno terminal\n"
    );
}

#[tokio::test]
async fn no_secret_of_ours_reaches_a_command() {
    let canaries = [("CANARY_API_KEY", "canary-1"), ("GITHUB_TOKEN", "canary-2"), ("BASH_ENV", "/canary-3")];
    if alone("bash::no_secret_of_ours_reaches_a_command", &canaries) == Alone::Done {
        return;
    }
    assert!(std::env::var("CANARY_API_KEY").is_ok());
    let trial = Trial::new();
    let environment = output(&trial, "env; cat /proc/self/environ").await;
    assert!(!environment.contains("canary"), "{environment}");
    assert!(environment.contains("TERM=dumb") && environment.contains("PATH="), "{environment}");
}

#[tokio::test]
async fn only_the_three_standard_descriptors_are_open() {
    if alone("bash::only_the_three_standard_descriptors_are_open", &[]) == Alone::Done {
        return;
    }
    let trial = Trial::new();
    // One that is inherited unless somebody sees to it.
    let file = std::fs::File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    // The shell's own, seen from its child while it waits: the child's would hold what it opened itself.
    assert_eq!(output(&trial, "ls /proc/$$/fd; true").await, "0\n1\n2\n");
}

#[tokio::test]
async fn no_signal_is_blocked_or_ignored() {
    let trial = Trial::new();
    let masks = output(&trial, "grep -E 'SigBlk|SigIgn' /proc/self/status; true").await;
    for line in masks.lines() {
        let mask = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        // Signals 32 and 33 belong to the C library, which does not let programs set them.
        assert_eq!(mask & !(3 << 31), 0, "{masks}");
    }
}

#[tokio::test]
async fn without_bash_it_is_sh() {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/sh", directory.path().join("sh")).unwrap();
    if alone("bash::without_bash_it_is_sh", &[("PATH", directory.path().to_str().unwrap())]) == Alone::Done {
        return;
    }
    let path = std::env::var_os("PATH").unwrap();
    let trial = Trial::new();
    assert_eq!(output(&trial, "echo ${0##*/}").await, "sh\n");
    std::fs::remove_file(std::path::Path::new(&path).join("sh")).unwrap();
    let error = trial.failed("bash", json!({"command": "true"})).await;
    assert!(error.contains("could not be started: No such file"), "{error}");
}

#[tokio::test]
async fn live_output_is_shown_while_it_runs() {
    let trial = Trial::new();
    let started = Instant::now();
    trial.done("bash", json!({"command": "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done"})).await;
    let elapsed = started.elapsed();
    let shown = trial.progress.shown.lock().unwrap();
    assert!(shown.len() >= 2, "{shown:?}");
    assert!(shown.len() as u128 <= elapsed.as_millis() / 100 + 1, "{} views in {elapsed:?}", shown.len());
    assert!(shown_text(&shown[0]).starts_with("```\n1\n"), "{shown:?}");
    assert!(shown.iter().all(|view| view.title.starts_with("for i in")));
}

#[tokio::test]
async fn a_flood_is_bounded_in_memory_and_kept_on_disk() {
    if alone("bash::a_flood_is_bounded_in_memory_and_kept_on_disk", &[]) == Alone::Done {
        return;
    }
    let trial = Trial::new();
    let before = resident_kilobytes();
    let (data, presentation) =
        trial.done("bash", json!({"command": "yes 0123456789 | head -c 80000000; echo the end"})).await;
    assert!(resident_kilobytes() < before + 8 * 1024, "{before} → {}", resident_kilobytes());
    let text = data.as_str().unwrap();
    assert!(text.len() <= 16 * 1024, "{}", text.len());
    assert!(text.starts_with("0123456789\n") && text.ends_with("the end\n[exit 0]"), "{text}");
    assert!(text.contains(" bytes left out; the first 67108864 bytes are in "), "{text}");
    let metadata = presentation.metadata.clone().unwrap();
    let path = metadata.output_path.unwrap();
    assert!(metadata.truncated && path.starts_with(&trial.workspace.scratch));
    assert_eq!(path.metadata().unwrap().len(), 64 * 1024 * 1024);
    assert!(shown_text(&presentation).len() < 70_000);
    let largest =
        trial.progress.shown.lock().unwrap().iter().map(|view| shown_text(view).len()).max().unwrap();
    assert!(largest < 9_000, "{largest}");
}

#[tokio::test]
async fn the_whole_output_can_be_read_back() {
    let trial = Trial::new();
    let (data, presentation) = trial.done("bash", json!({"command": "seq 1 60000"})).await;
    let path = presentation.metadata.unwrap().output_path.unwrap();
    let text = data.as_str().unwrap();
    let (head, rest) = text.split_once("[… ").unwrap();
    let (note, tail) = rest.split_once(" …]\n").unwrap();
    assert!(note.ends_with(&format!("the whole output is in {}", path.display())), "{note}");
    assert!(text.len() <= 16 * 1024 && tail.len() > 2 * head.len(), "{} + {}", head.len(), tail.len());
    let numbers = |text: &str| text.lines().map(|line| line.parse::<u32>().unwrap()).collect::<Vec<_>>();
    let (head, tail) = (numbers(head), numbers(tail.strip_suffix("[exit 0]").unwrap()));
    assert_eq!(head, (1..=head.len() as u32).collect::<Vec<_>>());
    assert_eq!(tail, (60_001 - tail.len() as u32..=60_000).collect::<Vec<_>>());
    assert!(note.starts_with(&format!("{} lines, ", 60_000 - head.len() - tail.len())), "{note}");
    let expected: String = (1..=60_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    trial.done("read", json!({"path": path, "offset": 30_000, "limit": 1})).await;
}

#[tokio::test]
async fn bytes_that_are_no_text_do_not_hurt() {
    let trial = Trial::new();
    assert_eq!(output(&trial, r"printf 'a\xff\xfeb'").await, "a\u{fffd}\u{fffd}b");
}

#[tokio::test]
async fn time_runs_out() {
    let trial = Trial::new();
    let mark = mark();
    let started = Instant::now();
    let error = trial
        .failed("bash", json!({"command": format!("echo before; sleep {mark}"), "timeout_ms": 300}))
        .await;
    assert!(error.contains("timed out after 300 ms") && error.ends_with("before\n"), "{error}");
    assert!(error.contains("timeout_ms (at most 600000)"), "{error}");
    assert!(started.elapsed() < Duration::from_millis(1_500), "{:?}", started.elapsed());
    assert_eq!(alive(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_shell_that_is_killed_is_an_error() {
    let trial = Trial::new();
    let error = trial.failed("bash", json!({"command": "echo x; kill -9 $$"})).await;
    assert!(error.contains("killed by signal 9"), "{error}");
}

#[tokio::test]
async fn a_root_that_is_gone_is_a_failure_to_start() {
    let trial = Trial::new();
    std::fs::remove_dir(&trial.root).unwrap();
    let error = trial.failed("bash", json!({"command": "true"})).await;
    assert!(error.contains("could not be started") && error.contains("is not a directory"), "{error}");
    std::fs::create_dir(&trial.root).unwrap();
    let error = trial.failed("bash", json!({"command": format!("true {}", "x".repeat(300_000))})).await;
    assert!(error.contains("could not be started"), "{error}");
}

#[tokio::test]
async fn a_grandchild_with_the_pipe_is_waited_for_two_seconds() {
    let trial = Trial::new();
    let started = Instant::now();
    assert_eq!(output(&trial, "(sleep 0.3; echo late) & echo early").await, "early\nlate\n");
    assert!(started.elapsed() < Duration::from_millis(1_500), "{:?}", started.elapsed());
    let mark = mark();
    let started = Instant::now();
    let text = told(&trial, &format!("sleep {mark} & echo early")).await;
    assert!(text.starts_with("early\n[1 process that it left running was ended"), "{text}");
    let elapsed = started.elapsed();
    assert!(elapsed > Duration::from_millis(1_900) && elapsed < Duration::from_millis(2_600), "{elapsed:?}");
    assert_eq!(alive(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_grandchild_without_the_pipe_is_not_waited_for() {
    let trial = Trial::new();
    let mark = mark();
    let started = Instant::now();
    let command =
        format!("setsid sleep {mark} >/dev/null 2>&1 & nohup sleep {mark} >/dev/null 2>&1 & sleep 0.2");
    let text = told(&trial, &command).await;
    assert!(text.starts_with("(no output)\n[2 processes that it left running were ended"), "{text}");
    assert!(started.elapsed() < Duration::from_millis(1_200), "{:?}", started.elapsed());
    assert_eq!(alive(&mark), Vec::<String>::new());
}

/// Each time: who is first in the namespace of a sandbox has counted before it is ended.
#[tokio::test]
async fn what_a_sandboxed_command_left_running_is_told_each_time() {
    let trial = Trial::held(Level::Full);
    for round in 0..8 {
        let text = told(&trial, "nohup sleep 100 >/dev/null 2>&1 & echo out").await;
        assert!(text.starts_with("out\n[1 process that it left running was ended"), "{round}: {text}");
    }
}

/// Runs a command until `mark` is seen `count` times among the processes, cancels, returns the error and the
/// time.
async fn cancelled(trial: &Trial, command: String, mark: &str, count: usize) -> (String, Duration) {
    let (tool, runtime) = (trial.tool("bash").clone(), trial.runtime());
    let call = tokio::spawn(async move { tool.run(json!({"command": command}), runtime).await });
    wait_until("the processes did not start", || alive(mark).len() >= count).await;
    let started = Instant::now();
    trial.cancel.cancel();
    match call.await.unwrap() {
        ToolOutcome::Error { text, .. } => (text, started.elapsed()),
        other @ (ToolOutcome::Output { .. } | ToolOutcome::Picture { .. }) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn cancel_ends_an_ordinary_command_at_once() {
    let trial = Trial::new();
    let mark = mark();
    let (error, elapsed) = cancelled(&trial, format!("echo so far; sleep {mark}; true"), &mark, 2).await;
    assert!(error.contains("cancelled") && error.ends_with("so far\n"), "{error}");
    assert!(elapsed < Duration::from_millis(500), "{elapsed:?}");
    assert_eq!(alive(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_tree_that_ignores_term_dies_within_two_and_a_half_seconds() {
    let trial = Trial::new();
    let mark = mark();
    let command =
        format!("trap '' TERM; (trap '' TERM; sleep {mark}; sleep {mark}) & sleep {mark}; sleep {mark}");
    let (_, elapsed) = cancelled(&trial, command, &mark, 3).await;
    assert!(elapsed > Duration::from_millis(1_900) && elapsed < Duration::from_millis(2_500), "{elapsed:?}");
    assert_eq!(alive(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_grandchild_in_a_session_of_its_own_is_caught() {
    let trial = Trial::new();
    let mark = mark();
    let command = format!(
        "(setsid env -i /bin/sh -c '(sleep {mark} &) ; sleep {mark}' >/dev/null 2>&1 &); sleep {mark}; true"
    );
    let (_, elapsed) = cancelled(&trial, command, &mark, 3).await;
    assert!(elapsed < Duration::from_millis(2_500), "{elapsed:?}");
    assert_eq!(alive(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_clean_exit_on_term_is_given_its_time() {
    let trial = Trial::new();
    let mark = mark();
    // The marked child starts behind the trap: once it is there, the trap is.
    let command = format!(
        "trap 'sleep 0.3; echo cleaned up; exit 0' TERM; sleep {mark} & while true; do sleep 0.05; done"
    );
    let (error, elapsed) = cancelled(&trial, command, &mark, 2).await;
    assert!(error.ends_with("cleaned up\n"), "{error}");
    assert!(elapsed < Duration::from_millis(1_500), "{elapsed:?}");
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing_behind() {
    let trial = Trial::new();
    let mark = mark();
    let (tool, runtime): (_, ToolRuntime) = (trial.tool("bash").clone(), trial.runtime());
    let command = format!("sleep {mark}; true");
    let call = tokio::spawn(async move { tool.run(json!({"command": command}), runtime).await });
    wait_until("the process did not start", || alive(&mark).len() >= 2).await;
    call.abort();
    wait_until("the process survived", || alive(&mark).is_empty()).await;
}

#[tokio::test]
async fn a_tree_that_keeps_forking_is_outrun() {
    let trial = Trial::new();
    let mark = mark();
    let script =
        format!("f() {{ (sleep 0.02; f {mark}) & (sleep 0.02; setsid sleep {mark}) & }}; f; sleep {mark}");
    // Bounded: a few doublings a second until the cancel.
    let (_, elapsed) = cancelled(&trial, format!("ulimit -u 4000; {script}"), &mark, 20).await;
    assert!(elapsed < Duration::from_millis(2_500), "{elapsed:?}");
    wait_until("some survived", || alive(&mark).is_empty()).await;
}

#[tokio::test]
async fn a_command_that_kills_its_guard_dies_with_it() {
    let trial = Trial::new();
    let mark = mark();
    let error = trial.failed("bash", json!({"command": format!("kill -9 $PPID; sleep {mark}")})).await;
    assert!(error.contains("ended from outside"), "{error}");
    wait_until("it survived", || alive(&mark).is_empty()).await;
}

#[tokio::test]
async fn signals_from_the_command_do_not_reach_the_guard() {
    let trial = Trial::new();
    assert_eq!(
        output(&trial, "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; sleep 0.1; echo still here")
            .await,
        "still here\n"
    );
}

#[tokio::test]
async fn no_zombie_and_no_descriptor_is_left() {
    if alone("bash::no_zombie_and_no_descriptor_is_left", &[]) == Alone::Done {
        return;
    }
    let trial = Trial::new();
    output(&trial, "true").await;
    let before = names("/proc/self/fd".as_ref()).len();
    for _ in 0..20 {
        output(&trial, "sleep 0.01 & (true &) ; true").await;
    }
    assert_eq!(names("/proc/self/fd".as_ref()).len(), before);
    let zombies = || {
        let own = format!("PPid:\t{}\n", std::process::id());
        std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            std::fs::read_to_string(entry.path().join("status"))
                .is_ok_and(|status| status.contains(&own) && status.contains("State:\tZ"))
        })
    };
    wait_until("a zombie is left", || !zombies()).await;
}

#[tokio::test]
async fn many_commands_at_once_do_not_hold_each_other_up() {
    let trial = Trial::new();
    let started = Instant::now();
    let calls: Vec<_> = (0..16)
        .map(|number| {
            let (tool, runtime) = (trial.tool("bash").clone(), trial.runtime());
            tokio::spawn(async move {
                tool.run(json!({"command": format!("sleep 0.5; echo {number}")}), runtime).await
            })
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        let ToolOutcome::Output { data, .. } = call.await.unwrap() else { panic!("failed") };
        assert_eq!(data, format!("{number}\n[exit 0]"));
    }
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
}

#[tokio::test]
async fn wrong_arguments_name_the_field() {
    let trial = Trial::new();
    for (input, expected) in [
        (json!({}), "field `command` is missing"),
        (json!({"command": "  "}), "`command` must not be empty"),
        (json!({"command": "a\u{0}b"}), "NUL"),
        (json!({"command": "a", "timeout_ms": 0}), "`timeout_ms` must be an integer from 1 to 600000"),
        (
            json!({"command": "a", "env": {}, "sudo": true}),
            "fields `env` (set variables in the command: `A=1 program`), `sudo` are unknown; allowed are `command`, `timeout_ms`, `description`, `network`, `background`",
        ),
    ] {
        let error = trial.plan("bash", input).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
