//! The commands beside `acp`, as a user types them: answers on stdout, everything else on stderr, exit codes 0,
//! 1 and 2.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use attache_testkit::binary::Home;
use serde_json::Value;
use tokio::io::AsyncReadExt;

mod agents;
mod archives;
mod by_hand;
mod init;
mod inspection;
mod outputs;
mod search;
mod sessions;
mod trust;

const SCRIPT: &str = r#"
on "long"
  stream 20000 "a line of text that fills the pipe\n"
on *
  reasoning "let me see"
  text "Hello, \"world\";\n\u001b[31mred\u0007 comma, done"
  call write {"path":"made.txt","content":"x\n"}
  ---
  text "Made it."
"#;

/// A home with one session that has words, thoughts, a call and a rule.
async fn home_with_a_session() -> (Home, String) {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.client.always_choose("allow_always");
    agent.prompt(&session, "Say hello\nand write").await.unwrap();
    agent.finish(&home).await;
    (home, session)
}

async fn run(home: &Home, arguments: &[&str]) -> Output {
    home.command().args(arguments).stdin(Stdio::null()).output().await.unwrap()
}

async fn answer(home: &Home, arguments: &[&str]) -> String {
    let output = run(home, arguments).await;
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {told}");
    assert_eq!(told, "", "{arguments:?} succeeds in silence");
    String::from_utf8(output.stdout).unwrap()
}

/// Exit 1, nothing on stdout, one clear text on stderr.
async fn failure(home: &Home, arguments: &[&str]) -> String {
    refusal(home, arguments, 1).await
}

/// The same for what was typed and can't be right: exit 2.
async fn misuse(home: &Home, arguments: &[&str]) -> String {
    refusal(home, arguments, 2).await
}

async fn refusal(home: &Home, arguments: &[&str], code: i32) -> String {
    let output = run(home, arguments).await;
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    assert!(told.starts_with("attache: "), "{arguments:?}: {told}");
    told
}

fn no_terminal_codes(text: &str) {
    let raw = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r'));
    assert_eq!(raw, None, "control characters reach the terminal: {text:?}");
}

/// Whoever only looks leaves no trace, and a file of another program stays as it is whatever is asked of it.
#[tokio::test]
async fn commands_that_read_make_nothing() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let fresh = home.workspace().join("fresh");
    let lines: [&[&str]; 8] = [
        &["sessions", "list"],
        &["sessions", "show", "ses_0"],
        &["sessions", "export", "ses_0"],
        &["models"],
        &["auth", "status"],
        &["doctor"],
        &["--print-config"],
        &["completions", "bash"],
    ];
    for arguments in lines {
        let mut command = home.command();
        command.args(arguments).env("ATTACHE_HOME", &fresh).stdin(Stdio::null()).output().await.unwrap();
        assert!(
            !fresh.exists(),
            "{arguments:?} made {:?}",
            std::fs::read_dir(&fresh).unwrap().collect::<Vec<_>>()
        );
    }
    let notes = home.workspace().join("notes.txt");
    std::fs::write(&notes, "not a database\n").unwrap();
    let store = notes.to_str().unwrap();
    for arguments in [&["sessions", "list", "--store", store][..], &["acp", "--store", store][..]] {
        let output = run(&home, arguments).await;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("is not a session database of attache"), "{arguments:?}: {told}");
        assert_eq!(std::fs::read_to_string(&notes).unwrap(), "not a database\n");
    }
    let made: Vec<_> =
        std::fs::read_dir(home.workspace()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(made, [notes]);
}

/// Some editors start their agents with nothing but `PATH`.
#[tokio::test]
async fn without_home_the_account_tells_where_files_are() {
    let bare = |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_attache"));
        command.args(arguments).env_clear().stdin(Stdio::null());
        command
    };
    let output = bare(&["--print-config"]).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let shown = String::from_utf8(output.stdout).unwrap();
    let account = std::process::Command::new("sh")
        .args(["-c", "getent passwd \"$(id -u)\" | cut -d: -f6"])
        .output()
        .unwrap();
    let account = String::from_utf8(account.stdout).unwrap();
    assert!(shown.contains(&format!("{}/.local/share/attache/sessions.db", account.trim())), "{shown}");
}

/// A command makes sockets and empty directories for names that must not come into being; their list outlives
/// kill -9.
#[tokio::test]
async fn the_next_start_removes_the_placeholders_of_a_killed_process() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let left = home.workspace().join(".mcp.json");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    let locks = home.home().join("scratch/.sandbox");
    std::fs::create_dir_all(&locks).unwrap();
    std::fs::write(locks.join("0123456789abcdef"), format!("{}\0", left.display())).unwrap();
    let agent = home.start();
    agent.initialize().await;
    let gone = async {
        while left.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), gone).await.expect("it is removed at the start");
    agent.finish(&home).await;
}

/// `| head`: whoever stops reading has seen enough; that is no failure.
#[tokio::test]
async fn a_reader_that_has_seen_enough_is_no_error() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "long").await.unwrap();
    agent.finish(&home).await;
    for arguments in [
        &["sessions", "show", &session][..],
        &["sessions", "export", &session][..],
        &["sessions", "export", &session, "--format", "md"][..],
        &["sessions", "export", &session, "--format", "csv"][..],
        &["sessions", "list"][..],
        &["completions", "zsh"][..],
        &["--print-config"][..],
    ] {
        let mut child = home
            .command()
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 10];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).await.unwrap();
        drop(stdout);
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[tokio::test]
async fn a_bad_configuration_names_file_line_and_nearest_key() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let file = home.home().join("config.toml");
    for (text, line, words) in [
        ("modle = \"a/b\"\n", 1, &["modle", "did you mean `model`"][..]),
        (
            "# comment\n\n[limits]\nmax_stpes = 3\n",
            4,
            &["limits.max_stpes", "did you mean `limits.max_steps`"],
        ),
        ("[limits]\nmax_steps = \"many\"\n", 2, &["limits.max_steps", "whole number"]),
        ("model = 7\n", 1, &["model"]),
        ("model = \"a/b\n", 1, &["TOML"]),
        ("[providers.p]\ndialect = \"telepathy\"\n", 2, &["telepathy", "script"]),
        ("thoughts = \"shout\"\n", 1, &["thoughts", "show"]),
    ] {
        std::fs::write(&file, text).unwrap();
        for arguments in [&["acp"][..], &["sessions", "list"][..], &["--print-config"][..]] {
            let told = failure(&home, arguments).await;
            let place = format!("{}:{line}:", file.display());
            assert!(told.contains(&place), "{text:?}: {place} is not in {told}");
            for word in words {
                assert!(told.contains(word), "{text:?}: {word} is not in {told}");
            }
        }
        assert!(!home.database().exists(), "nothing is made with a bad configuration");
    }
    let told = failure(&home, &["acp", "--config", "/nonexistent.toml"]).await;
    assert!(told.contains("/nonexistent.toml"), "{told}");
}

#[tokio::test]
async fn bad_options_and_environment_are_named() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    assert!(misuse(&home, &["acp", "--agent", "nobody"]).await.contains("nobody"));
    assert!(misuse(&home, &["acp", "--model", "no/such"]).await.contains("--model"));
    let output = home.command().arg("acp").env("ATTACHE_LIMITS_MAX_STEPS", "0").output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ATTACHE_LIMITS_MAX_STEPS"));
}

#[tokio::test]
async fn the_configuration_is_printed_with_origins_and_can_be_read_back() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let output = home
        .command()
        .args(["acp", "--print-config", "--store", "/tmp/other.db"])
        .env("ATTACHE_LIMITS_MAX_STEPS", "7")
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let printed = String::from_utf8(output.stdout).unwrap();
    let line =
        |start: &str| printed.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert!(line("model").contains("config.toml:1"), "{printed}");
    assert!(line("store").contains("--store") && line("store").contains("/tmp/other.db"), "{printed}");
    assert!(line("max_steps = 7").contains("ATTACHE_LIMITS_MAX_STEPS"), "{printed}");
    assert!(line("max_line_bytes").contains("default"), "{printed}");
    let copy = home.workspace().join("copy.toml");
    std::fs::write(&copy, &printed).unwrap();
    let again = answer(&home, &["--print-config", "--config", copy.to_str().unwrap()]).await;
    assert!(again.contains("max_steps = 7"), "{again}");
}

#[tokio::test]
async fn completions_are_written_for_every_shell() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    for shell in ["bash", "zsh", "fish"] {
        let text = answer(&home, &["completions", shell]).await;
        assert!(text.contains("attache") && text.contains("sessions") && text.contains("export"), "{shell}");
        if shell == "bash" {
            let file = home.workspace().join("completion");
            std::fs::write(&file, text).unwrap();
            let checked = home.program("bash").arg("-n").arg(&file).output().await.unwrap();
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        }
    }
    assert!(!home.database().exists(), "completions need no store");
}

#[tokio::test]
async fn the_demo_plays_without_a_terminal_and_without_colours() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let output =
        home.command().arg("demo").env("CLICOLOR_FORCE", "0").stdin(Stdio::null()).output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("checks passed") && text.contains("All of it was temporary"), "{text}");
    let contexts = text.lines().filter_map(|line| line.trim().strip_prefix("context: "));
    let contexts: Vec<u64> = contexts.map(|rest| rest.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(contexts.len() > 3 && contexts.is_sorted(), "the context grows: {contexts:?}");
    assert!(!text.contains('✗'), "{text}");
    no_terminal_codes(&text);
    assert!(!home.database().exists(), "the demo leaves the user's sessions alone");
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn usage_errors_exit_with_2_and_help_with_0() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    for arguments in [
        &[][..],
        &["dance"][..],
        &["acp", "--bogus"][..],
        &["sessions"][..],
        &["sessions", "show"][..],
        &["sessions", "export", "x", "--format", "pdf"][..],
        &["completions", "tcl"][..],
    ] {
        let output = run(&home, arguments).await;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    for arguments in
        [&["--help"][..], &["--version"][..], &["acp", "--help"][..], &["sessions", "export", "-h"][..]]
    {
        let text = answer(&home, arguments).await;
        assert!(text.contains("attache"), "{arguments:?}: {text}");
    }
}

#[tokio::test]
async fn what_is_made_belongs_to_its_owner_alone() {
    let place = tempfile::tempdir().unwrap();
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let config = home.home().join("config.toml");
    let fresh = place.path().join("made/by/attache");
    let mut child = home
        .command()
        .args(["acp", "--config", config.to_str().unwrap()])
        .env("ATTACHE_HOME", &fresh)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let (mut stdin, mut lines) =
        (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    for line in [
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
        serde_json::json!({"jsonrpc": "2.0", "id": 2, "method": "session/new",
            "params": {"cwd": home.workspace(), "mcpServers": []}}),
    ] {
        stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let answer: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert!(fresh.join("sessions.db").exists());
    let checked = check_modes(&fresh);
    assert!(checked >= 5, "only {checked} files and directories");
    drop(stdin);
    assert!(child.wait().await.unwrap().success());
    check_modes(&fresh);
}

fn check_modes(directory: &Path) -> usize {
    let mode = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(directory), 0o700, "{}", directory.display());
    let mut checked = 1;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            checked += check_modes(&path);
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            checked += 1;
        }
    }
    checked
}

#[tokio::test]
async fn requests_piped_in_are_all_answered_although_the_input_has_ended() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let cwd = home.workspace().display().to_string();
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#.to_owned(),
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"session/new","params":{{"cwd":"{cwd}","mcpServers":[]}}}}"#
        ),
        r#"{"jsonrpc":"2.0","id":3,"method":"session/list","params":{}}"#.to_owned(),
    ];
    let mut child = home.command().arg("acp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut input, (lines.join("\n") + "\n").as_bytes()).await.unwrap();
    drop(input);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    let answers = String::from_utf8(output.stdout).unwrap();
    let answered: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for id in 1..=3 {
        // What came too late to be done is refused, but never left without an answer.
        let of_id = answered.iter().filter(|answer| answer["id"] == id);
        assert_eq!(of_id.count(), 1, "request {id}: {answers}");
    }
}

/// Without bubblewrap in `PATH` there is less than the whole sandbox, whatever the kernel can do.
#[tokio::test]
async fn what_no_sandbox_holds_is_refused_at_the_start() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    for (arguments, expected) in [
        (&["acp", "--sandbox", "require"][..], "option --sandbox: `sandbox`: the full sandbox is required"),
        (&["acp", "--approval", "all"][..], "option --approval: `approval`: `all` needs the full sandbox"),
    ] {
        let output = home
            .command()
            .args(arguments)
            .env("PATH", "/nowhere")
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(expected), "{told}");
    }
    for arguments in [
        &["acp", "--sandbox", "off", "--approval", "all"][..],
        &["acp", "--sandbox", "require", "--approval", "all"][..],
    ] {
        let output = run(&home, arguments).await;
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[tokio::test]
async fn the_doctor_says_what_holds_commands() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let output = run(&home, &["doctor"]).await;
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("ok    sandbox        full: bubblewrap and seccomp"), "{told}");
    let output = home.command().arg("doctor").env("PATH", "/nowhere").output().await.unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.contains("warn  sandbox ")
            && told
                .contains("→ bubblewrap is not installed where only root can write: install bubblewrap: apt"),
        "{told}"
    );
    let output = home.command().arg("doctor").env("ATTACHE_SANDBOX", "off").output().await.unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("off: commands run unconfined"));
}
