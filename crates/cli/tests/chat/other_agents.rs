//! `--agent-command`: agents of others, well-behaved ones and others.

use std::path::PathBuf;

use super::*;

/// Speaks the protocol as badly as its argument says.
const ROGUE: &str = include_str!("rogue.py");

fn rogue(home: &Home, fault: &str) -> String {
    let program = home.workspace().join("rogue.py");
    std::fs::write(&program, ROGUE).unwrap();
    format!("python3 '{}' {fault}", program.display())
}

#[tokio::test]
async fn an_agent_on_the_official_sdk_answers() {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    let program = PathBuf::from(peers).join("acp-sdk").join("agent.mjs");
    let line = format!("node '{}'", program.display());
    let home = home("");
    let ran = chat(&home, &["-p", "hello", "--agent-command", &line]).await;
    assert_eq!((ran.code, ran.said.as_str()), (Some(0), "You said: hello\n"), "{ran:?}");
    let ran = chat_with(&home, &["-p", "look", "--agent-command", &line], b"piped").await;
    assert_eq!(ran.said, "You said: look|standard input:\n\npiped\n", "{ran:?}");
    let ran = chat(&home, &["-p", "delete it", "--agent-command", &line, "--output", "json"]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let object = ran.object();
    assert_eq!(object["text"], "You said: delete it; the answer is no");
    assert_eq!(
        (&object["denied"][0]["tool"], &object["denied"][0]["title"]),
        (&json!("delete"), &json!("Delete everything"))
    );
    // What it does not offer is said, not passed over.
    for more in [["--model", "a/b"], ["--agent", "plan"], ["--resume", "echo-1"]] {
        let ran = chat(&home, &[&["-p", "hello", "--agent-command", &line][..], &more].concat()).await;
        assert_eq!((ran.code, ran.said.as_str()), (Some(1), ""), "{more:?}: {ran:?}");
        assert!(ran.told.starts_with("attache: echo "), "{more:?}: {ran:?}");
    }
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn our_own_binary_is_such_an_agent_too() {
    let home = home("on \"say hi\"\n  text \"Hi there.\"\n");
    let line = format!("'{}' acp", home.binary().display());
    let ran = chat(&home, &["-p", "say hi", "--agent-command", &line]).await;
    assert_eq!((ran.code, ran.said.as_str(), ran.told.as_str()), (Some(0), "Hi there.\n", ""));
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn a_faulty_agent_is_a_clear_line() {
    let home = home("");
    for (fault, told) in [
        ("dies", "the agent ended (exit status: 3); it said: boom"),
        ("dies-later", "the agent ended (exit status: 3); it said: boom"),
        ("version-0", "speaks version 0 of the Agent Client Protocol"),
        ("version-7", "speaks version 7 of the Agent Client Protocol"),
        ("floods-first", "messages without end"),
        ("garbage", "this is no ACP agent"),
        ("nonsense", "answer to initialize is not understood"),
        ("refuses", "I have no licence"),
    ] {
        let ran = chat(&home, &["-p", "hello", "--agent-command", &rogue(&home, fault)]).await;
        assert_eq!((ran.code, ran.said.as_str()), (Some(1), ""), "{fault}: {ran:?}");
        // A busy machine may take its time until the agent is there, which is told.
        let lines: Vec<&str> = ran.told.lines().filter(|line| !line.contains("not said hello yet")).collect();
        assert!(lines[0].starts_with("attache: ") && ran.told.contains(told), "{fault}: {ran:?}");
        assert_eq!(lines.len(), 1, "{fault}: {ran:?}");
        assert_eq!(home.orphans(), [], "{fault}");
    }
    let ran = chat(&home, &["-p", "hello", "--agent-command", "cat"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.told.contains("this is no ACP agent: it only repeats what it is sent"), "{ran:?}");
    let ran = chat(&home, &["-p", "hello", "--agent-command", "no-such-program acp"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.told.contains("can't start the agent `no-such-program`: there is no such program"),
        "{ran:?}"
    );
}

/// 60,000 updates, lines that are none, and unknown kinds: all of it is passed over or taken.
#[tokio::test]
async fn a_flood_is_only_as_fast_as_it_is_read() {
    let home = home("");
    let ran =
        chat(&home, &["-p", "hello", "--agent-command", &rogue(&home, "floods"), "--output", "json"]).await;
    assert_eq!(ran.code, Some(0), "{:?} {}", ran.code, ran.told);
    assert_eq!(ran.object()["text"].as_str().unwrap(), "x".repeat(20_000));
}

#[tokio::test]
async fn an_agent_that_ignores_the_end_of_its_input_is_killed_with_what_it_started() {
    let home = home("");
    let ran = chat(&home, &["-p", "hello", "--agent-command", &rogue(&home, "stays")]).await;
    assert_eq!((ran.code, ran.said.as_str()), (Some(0), "x\n"), "{ran:?}");
    assert_eq!(home.orphans(), []);
}
