//! Hooks as the binary runs them: real scripts, one of them written for Claude Code, in the sandbox and out of
//! it. A project's hooks run only with consent (S8), and a hook that hangs takes nothing with it.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use attache_testkit::binary::{Agent, Home};
use serde_json::json;

use crate::stage::until;

const KEY: &str = "canary-77c1d0";

/// As people have written them for Claude Code: it knows `Bash`, and blocks with exit code 2.
const FOR_CLAUDE_CODE: &str = r#"#!/usr/bin/env bash
input=$(cat)
field() { printf '%s' "$input" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
[ "$(field hook_event_name)" = PreToolUse ] || exit 1
[ "$(field tool_name)" = Bash ] || exit 0
case "$(field command)" in
  *"rm -rf"*) echo "rm -rf is blocked in $CLAUDE_PROJECT_DIR" >&2; exit 2 ;;
esac
"#;

fn home(script: &str) -> Home {
    Home::new(env!("CARGO_BIN_EXE_attache"), script).with_variable("ANTHROPIC_API_KEY", KEY)
}

fn put(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = home.workspace().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn read(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// One prompt in a new session; everything that was received.
async fn turn(home: &Home, arguments: &[&str]) -> String {
    let agent = home.start_with(arguments);
    agent.client.always_choose("allow_once");
    let session = agent.open_session(home).await;
    agent.prompt(&session, "go").await.unwrap();
    let received = received(&agent);
    agent.finish(home).await;
    received
}

fn received(agent: &Agent) -> String {
    json!(agent.client.received()).to_string()
}

#[tokio::test]
async fn a_script_for_claude_code_works_unchanged() {
    let script = "on *\n  call bash {\"command\":\"rm -rf build\"}\n  ---\n  call bash {\"command\":\"touch made\"}\n  ---\n  \
                  text \"done\"\n";
    let home = home(script);
    put(&home, ".claude/hooks/guard.sh", FOR_CLAUDE_CODE);
    std::fs::create_dir(home.workspace().join("build")).unwrap();
    home.write_config(
        "[[hooks]]\nevent = \"PreToolUse\"\nmatcher = \"Bash\"\n\
         command = '\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh'\n",
    );
    let received = turn(&home, &[]).await;
    let root = home.workspace().display().to_string();
    assert!(received.contains(&format!("denied by a hook: rm -rf is blocked in {root}")), "{received}");
    assert!(home.workspace().join("build").exists() && home.workspace().join("made").exists());
    let shown = home.command().args(["sessions", "list", "--json"]).output().await.unwrap();
    let id = String::from_utf8(shown.stdout).unwrap();
    let id = &id[id.find("ses_").unwrap()..][..30];
    let timeline = home.command().args(["sessions", "show", id, "--timeline"]).output().await.unwrap();
    let timeline = String::from_utf8(timeline.stdout).unwrap();
    assert!(
        timeline.contains("deny: the hook `\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh`"),
        "{timeline}"
    );
}

/// Tries to leave its roots, to reach a server and to find a key, and says in the root what came of it.
fn curious(outside: &Path, port: u16) -> String {
    format!(
        "#!/usr/bin/env bash\n\
         cat > input.json\n\
         env > environment.txt\n\
         touch {outside}/left && echo left >> report.txt\n\
         (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached >> report.txt\n\
         echo \"$ATTACHE_SESSION_ID $ATTACHE_PROJECT_DIR $PWD\" >> report.txt\n\
         exit 0\n",
        outside = outside.display()
    )
}

#[tokio::test]
async fn a_hook_is_held_by_the_sandbox_unless_the_user_wants_none() {
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let home = home("on *\n  call read {\"path\":\"curious.sh\"}\n  ---\n  text \"done\"\n");
    put(&home, "curious.sh", &curious(outside.path(), port));
    let root = home.workspace().display().to_string();
    for (sandbox, arguments, escapes) in
        [("", &[][..], false), ("sandbox = \"off\"\n", &[][..], true), ("", &["--sandbox", "off"][..], true)]
    {
        home.write_config(&format!(
            "[[hooks]]\nevent = \"after-tool\"\nmatcher = \"read\"\ncommand = [\"./curious.sh\"]\n{sandbox}"
        ));
        let received = turn(&home, arguments).await;
        assert!(!received.contains("A hook failed"), "{received}");
        let report = read(&home, "report.txt");
        assert!(
            report.starts_with(if escapes { "left\nreached\nses_" } else { "ses_" }),
            "{sandbox}: {report}"
        );
        assert!(report.ends_with(&format!(" {root} {root}\n")), "{report}");
        assert_eq!(outside.path().join("left").exists(), escapes);
        let told: serde_json::Value = serde_json::from_str(&read(&home, "input.json")).unwrap();
        assert_eq!((&told["tool_name"], &told["cwd"]), (&json!("read"), &json!(root)));
        assert!(!read(&home, "environment.txt").contains(KEY), "no key reaches a hook");
        for made in ["report.txt", "input.json", "environment.txt"] {
            std::fs::remove_file(home.workspace().join(made)).unwrap();
        }
    }
}

const OF_PROJECT: &str = "[[hooks]]\nevent = \"turn-end\"\ncommand = \".attache/hooks/end.sh\"\n";

#[tokio::test]
async fn a_hook_of_a_project_runs_only_with_consent_and_only_held() {
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = home("on *\n  text \"done\"\n");
    let end = format!("#!/bin/sh\ntouch ran; touch {}/left\n", outside.path().display());
    put(&home, ".attache/hooks/end.sh", &end);
    put(&home, ".attache/config.toml", OF_PROJECT);
    let (ran, project) = (home.workspace().join("ran"), home.workspace());
    let project = project.to_str().unwrap();
    let trust = async |words: &[&str]| {
        let output = home.command().arg("trust").arg(project).args(words).output().await.unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    turn(&home, &[]).await;
    assert!(!ran.exists(), "nobody consented");

    let shown = trust(&["--yes"]).await;
    assert!(shown.contains("runs without asking at turn-end: .attache/hooks/end.sh\n"), "{shown}");
    assert!(shown.contains("--- .attache/hooks/end.sh\n#!/bin/sh\ntouch ran"), "{shown}");
    let received = turn(&home, &[]).await;
    assert!(ran.exists() && !outside.path().join("left").exists(), "{received}");
    std::fs::remove_file(&ran).unwrap();

    put(&home, ".attache/hooks/end.sh", &format!("{end}# other\n"));
    turn(&home, &[]).await;
    assert!(!ran.exists(), "the script is another one");

    put(&home, ".attache/config.toml", &format!("{OF_PROJECT}sandbox = \"off\"\n"));
    trust(&["--yes"]).await;
    let received = turn(&home, &[]).await;
    assert!(!ran.exists(), "nothing of a file with mistakes counts");
    assert!(received.contains("config.toml:4: a project can't set `hooks[1].sandbox`"), "{received}");
}

/// However the same is written, what runs by itself is told before it is agreed to.
#[tokio::test]
async fn what_a_project_would_run_is_told_in_any_spelling() {
    let home = home("on *\n  text \"done\"\n");
    let inline = "hooks = [{ \"e\\u0076ent\" = \"turn-end\", command = \".attache/hooks/end.sh\" }]\n\
                  [mcp]\nlocal = { command = [\"./server\", \"--all\"] }\n";
    put(&home, ".attache/config.toml", inline);
    put(&home, ".mcp.json", "{\"mcpServers\": {\"other\": {\"url\": \"http://127.0.0.1:1/mcp\"}}}");
    let output = home.command().arg("trust").arg(home.workspace()).output().await.unwrap();
    let shown = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    for line in [
        "runs without asking at turn-end: .attache/hooks/end.sh\n",
        "MCP server local: command = [\"./server\", \"--all\"]\n",
        "MCP server other: http://127.0.0.1:1/mcp",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[tokio::test]
async fn consent_covers_every_script_or_no_hook_runs() {
    let home = home("on *\n  text \"done\"\n");
    let project = home.workspace();
    let script = "#!/bin/sh\ntouch ran\n";
    let trust = async || {
        let output = home.command().arg("trust").arg(&project).arg("--yes").output().await.unwrap();
        assert!(output.status.success());
    };
    put(&home, ".attache/hooks/deep/end.sh", script);
    put(&home, ".attache/config.toml", &OF_PROJECT.replace("end.sh", "deep/end.sh"));
    trust().await;
    let ran = project.join("ran");
    turn(&home, &[]).await;
    assert!(ran.exists(), "a script of a directory below counts");
    std::fs::remove_file(&ran).unwrap();
    put(&home, ".attache/hooks/deep/end.sh", &format!("{script}# other\n"));
    turn(&home, &[]).await;
    assert!(!ran.exists(), "the script is another one");

    trust().await;
    put(&home, ".attache/hooks/large.sh", &format!("{script}#{}\n", "x".repeat(300 * 1024)));
    let received = turn(&home, &[]).await;
    assert!(
        !ran.exists() && received.contains("hooks do not run because of .attache/hooks/large.sh"),
        "{received}"
    );
    std::fs::remove_file(project.join(".attache/hooks/large.sh")).unwrap();
    turn(&home, &[]).await;
    assert!(ran.exists());
    std::fs::remove_file(&ran).unwrap();
    std::os::unix::fs::symlink("/bin", project.join(".attache/hooks/bin")).unwrap();
    turn(&home, &[]).await;
    assert!(!ran.exists(), "what a link leads to is not known");

    std::fs::remove_file(project.join(".attache/hooks/bin")).unwrap();
    let (hooks, scripts) = (project.join(".attache/hooks"), project.join("scripts"));
    std::fs::rename(&hooks, &scripts).unwrap();
    std::os::unix::fs::symlink("../scripts", &hooks).unwrap();
    turn(&home, &[]).await;
    assert!(!ran.exists(), "what was agreed to is not there under its name any more");
    trust().await;
    let received = turn(&home, &[]).await;
    assert!(!ran.exists(), "the agent may write in `scripts`");
    assert!(received.contains(".attache/hooks: a link leads there"), "{received}");
}

#[tokio::test]
async fn a_hook_that_hangs_is_killed_with_all_it_started_and_the_turn_goes_on() {
    let home = home("on *\n  text \"done\"\n");
    home.write_config(
        "[[hooks]]\nevent = \"turn-end\"\ntimeout = 1\n\
         command = \"trap '' TERM; setsid sleep 311 & sleep 311\"\n",
    );
    let since = Instant::now();
    let received = turn(&home, &[]).await;
    assert!(received.contains("it took longer than 1 s and was killed"), "{received}");
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_cancel_kills_a_hook_in_time() {
    for (event, sandbox) in [("prompt", "on"), ("turn-end", "on"), ("turn-end", "off")] {
        let home = home("on *\n  text \"done\"\n");
        home.write_config(&format!(
            "[[hooks]]\nevent = \"{event}\"\nsandbox = \"{sandbox}\"\n\
             command = \"trap '' TERM; touch started; setsid sleep 312 & sleep 312\"\n"
        ));
        let agent = home.start();
        let session = agent.open_session(&home).await;
        let pending = agent.start_prompt(&session, "go");
        let started = home.workspace().join("started");
        until("the hook", Duration::from_secs(10), || started.exists()).await;
        let sleeps = || home.processes().iter().any(|process| process.command.starts_with("sleep"));
        until("its processes", Duration::from_secs(10), sleeps).await;
        let since = Instant::now();
        agent.client.notify("session/cancel", json!({"sessionId": session}));
        assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
        until("its processes are gone", Duration::from_secs(5), || !sleeps()).await;
        assert!(since.elapsed() < Duration::from_millis(500), "{event} {sandbox}: {:?}", since.elapsed());
        agent.finish(&home).await;
    }
}

#[tokio::test]
async fn a_hook_does_not_outlive_attache() {
    for sandbox in ["on", "off"] {
        let home = home("on *\n  text \"done\"\n");
        home.write_config(&format!(
            "[[hooks]]\nevent = \"turn-end\"\nsandbox = \"{sandbox}\"\n\
             command = \"trap '' TERM; touch started; setsid sleep 314 & sleep 314\"\n"
        ));
        let mut agent = home.start();
        let session = agent.open_session(&home).await;
        let _pending = agent.start_prompt(&session, "go");
        let started = home.workspace().join("started");
        until("the hook", Duration::from_secs(10), || started.exists()).await;
        agent.kill().await;
        assert!(home.orphans().is_empty(), "{sandbox}");
    }
}

/// In the user's own file: told where the session is, and everything else goes on, other hooks included.
#[tokio::test]
async fn a_hook_with_mistakes_is_left_out_with_its_line_and_what_was_meant() {
    let home = home("on *\n  text \"done\"\n");
    let good = "[[hooks]]\nevent = \"turn-end\"\ncommand = \"touch ran\"\nsandbox = \"off\"\n";
    home.write_config(&format!(
        "[[hooks]]\nevent = \"before_tool\"\ncommand = \"touch bad\"\nmacher = \"bash\"\n{good}"
    ));
    let told = turn(&home, &[]).await;
    let told = told.replace("\\\"", "\"");
    assert!(told.contains("config.toml:3: `hooks[1].event` \"before_tool\" is unknown"), "{told}");
    assert!(told.contains("did you mean \"before-tool\"?"), "{told}");
    assert!(told.contains("config.toml:5: unknown key `hooks[1].macher`"), "{told}");
    assert!(told.contains("did you mean `hooks[1].matcher`?"), "{told}");
    until("the other hook runs", Duration::from_secs(20), || home.workspace().join("ran").exists()).await;
    assert!(!home.workspace().join("bad").exists());
}
