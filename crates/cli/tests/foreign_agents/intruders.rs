//! What a project, or an agent of it, puts in the way of its user: interpreters, libraries, links that are
//! swapped, marks that only attache may set.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use attache_testkit::binary::Home;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::peer::*;

const INTRUDER: &str = include_str!("intruder.py");

fn intruder() -> Home {
    let entry = format!("backend = \"acp\"\ncommand = [\"python3\", \"-c\", {}]\n", json!(INTRUDER));
    home_with(&entry, "on *\n  text \"not asked\"")
}

/// An agent of pydantic-ai, which no interpreter is configured for.
fn python(more: &str) -> Home {
    let folder = peers().join("python-agents");
    let entry = format!(
        "backend = \"python\"\nmodule = \"agents:pydantic_agent\"\ndirectory = {}\n{more}",
        json!(folder)
    );
    home_with(&entry, "")
}

fn packages() -> PathBuf {
    peers().join("python-agents/python")
}

/// A library that notes who has loaded it, in each of these files that it may write.
fn noting_library(at: &Path, files: &[&Path]) {
    let notes: String =
        files.iter().map(|file| format!("note({}, name);", json!(file.to_str().unwrap()))).collect();
    let source = format!(
        "#include <fcntl.h>\n#include <string.h>\n#include <unistd.h>\n\
         static void note(const char *file, const char *name) {{\n\
         int to = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);\n\
         if (to >= 0) {{ write(to, name, strlen(name)); write(to, \"\\n\", 1); close(to); }}\n}}\n\
         __attribute__((constructor)) static void loaded(void) {{\n\
         char name[4096] = {{0}};\nif (readlink(\"/proc/self/exe\", name, sizeof name - 1) < 0) return;\n{notes}\n}}\n"
    );
    let text = at.with_extension("c");
    std::fs::write(&text, source).unwrap();
    let compiled =
        std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([at, &text]).status();
    assert!(compiled.expect("a C compiler must be installed").success());
}

/// Says by a file that it was run.
fn interpreter_of_the_workspace(home: &Home) -> PathBuf {
    let ran = home.home().join("ran");
    let bin = home.workspace().join(".venv/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let program = bin.join("python");
    std::fs::write(&program, format!("#!/bin/sh\n: > '{}'\nexec python3 \"$@\"\n", ran.display())).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    ran
}

#[tokio::test]
async fn the_interpreter_of_a_workspace_is_not_run_for_an_agent_of_its_user() {
    let home = python(&format!("env = {{ PYTHONPATH = {} }}\n", json!(packages())));
    let ran = interpreter_of_the_workspace(&home);
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.finish(&home).await;
    assert!(!ran.exists(), "a program that the directory brought was run unheld");
    // Named, it is the user's choice.
    let named = home.workspace().join(".venv/bin/python");
    let home =
        python(&format!("python = {}\nenv = {{ PYTHONPATH = {} }}\n", json!(named), json!(packages())));
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.finish(&home).await;
    assert!(ran.exists());
}

/// `export PYTHONPATH=/lib:$PYTHONPATH` ends with a colon where nothing was set, and that names the directory
/// of each start.
#[tokio::test]
async fn no_module_of_a_workspace_is_imported_for_an_agent_of_its_user() {
    let home = python("").with_variable("PYTHONPATH", &format!("{}::.", packages().display()));
    let ran = home.home().join("ran");
    let module = format!("open({}, 'w').close()\n", json!(ran));
    std::fs::write(home.workspace().join("sitecustomize.py"), module).unwrap();
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.finish(&home).await;
    assert!(!ran.exists(), "a module that the directory brought was run unheld");
}

#[tokio::test]
async fn a_library_of_an_agents_environment_reaches_the_agent_and_not_what_holds_it() {
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let library = place.path().join("noting.so");
    let environment = json!({ "PYTHONPATH": packages(), "LD_PRELOAD": library, "LD_AUDIT": "" });
    let pairs: Vec<String> =
        environment.as_object().unwrap().iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let home = python(&format!("sandbox = true\nenv = {{ {} }}\n", pairs.join(", ")));
    let (unheld, held) = (outside.path().join("unheld"), home.workspace().join("held"));
    noting_library(&library, &[&unheld, &held]);
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.finish(&home).await;
    assert!(std::fs::read_to_string(&held).unwrap().contains("python"), "the agent itself has it");
    let loaded = std::fs::read_to_string(&unheld).unwrap_or_default();
    assert_eq!(loaded, "", "loaded outside of the sandbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_swapped_for_a_link_leads_no_request_for_a_file_outside() {
    let home = intruder();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("token"), "outside").unwrap();
    let (inner, link) = (home.workspace().join("inner"), home.workspace().join("link"));
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("token"), "own").unwrap();
    std::os::unix::fs::symlink(outside.path(), &link).unwrap();
    let (agent, session) = opened(&home).await;
    agent.client.always_choose("allow_once");
    let stop = AtomicBool::new(false);
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &inner, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let said = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(told(&agent, &session, "race"))
        });
        stop.store(true, Ordering::Relaxed);
        said
    });
    let counts: Value = serde_json::from_str(&said).unwrap();
    let count = |name: &str| counts[name].as_u64().unwrap();
    assert!(
        count("read") > 0 && count("written") > 0 && count("refused") > 0,
        "no race took place: {counts}"
    );
    assert_eq!(count("leaked"), 0, "{counts}");
    let names: Vec<_> = outside.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["token"]);
    assert_eq!(std::fs::read_to_string(outside.path().join("token")).unwrap(), "outside");
    agent.finish(&home).await;
}

#[tokio::test]
async fn no_agent_sets_the_marks_by_which_clients_know_what_attache_says() {
    let home = intruder();
    let (agent, session) = opened(&home).await;
    agent.client.always_choose("allow_once");
    assert_eq!(told(&agent, &session, "marks").await, "marked");
    let live = agent.client.received();
    assert!(live.iter().any(|message| message["method"] == "session/request_permission"), "{live:?}");
    agent.finish(&home).await;
    let again = home.start();
    again.initialize().await;
    let loaded = again.load(&session, &home.workspace()).await;
    again.finish(&home).await;
    for message in live.iter().chain(&loaded) {
        assert!(!message.to_string().contains("forged-mark"), "{message}");
    }
}
