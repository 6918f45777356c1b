//! P13 over the network: whatever happens in a server, its clients get messages of ACP and nothing else, also
//! with verbose logs and after a panic. (The watcher of each client parses all of it, and streams are read
//! strictly.)

use attache_testkit::binary::Home;
use serde_json::json;

use crate::served_stage::{OverHttp, OverWebSocket, Way};
use crate::server::Server;

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
  text "line one\nline two\r\n\n\ndata: {}\n\n\u0000\u001b[31m\u2028"
"#;

async fn stays_pure<W: Way>(verbosity: &[&str]) {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let server = Server::of(home, verbosity).await;
    let agent = W::client(&server).await;
    let session = agent.new_session(&server.home.workspace()).await;
    agent.client.always_choose("allow_once");
    for prompt in ["hello", "call", "hello"] {
        agent.prompt(&session, prompt).await.expect("a turn that ends");
    }
    let error = agent.prompt(&session, "panic").await.expect_err("the turn fails");
    assert_eq!(error.code, -32603, "{error:?}");
    agent.client.send_line(b"garbage");
    agent.client.notify("session/cancel", json!({ "sessionId": session }));
    agent.client.notify("_unheard/of", json!({}));
    let answer = agent.prompt(&session, "hello").await.expect("the session goes on");
    assert_eq!(answer["stopReason"], "end_turn");
    let text = agent.client.agent_text(&session);
    let said = "line one\nline two\r\n\n\ndata: {}\n\n\0\u{1b}[31m\u{2028}";
    assert_eq!(text, format!("{said}done{said}before {said}"));
    agent.client.end_input();
    agent.client.wait_for_end().await;
    agent.client.finish();
    server.stop().await;
}

#[tokio::test]
async fn a_websocket_carries_messages_alone() {
    stays_pure::<OverWebSocket>(&[]).await;
    stays_pure::<OverWebSocket>(&["-vvv"]).await;
}

#[tokio::test]
async fn streams_of_events_carry_messages_alone() {
    stays_pure::<OverHttp>(&[]).await;
    stays_pure::<OverHttp>(&["-vvv"]).await;
}
