//! The commands beside `acp`, as a user types them: answers on stdout, everything else on stderr, exit codes 0, 1 and 2.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use attache_testkit::binary::Home;
use serde_json::Value;
use tokio::io::AsyncReadExt;

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
    let output = run(home, arguments).await;
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    assert!(told.starts_with("attache: "), "{arguments:?}: {told}");
    told
}

fn no_terminal_codes(text: &str) {
    let raw = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r'));
    assert_eq!(raw, None, "control characters reach the terminal: {text:?}");
}

#[tokio::test]
async fn sessions_are_listed_and_shown() {
    let (home, session) = home_with_a_session().await;
    let list = answer(&home, &["sessions", "list"]).await;
    assert_eq!(list.lines().count(), 1, "{list}");
    assert!(list.contains(&session) && list.contains("Say hello"), "{list}");
    assert!(list.contains(home.workspace().to_str().unwrap()), "{list}");
    let show = answer(&home, &["sessions", "show", &session]).await;
    for expected in [
        "Say hello",
        "and write",
        "let me see",
        "Hello, \"world\";",
        "Made it.",
        "made.txt",
        "script/default",
        "idle",
        "allow",
    ] {
        assert!(show.contains(expected), "{expected} is missing in\n{show}");
    }
    let made = home.workspace().join("made.txt");
    let rule = format!("rule       allow edit {} (session)", made.display());
    assert!(show.lines().any(|line| line == rule), "{rule} is missing in\n{show}");
    let why = "    allow: the user's answer (asked because: changes to files ask)";
    assert!(show.lines().any(|line| line == why), "{why} is missing in\n{show}");
    no_terminal_codes(&list);
    no_terminal_codes(&show);
}

#[tokio::test]
async fn what_a_session_cost_is_shown_with_it_and_with_each_answer() {
    let script =
        "model priced price_input=3 price_output=15\non *\n  text \"ok\"\n  usage input=1000 output=200\n";
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), script);
    let home = home.with_variable("ATTACHE_MODEL", "script/priced");
    let agent = home.start();
    let session = agent.open_session(&home).await;
    for _ in 0..2 {
        agent.prompt(&session, "Say").await.unwrap();
    }
    agent.finish(&home).await;
    let show = answer(&home, &["sessions", "show", &session]).await;
    assert!(show.lines().any(|line| line == "cost       $0.012"), "{show}");
    assert_eq!(
        show.lines().filter(|line| line.ends_with("1000 in, 200 out  $0.006000")).count(),
        2,
        "{show}"
    );
}

#[tokio::test]
async fn a_rejected_call_is_shown_with_who_decided_and_why_it_was_asked_for() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.client.always_choose("reject_once");
    agent.prompt(&session, "Say hello").await.unwrap();
    agent.finish(&home).await;
    let show = answer(&home, &["sessions", "show", &session]).await;
    let why = "    deny: the user rejected this call (asked because: changes to files ask)";
    assert!(show.lines().any(|line| line == why), "{why} is missing in\n{show}");
}

#[tokio::test]
async fn a_session_is_found_by_the_beginning_of_its_id() {
    let (home, session) = home_with_a_session().await;
    let whole = answer(&home, &["sessions", "show", &session]).await;
    for beginning in [&session[..12], &session[4..16]] {
        assert_eq!(answer(&home, &["sessions", "show", beginning]).await, whole);
    }
    let agent = home.start();
    let other = agent.open_session(&home).await;
    agent.prompt(&other, "Say hello").await.unwrap();
    agent.finish(&home).await;
    let told = failure(&home, &["sessions", "show", &session[..6]]).await;
    assert!(told.contains("several sessions") && told.contains(&session) && told.contains(&other), "{told}");
}

#[tokio::test]
async fn a_list_has_a_limit_and_programs_get_json() {
    let (home, first) = home_with_a_session().await;
    let agent = home.start();
    let second = agent.open_session(&home).await;
    agent.prompt(&second, "Say hello").await.unwrap();
    agent.finish(&home).await;
    let output = run(&home, &["sessions", "list", "--limit", "1"]).await;
    let (list, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(list.contains(&second) && !list.contains(&first), "{list}");
    assert!(told.contains("--all"), "{told}");
    let json: Value = serde_json::from_str(&answer(&home, &["sessions", "list", "--json"]).await).unwrap();
    let ids: Vec<&str> = json.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [second.as_str(), first.as_str()]);
    assert!(json[0]["updatedAt"].as_str().unwrap().ends_with('Z'), "{json}");
    let shown: Value =
        serde_json::from_str(&answer(&home, &["sessions", "show", &first, "--json"]).await).unwrap();
    assert!(shown.to_string().contains("Made it."), "{shown}");
    let empty = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    assert_eq!(run(&empty, &["sessions", "list", "--json"]).await.stdout, b"[]\n");
}

#[tokio::test]
async fn the_arguments_and_outputs_of_calls_are_shown_when_asked_for() {
    let (home, session) = home_with_a_session().await;
    let outline = answer(&home, &["sessions", "show", &session]).await;
    let full = answer(&home, &["sessions", "show", &session, "--full"]).await;
    let input = r#"    > {"path":"made.txt","content":"x\n"}"#;
    assert!(full.lines().any(|line| line == input) && !outline.contains(input), "{full}");
    assert!(full.lines().any(|line| line.starts_with("    | ")), "{full}");
    no_terminal_codes(&full);
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

/// `session/delete` is an erasure: nothing that was said, read or made can be found below the home afterwards.
#[tokio::test]
async fn a_deleted_session_leaves_nothing_behind() {
    const SECRET: &str = "the launch code is 0000";
    let script = format!(
        "on *\n  text \"{SECRET}\"\n  call bash {{\"command\":\"echo '{SECRET}' > $TMPDIR/kept\"}}\n  ---\n  text \"Done.\"\n"
    );
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), &script);
    let agent = home.start();
    agent.client.always_choose("allow_once");
    let session = agent.open_session(&home).await;
    agent.prompt(&session, SECRET).await.unwrap();
    agent.prompt(&session, "once more").await.unwrap();
    let data = home.database().parent().unwrap().to_owned();
    let found = |text: &str| files_with(&data, text.as_bytes());
    assert!(!found(SECRET).is_empty());
    let deleted = serde_json::json!({"sessionId": session});
    agent.client.expect("session/delete", deleted).await;
    let script_itself =
        |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "txt" || end == "script");
    let left: Vec<_> = found(SECRET).into_iter().filter(|path| !script_itself(path)).collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
    let named: Vec<_> = found(&session).into_iter().filter(|path| !path.ends_with("attache.log")).collect();
    assert_eq!(named, Vec::<std::path::PathBuf>::new());
    agent.finish(&home).await;
}

/// Files whose name or content holds these bytes.
fn files_with(directory: &Path, bytes: &[u8]) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let holds = |text: &[u8]| text.windows(bytes.len()).any(|window| window == bytes);
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_with(&path, bytes));
        }
        let name = path.file_name().unwrap().as_encoded_bytes();
        if holds(name) || std::fs::read(&path).is_ok_and(|content| holds(&content)) {
            found.push(path);
        }
    }
    found
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

#[tokio::test]
async fn an_empty_home_says_so_and_succeeds() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let output = run(&home, &["sessions", "list"]).await;
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no sessions yet"));
}

#[tokio::test]
async fn every_export_format_holds_the_whole_session() {
    let (home, session) = home_with_a_session().await;
    let export = |format: &'static str| {
        let (home, session) = (&home, session.as_str());
        async move { answer(home, &["sessions", "export", session, "--format", format]).await }
    };
    let jsonl = export("jsonl").await;
    let lines: Vec<Value> =
        jsonl.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    assert!(lines.len() >= 3, "{jsonl}");
    assert_eq!(answer(&home, &["sessions", "export", &session]).await, jsonl, "it is the default");
    let json: Value = serde_json::from_str(&export("json").await).expect("one JSON value");
    assert!(json.to_string().contains("Made it."));
    let markdown = export("md").await;
    let csv = export("csv").await;
    let rows = csv_rows(&csv);
    assert!(rows.len() > 4, "{csv}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "each row has all columns: {csv}");
    for text in [&jsonl, &markdown, &csv] {
        assert!(text.contains("Made it.") && text.contains("made.txt"), "{text}");
    }
}

/// As RFC 4180 has it: quotes hold commas, line ends and doubled quotes.
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut characters = text.trim_end().chars().peekable();
    while let Some(character) = characters.next() {
        let row = rows.last_mut().unwrap();
        match (character, quoted) {
            ('"', true) if characters.peek() == Some(&'"') => {
                characters.next();
                row.last_mut().unwrap().push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(String::new()),
            ('\r', false) => {}
            ('\n', false) => rows.push(vec![String::new()]),
            (other, _) => row.last_mut().unwrap().push(other),
        }
    }
    rows
}

#[tokio::test]
async fn an_export_goes_to_a_file_and_an_unknown_session_leaves_the_file_alone() {
    let (home, session) = home_with_a_session().await;
    let file = home.workspace().join("out.md");
    let path = file.to_str().unwrap();
    assert_eq!(answer(&home, &["sessions", "export", &session, "--format", "md", "-o", path]).await, "");
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written, answer(&home, &["sessions", "export", &session, "--format", "md"]).await);
    let told = failure(&home, &["sessions", "export", "ses_nobody", "-o", path]).await;
    assert!(told.contains("ses_nobody"), "{told}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written, "the file is as it was");
    let told = failure(&home, &["sessions", "export", &session, "-o", "/nonexistent/x.md"]).await;
    assert!(told.contains("/nonexistent/x.md"), "{told}");
}

#[tokio::test]
async fn an_unknown_session_fails_with_a_hint() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    for arguments in [&["sessions", "show", "ses_nobody"][..], &["sessions", "export", "ses_nobody"][..]] {
        let told = failure(&home, arguments).await;
        assert!(told.contains("ses_nobody") && told.contains("attache sessions list"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
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
    assert!(failure(&home, &["acp", "--agent", "nobody"]).await.contains("nobody"));
    assert!(failure(&home, &["acp", "--model", "no/such"]).await.contains("--model"));
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
    assert!(text.contains("checks passed"), "{text}");
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
            && told.contains("→ bubblewrap is not installed outside of the home: install bubblewrap: apt"),
        "{told}"
    );
    let output = home.command().arg("doctor").env("ATTACHE_SANDBOX", "off").output().await.unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("off: commands run unconfined"));
}
