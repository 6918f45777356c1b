//! The client against an agent played by hand over an in-memory pipe.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split};

use super::*;
use crate::checker::Rule;

struct Agent {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Agent {
    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }
    async fn say(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
}

fn pair() -> (TestClient, Agent) {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = split(near);
    let (far_reader, far_writer) = split(far);
    let agent = Agent { lines: BufReader::new(far_reader).lines(), writer: far_writer };
    (TestClient::connect(reader, writer), agent)
}

#[tokio::test]
async fn answers_find_their_questions_in_any_order() {
    let (client, mut agent) = pair();
    let (one, two) = (client.start("logout", json!({})), client.start("session/list", json!({})));
    assert_eq!(agent.next().await["method"], "logout");
    agent.next().await;
    agent.say(json!({"id": two.id, "result": {"sessions": []}})).await;
    agent.say(json!({"id": one.id, "error": {"code": -32000, "message": "no"}})).await;
    assert_eq!(two.answer().await, Ok(json!({"sessions": []})));
    assert_eq!(one.answer().await.unwrap_err().code, -32000);
    client.finish();
}

async fn ask(agent: &mut Agent) -> Value {
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"},
        {"optionId": "n", "name": "No", "kind": "reject_once"}]);
    agent
        .say(json!({"id": 7, "method": "session/request_permission",
            "params": {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": options}}))
        .await;
    agent.next().await
}

#[tokio::test]
async fn permission_is_refused_until_a_policy_allows_it() {
    let (client, mut agent) = pair();
    assert_eq!(ask(&mut agent).await["result"]["outcome"]["optionId"], "n");
    client.always_choose("allow_once");
    assert_eq!(ask(&mut agent).await["result"]["outcome"]["optionId"], "y");
}

#[tokio::test]
async fn a_question_left_open_can_be_answered_later() {
    let (client, mut agent) = pair();
    client.set_policy(|_, _| Reply::Never);
    agent.say(json!({"id": "q", "method": "session/request_permission", "params": {}})).await;
    client.wait_for("the question", |message| message["id"] == "q").await;
    client.reply(&json!("q"), Reply::cancelled());
    assert_eq!(agent.next().await["result"]["outcome"]["outcome"], "cancelled");
}

#[tokio::test]
async fn what_the_agent_breaks_is_reported() {
    let (client, mut agent) = pair();
    agent.say(json!({"id": 3, "result": {}})).await;
    client.wait_for("the stray answer", |message| message["id"] == 3).await;
    let violations = client.violations(Ending::Complete);
    assert_eq!(violations.iter().map(|violation| violation.rule).collect::<Vec<_>>(), [Rule::OneAnswer]);
}

#[tokio::test]
#[should_panic(expected = "violations on the wire")]
async fn finish_fails_the_test_on_noise() {
    let (client, mut agent) = pair();
    agent.writer.write_all(b"debug: starting\n").await.unwrap();
    agent.say(json!({"method": "_x", "params": {}})).await;
    client.wait_for("a message", |message| message["method"] == "_x").await;
    client.finish();
}

#[tokio::test]
async fn a_client_that_stops_reading_stalls_the_pipe() {
    let (client, mut agent) = pair();
    agent.say(json!({"method": "_a", "params": {}})).await;
    client.wait_for("the first", |message| message["method"] == "_a").await;
    client.stop_reading();
    // One line may still slip through the read that was under way; the pipe takes the rest and then nothing
    // more.
    let flood = tokio::spawn(async move {
        for _ in 0..10_000 {
            agent.say(json!({"method": "_b", "params": {}})).await;
        }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!flood.is_finished() && client.mark() < 10);
    client.read_again();
    flood.await.unwrap();
}

#[tokio::test]
async fn the_end_of_the_agent_ends_every_wait() {
    let (client, agent) = pair();
    let pending = client.start("logout", json!({}));
    drop(agent);
    assert_eq!(pending.answer_or_end().await, None);
    client.wait_for_end().await;
    client.finish_cut();
}

#[tokio::test]
async fn updates_are_kept_by_session() {
    let (client, mut agent) = pair();
    let chunk = |session: &str, text: &str| {
        json!({"method": "session/update", "params": {"sessionId": session, "update":
            {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": text}}}})
    };
    agent.say(chunk("a", "one ")).await;
    agent.say(chunk("b", "other")).await;
    agent.say(chunk("a", "two")).await;
    client.wait_for("the last", |message| message["params"]["update"]["content"]["text"] == "two").await;
    assert_eq!(client.agent_text("a"), "one two");
    assert_eq!(client.updates("b").len(), 1);
    assert_eq!(client.wait_for_update("b", "agent_message_chunk").await["content"]["text"], "other");
}
