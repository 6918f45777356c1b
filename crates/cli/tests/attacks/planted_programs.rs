//! Programs that a command of one session left where `PATH` leads: attache starts none of them by itself, and
//! goes on without.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use attache_testkit::binary::Home;

const SCRIPT: &str = "on *\n  call bash {\"command\":\"echo ran\"}\n  ---\n  text \"done\"\n";

/// Each writes a line, and goes on as the real one.
fn plant(directory: &Path) {
    std::fs::create_dir_all(directory).unwrap();
    for name in ["bwrap", "true", "bash", "sh", "env", "git"] {
        let program = directory.join(name);
        let script =
            format!("#!/bin/sh\necho {name} >> {}/ran\nexec /usr/bin/{name} \"$@\"\n", directory.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    }
    std::fs::write(directory.join("ran"), "").unwrap();
    std::fs::set_permissions(directory.join("ran"), PermissionsExt::from_mode(0o666)).unwrap();
}

async fn goes_on_without(home: Home, planted: &Path) {
    let agent = home.start_with(&["--sandbox", "require"]);
    agent.client.always_choose("allow_once");
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "go").await.unwrap();
    let received = format!("{:?}", agent.client.received());
    agent.finish(&home).await;
    assert_eq!(std::fs::read_to_string(planted.join("ran")).unwrap(), "");
    assert!(received.contains("ran\\n"), "{received}");
}

fn with_path(home: Home, planted: &Path) -> Home {
    home.with_variable("PATH", &format!("{}:/usr/bin:/bin", planted.display()))
}

#[tokio::test]
async fn a_program_that_another_project_left_in_path_is_not_run() {
    for (is_ordinary, name) in [(true, "user"), (false, "root")] {
        let elsewhere = tempfile::Builder::new().prefix("attache-planted-").tempdir().unwrap();
        std::fs::set_permissions(elsewhere.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let planted = elsewhere.path().join(name).join("node_modules/.bin");
        plant(&planted);
        let home = with_path(Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT), &planted);
        let home = if is_ordinary { home.of_an_ordinary_user() } else { home };
        goes_on_without(home, &planted).await;
    }
}

/// Neither run nor in the way: its session's commands are held as ever.
#[tokio::test]
async fn a_program_of_the_project_itself_stops_nothing() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let planted = home.workspace().join("node_modules/.bin");
    plant(&planted);
    goes_on_without(with_path(home, &planted), &planted).await;
}
