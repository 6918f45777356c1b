//! Servers as processes: held by the sandbox, without our keys, shared, and gone when they are not needed (M8,
//! M9).

use std::path::Path;
use std::time::Duration;

use attache_testkit::binary::Home;
use attache_testkit::client::Reply;
use attache_testkit::processes::Process;
use serde_json::{Value, json};

use crate::stage::{call, home, named, open, results, server_path, session, shown, until_settled};

/// The servers themselves, without what holds them.
fn servers(home: &Home) -> Vec<Process> {
    let is_server = |process: &Process| {
        let is_holder = process.command.contains("bwrap") || process.command.contains("__sandboxed");
        process.command.contains("server.py") && !is_holder
    };
    home.processes().into_iter().filter(is_server).collect()
}

fn running(home: &Home) -> usize {
    servers(home).len()
}

async fn until_gone(home: &Home) {
    for _ in 0..80 {
        if running(home) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("still there: {:?}", home.processes());
}

#[tokio::test]
async fn a_server_gets_its_own_variables_and_none_of_our_keys() {
    let home = home("on *\n  call test_environment {}\n  ---\n  text \"done\"\n")
        .with_variable("ANTHROPIC_API_KEY", "canary-model")
        .with_variable("GITHUB_TOKEN", "canary-forge")
        .with_variable("ATTACHE_LOG", "trace");
    let agent = home.start();
    let mut server = named("test", "good");
    server["env"] = json!([{ "name": "OWN_TOKEN", "value": "its-own" }]);
    let id = session(&agent, &home, &[server]).await;
    let text = shown(&call(&agent, &id, "go").await);
    assert!(text.contains("OWN_TOKEN=its-own"), "{text}");
    assert!(!text.contains("canary") && !text.contains("ATTACHE_HOME"), "{text}");
    assert!(text.contains("descriptors: [0, 1, 2]\n"), "none of ours but its streams: {text}");
    agent.finish(&home).await;
    // All of it is there once the agent has ended.
    let log = home.all_logs();
    assert!(!log.is_empty() && !log.contains("its-own"), "{log}");
}

/// The dynamic loader of each program obeys `LD_PRELOAD`: what builds the sandbox is not in it yet.
#[tokio::test]
async fn a_library_of_an_entry_reaches_the_server_and_not_what_holds_it() {
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = home("on *\n  call test_environment {}\n  ---\n  text \"done\"\n");
    let (unheld, held) = (outside.path().join("unheld"), home.workspace().join("held"));
    let (source, library) = (outside.path().join("noting.c"), outside.path().join("noting.so"));
    let note = |file: &Path| {
        format!(
            "to = open({}, O_WRONLY | O_CREAT | O_APPEND, 0600); if (to >= 0) {{ write(to, name, strlen(name)); close(to); }}",
            json!(file)
        )
    };
    let text = format!(
        "#include <fcntl.h>\n#include <string.h>\n#include <unistd.h>\n__attribute__((constructor)) static void loaded(void) {{\n\
         int to; char name[4096] = {{0}}; if (readlink(\"/proc/self/exe\", name, sizeof name - 1) < 0) return;\n{}{}\n}}\n",
        note(&unheld),
        note(&held)
    );
    std::fs::write(&source, text).unwrap();
    let compiled =
        std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    assert!(compiled.expect("a C compiler must be installed").success());
    let agent = home.start();
    let mut server = named("test", "good");
    server["env"] = json!([{ "name": "LD_PRELOAD", "value": library }]);
    let id = session(&agent, &home, &[server]).await;
    let text = shown(&call(&agent, &id, "go").await);
    assert!(text.contains(&format!("LD_PRELOAD={}", library.display())), "{text}");
    agent.finish(&home).await;
    assert!(std::fs::read_to_string(&held).unwrap().contains("python"), "the server itself has it");
    let loaded = std::fs::read_to_string(&unheld).unwrap_or_default();
    assert_eq!(loaded, "", "loaded outside of the sandbox");
}

#[tokio::test]
async fn a_server_writes_to_the_workspace_and_not_beside_it() {
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let beside = outside.path().join("x");
    let home = home(&format!(
        "on \"in\"\n  call test_write {{\"path\":\"inside\"}}\n  ---\n  text \"done\"\non \"out\"\n  call test_write {{\"path\":{}}}\n  ---\n  text \"done\"\non \"hook\"\n  call test_write {{\"path\":\".vscode/tasks.json\"}}\n  ---\n  text \"done\"\n",
        json!(beside)
    ));
    std::fs::create_dir(home.workspace().join(".vscode")).unwrap();
    let agent = home.start();
    let id = session(&agent, &home, &[named("test", "good")]).await;
    assert_eq!(call(&agent, &id, "in").await["status"], "completed");
    assert!(home.workspace().join("inside").exists());
    for prompt in ["out", "hook"] {
        assert_eq!(call(&agent, &id, prompt).await["status"], "failed", "{prompt}");
    }
    assert!(!beside.exists() && !home.workspace().join(".vscode/tasks.json").exists());
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_tree_of_processes_goes_with_its_session_and_with_our_own_death() {
    let home = home("on *\n  call test_children {}\n  ---\n  text \"done\"\n");
    let mut agent = home.start();
    let id = session(&agent, &home, &[named("test", "good")]).await;
    call(&agent, &id, "go").await;
    assert_eq!(running(&home), 1);
    agent.client.expect("session/close", json!({ "sessionId": id })).await;
    until_gone(&home).await;
    let id = open(&agent, &home, &[named("test", "good")]).await;
    until_settled(&agent, &id).await;
    call(&agent, &id, "go").await;
    assert_eq!(running(&home), 1);
    agent.kill().await;
    let orphans = home.orphans();
    assert!(orphans.is_empty(), "left behind: {orphans:?}");
}

#[tokio::test]
async fn a_turn_that_continues_after_a_kill_has_the_tools_of_its_servers() {
    let home = home(
        "on \"go\"\n  call bash {\"command\":\"touch made\"}\n  ---\n  call test_echo {\"text\":\"x\"}\n  ---\n  text \"done\"\n",
    );
    let servers = [named("test", "good")];
    let mut agent = home.start();
    let id = session(&agent, &home, &servers).await;
    agent.client.set_policy(|_, _| Reply::Never);
    drop(agent.start_prompt(&id, "go"));
    agent.client.wait_for("a question", |message| message["method"] == "session/request_permission").await;
    agent.kill().await;
    agent.client.wait_for_end().await;
    agent.client.finish_cut();
    let agent = home.start();
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    let place = json!({ "sessionId": id, "cwd": home.workspace(), "mcpServers": servers });
    agent.client.expect("session/load", place).await;
    let is_done = |message: &Value| message["params"]["update"]["content"]["text"] == "done";
    agent.client.wait_for("the end of the turn", is_done).await;
    let calls = results(&agent.client.updates(&id));
    assert!(calls.len() == 2 && calls.iter().all(|call| call["status"] == "completed"), "{calls:?}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn sessions_with_the_same_server_share_it_and_others_do_not() {
    let home = home("on *\n  call test_echo {\"text\":\"x\"}\n  ---\n  text \"done\"\n");
    let agent = home.start();
    let first = session(&agent, &home, &[named("test", "good")]).await;
    call(&agent, &first, "go").await;
    let second = open(&agent, &home, &[named("test", "good")]).await;
    until_settled(&agent, &second).await;
    call(&agent, &second, "go").await;
    assert_eq!(running(&home), 1, "{:?}", home.processes());
    let mut other = named("test", "good");
    other["env"] = json!([{ "name": "A", "value": "b" }]);
    let third = open(&agent, &home, &[other]).await;
    until_settled(&agent, &third).await;
    call(&agent, &third, "go").await;
    assert_eq!(running(&home), 2);
    agent.client.expect("session/close", json!({ "sessionId": first })).await;
    assert_eq!(call(&agent, &second, "go").await["status"], "completed", "the other has it still");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_server_comes_back_after_its_end() {
    let home = home("on *\n  call test_echo {\"text\":\"x\"}\n  ---\n  text \"done\"\n");
    let agent = home.start();
    let id = session(&agent, &home, &[named("test", "good")]).await;
    assert_eq!(call(&agent, &id, "go").await["status"], "completed");
    let pid = servers(&home)[0].pid;
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
    tokio::time::sleep(Duration::from_millis(300)).await;
    let lost: Value = call(&agent, &id, "go").await;
    assert!(shown(&lost).contains("mcp server test is unavailable"), "{lost}");
    for _ in 0..100 {
        if call(&agent, &id, "go").await["status"] == "completed" {
            return agent.finish(&home).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it did not come back: {}", server_path().display());
}
