//! P13: every byte on stdout is an ACP line, also with verbose logs and after a panic. (The watcher parses all
//! of it.)

use attache_testkit::binary::Home;
use serde_json::json;

const SCRIPT: &str = r#"
on "panic"
  text "before "
  panic
on "call"
  call bash {"command":"printf 'out\\n'; printf 'err\\n' >&2; printf '\\033[31mred\\007\\n'"}
  ---
  text "done"
on *
  reasoning "thinking"
  text "line one\nline two\r\n\u0000\u001b[31m\u2028"
"#;

#[tokio::test]
async fn with_the_most_verbose_log_stdout_stays_the_protocols() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let agent = home.start_with(&["-vvv"]);
    let session = agent.open_session(&home).await;
    agent.client.always_choose("allow_once");
    for prompt in ["hello", "call", "hello"] {
        agent.prompt(&session, prompt).await.expect("a turn that ends");
    }
    agent.client.send_line(b"garbage");
    agent.client.notify("session/cancel", json!({"sessionId": session}));
    agent.client.notify("_unheard/of", json!({}));
    agent.finish(&home).await;
    assert!(home.log().contains("DEBUG"), "the log is verbose: {}", home.log());
}

#[tokio::test]
async fn a_panic_fails_its_turn_and_leaves_stdout_clean() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    for arguments in [&[][..], &["-vvv"][..]] {
        let agent = home.start_with(arguments);
        let session = agent.open_session(&home).await;
        let error = agent.prompt(&session, "panic").await.expect_err("the turn fails");
        assert_eq!(error.code, -32603, "{error:?}");
        assert_eq!(agent.client.agent_text(&session), "before ", "what was said before is kept");
        let answer = agent.prompt(&session, "hello").await.expect("the session goes on");
        assert_eq!(answer["stopReason"], "end_turn");
        agent.finish(&home).await;
    }
    assert!(home.log().contains("panic"), "{}", home.log());
}
