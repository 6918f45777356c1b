//! A repository whose configuration names programs for everything: attache looks at it and runs none of them.

use std::path::Path;

use attache_testkit::binary::Home;

const SCRIPT: &str = r#"
on *
  call read {"path":"README.md"}
  call glob {"pattern":"**/*"}
  call grep {"pattern":"one"}
  ---
  call edit {"path":"README.md","old_string":"one","new_string":"two"}
  call write {"path":"new.md","content":"x"}
  call apply_patch {"patch":"--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-two\n+three\n"}
  ---
  text "done"
"#;

/// Runs git as somebody who trusts what they find.
fn git(directory: &Path, arguments: &[&str]) {
    let status = std::process::Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .current_dir(directory)
        .status()
        .unwrap();
    assert!(status.success(), "{arguments:?}");
}

/// Every setting that runs a program, all with the same one, which leaves `ran` beside itself.
fn hostile(workspace: &Path, marker: &Path) {
    std::fs::write(workspace.join("README.md"), "one\n").unwrap();
    git(workspace, &["init", "-q", "-b", "main", "."]);
    git(workspace, &["add", "README.md"]);
    git(workspace, &["commit", "-q", "-m", "first"]);
    let program = marker.with_extension("sh");
    std::fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\nexit 1\n", marker.display())).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let hooks = marker.with_extension("hooks");
    std::fs::create_dir(&hooks).unwrap();
    for hook in
        ["pre-commit", "post-checkout", "post-index-change", "fsmonitor-watchman", "reference-transaction"]
    {
        std::os::unix::fs::symlink(&program, hooks.join(hook)).unwrap();
    }
    let shell = format!("!{}", program.display());
    let (program, hooks) = (program.to_str().unwrap(), hooks.to_str().unwrap());
    for (key, value) in [
        ("core.fsmonitor", program),
        ("core.hooksPath", hooks),
        ("core.pager", program),
        ("core.editor", program),
        ("core.sshCommand", program),
        ("core.askPass", program),
        ("diff.external", program),
        ("diff.x.textconv", program),
        ("diff.x.command", program),
        ("filter.x.clean", program),
        ("filter.x.smudge", program),
        ("filter.x.process", program),
        ("gpg.program", program),
        ("credential.helper", program),
        ("alias.status", &shell),
        ("alias.branch", &shell),
    ] {
        git(workspace, &["config", key, value]);
    }
    std::fs::write(workspace.join(".gitattributes"), "* diff=x filter=x\n").unwrap();
}

#[tokio::test]
async fn a_session_in_a_hostile_repository_runs_nothing_of_it() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let marker = home.home().join("ran");
    hostile(&home.workspace(), &marker);
    assert!(!marker.exists(), "made by making the repository");
    let agent = home.start();
    agent.client.always_choose("allow_once");
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "go").await.unwrap();
    // A second prompt tells the model what has changed meanwhile.
    std::fs::write(home.workspace().join(".git/HEAD"), "ref: refs/heads/other\n").unwrap();
    agent.prompt(&session, "go on").await.unwrap();
    agent.finish(&home).await;
    assert_eq!(std::fs::read_to_string(home.workspace().join("README.md")).unwrap(), "three\n");
    let ran = std::fs::read_to_string(&marker);
    assert!(ran.is_err(), "ran: {}", ran.unwrap());
}

/// The repository is what it is said to be: git itself runs the program at once.
#[test]
fn git_itself_would_run_it() {
    let place = tempfile::tempdir().unwrap();
    let (workspace, marker) = (place.path().join("w"), place.path().join("ran"));
    std::fs::create_dir(&workspace).unwrap();
    hostile(&workspace, &marker);
    std::fs::write(workspace.join("README.md"), "changed\n").unwrap();
    let ended = std::process::Command::new("git").arg("diff").current_dir(&workspace).output().unwrap();
    assert!(marker.exists(), "{ended:?}");
}
