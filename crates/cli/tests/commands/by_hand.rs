//! What a person meets who types at a terminal: words that explain, help by its name, an interrupt that leaves
//! nothing behind.

use std::time::Duration;

use attache_testkit::pseudo_terminal;
use rustix::process::{Pid, Signal, kill_process};

use super::*;

#[tokio::test]
async fn acp_says_on_a_terminal_what_it_is_and_ends_with_the_input() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let (mut person, program) = pseudo_terminal::open();
    let mut command = home.command();
    command.arg("acp").stdin(program.try_clone().unwrap()).stdout(Stdio::null()).stderr(program);
    let mut child = command.spawn().unwrap();
    let typing = tokio::task::spawn_blocking(move || {
        let screen = pseudo_terminal::read_until(&mut person, "Ctrl-D ends it.");
        // Ctrl-D at the beginning of a line.
        std::io::Write::write_all(&mut person, b"\x04").unwrap();
        (screen, person)
    });
    let (screen, _person) = typing.await.unwrap();
    assert!(screen.contains("is what an editor starts") && screen.contains("attache init"), "{screen}");
    let ended = tokio::time::timeout(Duration::from_secs(30), child.wait()).await;
    assert_eq!(ended.expect("Ctrl-D ends it").unwrap().code(), Some(0));
}

/// An editor has no terminal: not a word more on its pipes.
#[tokio::test]
async fn acp_in_a_pipe_says_nothing_by_itself() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let output = run(&home, &["acp"]).await;
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len(), &*told), (Some(0), 0, ""));
}

#[tokio::test]
async fn help_is_asked_for_by_its_name_as_well() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    for words in [&[][..], &["sessions"], &["sessions", "list"], &["acp"]] {
        let by_option = answer(&home, &[words, &["--help"]].concat()).await;
        assert_eq!(answer(&home, &[&["help"], words].concat()).await, by_option, "{words:?}");
        assert!(by_option.contains("attache"), "{by_option}");
    }
    let unknown = run(&home, &["help", "dance"]).await;
    let told = String::from_utf8_lossy(&unknown.stderr);
    assert_eq!(unknown.status.code(), Some(2), "{told}");
    assert!(told.contains("dance"), "{told}");
}

#[tokio::test]
async fn an_interrupted_demo_leaves_nothing_behind() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let place = home.workspace().join("temporary");
    std::fs::create_dir(&place).unwrap();
    let (mut person, program) = pseudo_terminal::open();
    let mut command = home.command();
    command.arg("demo").env("TMPDIR", &place).stdin(Stdio::null()).stdout(program).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // The command holds the terminal's other end as well.
    drop(command);
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    let reading = tokio::task::spawn_blocking(move || {
        // Its agent runs, and a session is open.
        pseudo_terminal::read_until(&mut person, "A plan, a look");
        person
    });
    let _person = reading.await.unwrap();
    assert!(place.read_dir().unwrap().next().is_some(), "its files are there");
    kill_process(pid, Signal::INT).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(30), child.wait_with_output()).await;
    let output = ended.expect("an interrupt ends it").unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("interrupted; the demo's files are removed"), "{told}");
    let left: Vec<_> = place.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
    assert_eq!(home.orphans(), []);
}

/// Who looks later sees why an answer stops where it stops.
#[tokio::test]
async fn a_failed_turn_is_shown_with_what_the_provider_said() {
    let home = Home::new(
        env!("CARGO_BIN_EXE_attache"),
        "on *\n  text \"I begin.\"\n  error permanent \"the words of the provider\"\n",
    );
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "go").await.unwrap_err();
    agent.finish(&home).await;
    for arguments in [&["sessions", "show", &session][..], &["sessions", "show", &session, "--timeline"]] {
        let shown = answer(&home, arguments).await;
        assert!(shown.contains("I begin.") && shown.contains("the words of the provider"), "{shown}");
    }
}
